//! Fusion patterns: the words of `--fusion-patterns`, their operators and the sizes of each.

use super::operations::{look_up, unknown};
use std::str::FromStr;

/// A group of patterns with the same axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Linear,
    Conv,
    Attention,
}

/// A pattern: an operator, compared with its own kernels run one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// The operator.
    pub operator: &'static str,
    /// What branes-ai/graphs calls it, or a name in its manner.
    pub name: &'static str,
    pub family: Family,
}

const fn pattern(family: Family, operator: &'static str, name: &'static str) -> Pattern {
    Pattern { operator, name, family }
}

/// Every pattern.
pub const PATTERNS: &[Pattern] = &[
    pattern(Family::Linear, "linear_bias", "Linear_Bias"),
    pattern(Family::Linear, "linear_bias_relu", "Linear_Bias_ReLU"),
    pattern(Family::Linear, "linear_bias_gelu", "Linear_Bias_GELU"),
    pattern(Family::Linear, "linear_bias_silu", "Linear_Bias_SiLU"),
    pattern(Family::Linear, "ln_linear", "LayerNorm_Linear"),
    pattern(Family::Linear, "swiglu_mlp", "SwiGLU_MLP"),
    pattern(Family::Conv, "conv2d_relu", "Conv2d_ReLU"),
    pattern(Family::Conv, "conv2d_bn", "Conv2d_BN"),
    pattern(Family::Conv, "conv2d_bn_relu", "Conv2d_BN_ReLU"),
    pattern(Family::Attention, "qk_scores", "QK_AttentionScores"),
    pattern(Family::Attention, "qk_softmax", "QK_Softmax"),
    pattern(Family::Attention, "full_attention", "FullAttention"),
    pattern(Family::Attention, "attention_4d", "FullAttention_4D"),
    pattern(Family::Attention, "attention_4d_causal", "FullAttention_4D_Causal"),
];

impl Pattern {
    /// The pattern of an operator.
    pub fn of(operator: &str) -> Option<Self> {
        PATTERNS.iter().find(|pattern| pattern.operator == operator).copied()
    }

    /// Its sizes as configuration files write them, the smallest first.
    pub fn sizes(&self) -> [&'static str; 3] {
        match (self.family, self.operator) {
            (Family::Linear, _) => {
                ["{m: 128, k: 512, n: 512}", "{m: 512, k: 1024, n: 1024}", "{m: 1024, k: 2048, n: 2048}"]
            }
            (Family::Conv, _) => [
                "{batch: 1, in_channels: 64, out_channels: 64, size: 56, kernel: 3}",
                "{batch: 4, in_channels: 128, out_channels: 128, size: 28, kernel: 3}",
                "{batch: 8, in_channels: 256, out_channels: 256, size: 14, kernel: 3}",
            ],
            (Family::Attention, "attention_4d" | "attention_4d_causal") => [
                "{batch: 1, heads: 8, sequence: 128, head_dim: 64}",
                "{batch: 4, heads: 8, sequence: 256, head_dim: 64}",
                "{batch: 8, heads: 8, sequence: 512, head_dim: 64}",
            ],
            (Family::Attention, _) => [
                "{batch: 1, sequence: 128, dimension: 64}",
                "{batch: 4, sequence: 256, dimension: 64}",
                "{batch: 8, sequence: 512, dimension: 64}",
            ],
        }
    }
}

/// The families behind one word of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Families(pub &'static [Family]);

const WORDS: &[(&str, &[Family])] = &[
    ("linear", &[Family::Linear]),
    ("conv", &[Family::Conv]),
    ("attention", &[Family::Attention]),
    ("all", &[Family::Linear, Family::Conv, Family::Attention]),
];

impl FromStr for Families {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        look_up(WORDS, word).map(Self).ok_or_else(|| unknown("fusion pattern", word, WORDS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_known_by_name_and_others_are_refused() {
        assert_eq!("all".parse::<Families>().unwrap().0.len(), 3);
        let error = "pooling".parse::<Families>().unwrap_err();
        assert_eq!(error, "unknown fusion pattern \"pooling\"; known: linear, conv, attention, all");
    }
}
