//! `llama4`, `deepseek_v3_236b`, `deepseek_v3_671b`, `qwen3_32b`, `gemma3_27b`: shapes of published results.
//!
//! Names and sizes are unchanged, so that results are comparable, although some do not match the models in their names.
//! DeepSeek's 236B model is V2 and has hidden size 5120, not 7168. Qwen3-32B projects queries to 8192 and keys to 1024,
//! not 5120 and 640. Gemma-3-27B has hidden size 5376, not 4096. Names repeat for the second M. `decode` has the sizes
//! of the published models, at small M.

use crate::{Generator, NamedShape, ShapeError};

/// Token counts of long prompts.
const TOKENS: [u64; 2] = [16384, 128_000];

type LayerShape = (&'static str, u64, u64);

const LLAMA4_LAYERS: [LayerShape; 3] =
    [("llama4_FFN", 8192, 5120), ("llama4_QO_proj", 8192, 8192), ("llama4_KV_proj", 8192, 1024)];
const DEEPSEEK_236B_LAYERS: [LayerShape; 2] =
    [("deepseek_v3_236b_FFN", 1536, 5120), ("deepseek_v3_236b_QKVO_proj", 7168, 7168)];
const DEEPSEEK_671B_LAYERS: [LayerShape; 2] =
    [("deepseek_v3_671b_FFN", 2048, 7168), ("deepseek_v3_671b_QKVO_proj", 7168, 7168)];
const QWEN3_LAYERS: [LayerShape; 2] = [("qwen3_32b_QO_proj", 5120, 5120), ("qwen3_32b_KV_proj", 5120, 640)];
const GEMMA3_LAYERS: [LayerShape; 2] = [("gemma3_27b_QO_proj", 4096, 4096), ("gemma3_27b_KV_proj", 4096, 1024)];

pub(super) static LLAMA4: Generator = Generator {
    name: "llama4",
    about: "Llama 4 layers as published results used them, M = 16384 and 128000",
    parameters: &[],
    count: |_| count(&LLAMA4_LAYERS),
    shapes: |_, _| shapes(&LLAMA4_LAYERS),
};

pub(super) static DEEPSEEK_V3_236B: Generator = Generator {
    name: "deepseek_v3_236b",
    about: "DeepSeek 236B layers as published results used them (not the model's own sizes)",
    parameters: &[],
    count: |_| count(&DEEPSEEK_236B_LAYERS),
    shapes: |_, _| shapes(&DEEPSEEK_236B_LAYERS),
};

pub(super) static DEEPSEEK_V3_671B: Generator = Generator {
    name: "deepseek_v3_671b",
    about: "DeepSeek-V3 layers as published results used them (a part of the model)",
    parameters: &[],
    count: |_| count(&DEEPSEEK_671B_LAYERS),
    shapes: |_, _| shapes(&DEEPSEEK_671B_LAYERS),
};

pub(super) static QWEN3_32B: Generator = Generator {
    name: "qwen3_32b",
    about: "Qwen3-32B layers as published results used them (not the model's own sizes)",
    parameters: &[],
    count: |_| count(&QWEN3_LAYERS),
    shapes: |_, _| shapes(&QWEN3_LAYERS),
};

pub(super) static GEMMA3_27B: Generator = Generator {
    name: "gemma3_27b",
    about: "Gemma-3-27B layers as published results used them (not the model's own sizes)",
    parameters: &[],
    count: |_| count(&GEMMA3_LAYERS),
    shapes: |_, _| shapes(&GEMMA3_LAYERS),
};

fn count(layers: &[LayerShape]) -> Result<Option<u64>, ShapeError> {
    Ok(Some((TOKENS.len() * layers.len()) as u64))
}

fn shapes(layers: &[LayerShape]) -> Result<Vec<NamedShape>, ShapeError> {
    TOKENS.iter().flat_map(|&m| layers.iter().map(move |&(name, k, n)| NamedShape::new(name, [m, k, n]))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::listing;

    #[test]
    fn published_shapes_are_stable() {
        for (name, layers) in [
            ("llama4", &["FFN 8192 5120", "QO_proj 8192 8192", "KV_proj 8192 1024"][..]),
            ("deepseek_v3_236b", &["FFN 1536 5120", "QKVO_proj 7168 7168"]),
            ("deepseek_v3_671b", &["FFN 2048 7168", "QKVO_proj 7168 7168"]),
            ("qwen3_32b", &["QO_proj 5120 5120", "KV_proj 5120 640"]),
            ("gemma3_27b", &["QO_proj 4096 4096", "KV_proj 4096 1024"]),
        ] {
            let expected: Vec<String> = ["16384", "128000"]
                .iter()
                .flat_map(|m| {
                    layers.iter().map(move |layer| format!("{name}_{}", layer.replacen(' ', &format!(" {m} "), 1)))
                })
                .collect();
            assert_eq!(listing(&format!("name: {name}")), expected);
        }
    }
}
