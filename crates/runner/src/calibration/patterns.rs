//! Fusion patterns: the words of `--fusion-patterns` and their operators.

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
