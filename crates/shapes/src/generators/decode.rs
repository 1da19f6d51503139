//! `decode`: linear layers of current models at the small batch sizes of token generation.
//!
//! M is the number of sequences that are decoded in one batch, one row each; a weight is [K, N]. The names in brackets
//! are the keys of the models' published `config.json`:
//!
//! | model | K and N come from |
//! |---|---|
//! | `llama3_8b` | Llama-3.1-8B: hidden 4096 (`hidden_size`), 32 heads (`num_attention_heads`) of 128, 8 key-value heads (`num_key_value_heads`), intermediate 14336 (`intermediate_size`). Mistral-7B has equal sizes. |
//! | `llama3_70b` | Llama-3.1-70B: hidden 8192, 64 heads of 128, 8 key-value heads, intermediate 28672 |
//! | `qwen3_32b` | Qwen3-32B: hidden 5120, 64 heads of 128 (`head_dim`, so queries are 8192 wide), 8 key-value heads, intermediate 25600 |
//! | `gemma3_27b` | Gemma-3-27B: hidden 5376, 32 heads of 128 (so queries are 4096 wide), 16 key-value heads, intermediate 21504 |
//! | `deepseek_v3` | DeepSeek-V3: hidden 7168, 128 heads, `q_lora_rank` 1536, `kv_lora_rank` 512, `qk_nope_head_dim` 128, `qk_rope_head_dim` 64, `v_head_dim` 128, `intermediate_size` 18432 (first three layers), `moe_intermediate_size` 2048 (one expert) |
//!
//! Layers, with the width of a projection = heads x head size:
//!
//! | layer | K | N |
//! |---|---|---|
//! | `qkv` | hidden | queries + keys + values |
//! | `o` | queries (DeepSeek: heads x `v_head_dim`) | hidden |
//! | `gate_up` | hidden | 2 x intermediate |
//! | `down` | intermediate | hidden |
//! | `q_a`, `q_b` | hidden, `q_lora_rank` | `q_lora_rank`, heads x (`qk_nope_head_dim` + `qk_rope_head_dim`) |
//! | `kv_a`, `kv_b` | hidden, `kv_lora_rank` | `kv_lora_rank` + `qk_rope_head_dim`, heads x (`qk_nope_head_dim` + `v_head_dim`) |
//! | `expert_gate_up`, `expert_down` | hidden, `moe_intermediate_size` | 2 x `moe_intermediate_size`, hidden |
//!
//! An expert receives only the rows routed to it, so its M is smaller than the number of sequences.

use crate::parameter::{GeneratorSettings, Parameter, ParameterKind};
use crate::{Generator, NamedShape};

struct DecodeModel {
    name: &'static str,
    /// Name, K and N.
    layers: &'static [(&'static str, u64, u64)],
}

const MODELS: [DecodeModel; 5] = [
    DecodeModel {
        name: "llama3_8b",
        layers: &[("qkv", 4096, 6144), ("o", 4096, 4096), ("gate_up", 4096, 28672), ("down", 14336, 4096)],
    },
    DecodeModel {
        name: "llama3_70b",
        layers: &[("qkv", 8192, 10240), ("o", 8192, 8192), ("gate_up", 8192, 57344), ("down", 28672, 8192)],
    },
    DecodeModel {
        name: "qwen3_32b",
        layers: &[("qkv", 5120, 10240), ("o", 8192, 5120), ("gate_up", 5120, 51200), ("down", 25600, 5120)],
    },
    DecodeModel {
        name: "gemma3_27b",
        layers: &[("qkv", 5376, 8192), ("o", 4096, 5376), ("gate_up", 5376, 43008), ("down", 21504, 5376)],
    },
    DecodeModel {
        name: "deepseek_v3",
        layers: &[
            ("q_a", 7168, 1536),
            ("q_b", 1536, 24576),
            ("kv_a", 7168, 576),
            ("kv_b", 512, 32768),
            ("o", 16384, 7168),
            ("gate_up", 7168, 36864),
            ("down", 18432, 7168),
            ("expert_gate_up", 7168, 4096),
            ("expert_down", 2048, 7168),
        ],
    },
];

const MODEL_NAMES: [&str; MODELS.len()] = {
    let mut names = [""; MODELS.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = MODELS[i].name;
        i += 1;
    }
    names
};

const MODELS_PARAMETER: Parameter = Parameter {
    name: "models",
    about: "models whose layers to include, in that order",
    kind: ParameterKind::Names { what: "model of decode", known: &MODEL_NAMES },
};

const ROWS_PARAMETER: Parameter = Parameter {
    name: "m",
    about: "sequences per batch, in ascending order",
    kind: ParameterKind::Sizes { default: &[1, 2, 4, 8, 16, 32, 64, 128] },
};

pub(super) static DECODE: Generator = Generator {
    name: "decode",
    about: "linear layers of current models at the small M of text generation",
    parameters: &[MODELS_PARAMETER, ROWS_PARAMETER],
    count: |settings| {
        let layers: usize = models(settings).map(|model| model.layers.len()).sum();
        Ok(Some((layers * settings.sizes(&ROWS_PARAMETER).len()) as u64))
    },
    shapes: |settings, _| {
        let mut rows = settings.sizes(&ROWS_PARAMETER).to_vec();
        rows.sort_unstable();
        let mut made = Vec::new();
        for model in models(settings) {
            for &(layer, k, n) in model.layers {
                for &m in &rows {
                    made.push(NamedShape::new(format!("decode.{}.{layer}_m{m}", model.name), [m, k, n])?);
                }
            }
        }
        Ok(made)
    },
};

/// Selected models, in the order of the parameter.
fn models(settings: &GeneratorSettings) -> impl Iterator<Item = &'static DecodeModel> {
    settings.names(&MODELS_PARAMETER).into_iter().filter_map(|name| MODELS.iter().find(|model| model.name == name))
}

#[cfg(test)]
mod tests {
    use super::super::listing;
    use super::*;

    /// Hidden size, heads, key-value heads, head size and intermediate size, from the published configurations.
    const DENSE: [(&str, u64, u64, u64, u64, u64); 4] = [
        ("llama3_8b", 4096, 32, 8, 128, 14336),
        ("llama3_70b", 8192, 64, 8, 128, 28672),
        ("qwen3_32b", 5120, 64, 8, 128, 25600),
        ("gemma3_27b", 5376, 32, 16, 128, 21504),
    ];

    fn layers(name: &str) -> &'static [(&'static str, u64, u64)] {
        MODELS.iter().find(|model| model.name == name).unwrap().layers
    }

    #[test]
    fn dense_layers_follow_from_the_published_configurations() {
        for (name, hidden, heads, kv_heads, head, intermediate) in DENSE {
            let (queries, keys) = (heads * head, kv_heads * head);
            let expected = [
                ("qkv", hidden, queries + 2 * keys),
                ("o", queries, hidden),
                ("gate_up", hidden, 2 * intermediate),
                ("down", intermediate, hidden),
            ];
            assert_eq!(layers(name), expected, "{name}");
        }
    }

    #[test]
    fn deepseek_layers_follow_from_the_published_configuration() {
        let (hidden, heads, q_lora, kv_lora) = (7168, 128, 1536, 512);
        let (nope, rope, value) = (128, 64, 128);
        let (intermediate, expert) = (18432, 2048);
        let expected = [
            ("q_a", hidden, q_lora),
            ("q_b", q_lora, heads * (nope + rope)),
            ("kv_a", hidden, kv_lora + rope),
            ("kv_b", kv_lora, heads * (nope + value)),
            ("o", heads * value, hidden),
            ("gate_up", hidden, 2 * intermediate),
            ("down", intermediate, hidden),
            ("expert_gate_up", hidden, 2 * expert),
            ("expert_down", expert, hidden),
        ];
        assert_eq!(layers("deepseek_v3"), expected);
    }

    #[test]
    fn every_model_is_checked_against_a_configuration() {
        let checked: Vec<&str> = DENSE.iter().map(|model| model.0).chain(["deepseek_v3"]).collect();
        assert_eq!(MODEL_NAMES.to_vec(), checked);
    }

    #[test]
    fn shapes_are_ordered_by_model_layer_m() {
        let made = listing("name: decode");
        assert_eq!(made.len(), (4 * 4 + 9) * 8);
        assert_eq!(made[0], "decode.llama3_8b.qkv_m1 1 4096 6144");
        assert_eq!(made[7], "decode.llama3_8b.qkv_m128 128 4096 6144");
        assert_eq!(made[8], "decode.llama3_8b.o_m1 1 4096 4096");
        assert_eq!(made[32], "decode.llama3_70b.qkv_m1 1 8192 10240");
        assert_eq!(made[199], "decode.deepseek_v3.expert_down_m128 128 2048 7168");
    }

    #[test]
    fn models_and_rows_can_be_chosen() {
        assert_eq!(
            listing("{name: decode, models: [qwen3_32b], m: [16, 1]}"),
            [
                "decode.qwen3_32b.qkv_m1 1 5120 10240",
                "decode.qwen3_32b.qkv_m16 16 5120 10240",
                "decode.qwen3_32b.o_m1 1 8192 5120",
                "decode.qwen3_32b.o_m16 16 8192 5120",
                "decode.qwen3_32b.gate_up_m1 1 5120 51200",
                "decode.qwen3_32b.gate_up_m16 16 5120 51200",
                "decode.qwen3_32b.down_m1 1 25600 5120",
                "decode.qwen3_32b.down_m16 16 25600 5120",
            ]
        );
        let made = listing("{name: decode, models: [gemma3_27b, llama3_8b], m: [4]}");
        assert_eq!(
            (made[0].as_str(), made[4].as_str()),
            ("decode.gemma3_27b.qkv_m4 4 5376 8192", "decode.llama3_8b.qkv_m4 4 4096 6144")
        );
    }
}
