//! `llama`: the four linear layers of LLaMA-2-70B on one of eight GPUs, with q, k, v fused and gate and up fused.

use crate::{Generator, NamedShape};

/// Four sequences of 4096 tokens.
const M: u64 = 4 * 4096;

const LAYERS: [(&str, u64, u64); 4] = [
    ("llama_attn.wqkv", 8192, 1280),
    ("llama_attn.w0", 1024, 8192),
    ("llama_ffn.w13", 8192, 7168),
    ("llama_ffn.w2", 3584, 8192),
];

pub(super) static LLAMA: Generator = Generator {
    name: "llama",
    about: "LLaMA-2-70B training layers, sharded over 8 GPUs, M = 16384",
    parameters: &[],
    count: |_| Ok(Some(LAYERS.len() as u64)),
    shapes: |_, _| LAYERS.iter().map(|&(name, k, n)| NamedShape::new(name, [M, k, n])).collect(),
};

#[cfg(test)]
mod tests {
    use super::super::listing;

    #[test]
    fn llama_layers_are_stable() {
        assert_eq!(
            listing("name: llama"),
            [
                "llama_attn.wqkv 16384 8192 1280",
                "llama_attn.w0 16384 1024 8192",
                "llama_ffn.w13 16384 8192 7168",
                "llama_ffn.w2 16384 3584 8192",
            ]
        );
    }
}
