//! Fusion patterns: words of `--fusion-patterns` and `fusion --patterns`, and their operators.

use super::operations::look_up;
use crate::loosely::is_loosely;
use calorimeter_case::UnknownName;
use std::str::FromStr;

/// Group of patterns with equal axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Linear,
    Conv,
    Attention,
}

/// Fusion pattern: an operator whose fused kernel is compared with separate kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// Operator name.
    pub operator: &'static str,
    /// Name in branes-ai/graphs, or a name of that form.
    pub name: &'static str,
    pub family: Family,
}

const fn pattern(family: Family, operator: &'static str, name: &'static str) -> Pattern {
    Pattern { operator, name, family }
}

/// All patterns.
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
    /// Returns the pattern of an operator.
    pub fn of(operator: &str) -> Option<Self> {
        PATTERNS.iter().find(|pattern| pattern.operator == operator).copied()
    }
}

/// Patterns denoted by one word of the command line: a family or a pattern, by either of its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patterns(pub Vec<Pattern>);

const FAMILIES: &[(&str, &[Family])] = &[
    ("linear", &[Family::Linear]),
    ("conv", &[Family::Conv]),
    ("attention", &[Family::Attention]),
    ("all", &[Family::Linear, Family::Conv, Family::Attention]),
];

impl Patterns {
    /// All accepted words: families, then operators.
    pub fn words() -> impl Iterator<Item = &'static str> {
        FAMILIES.iter().map(|(word, _)| *word).chain(PATTERNS.iter().map(|pattern| pattern.operator))
    }
}

impl FromStr for Patterns {
    type Err = UnknownName;

    fn from_str(word: &str) -> Result<Self, UnknownName> {
        let families = look_up(FAMILIES, &word.to_lowercase()).unwrap_or_default();
        let matches = |pattern: &Pattern| {
            let Pattern { operator, name, family } = *pattern;
            families.contains(&family) || is_loosely(word, operator) || is_loosely(word, name)
        };
        let found: Vec<Pattern> = PATTERNS.iter().copied().filter(matches).collect();
        if found.is_empty() {
            return Err(UnknownName::new("fusion pattern", word, Self::words()));
        }
        Ok(Self(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_known_by_family_and_by_name_and_others_are_refused() {
        let named = |word: &str| word.parse::<Patterns>().unwrap().0;
        assert_eq!(named("all").len(), PATTERNS.len());
        assert_eq!(named("conv").len(), 3);
        for word in ["conv2d_bn", "Conv2d_BN", "Conv2dBn"] {
            assert_eq!(named(word), [Pattern::of("conv2d_bn").unwrap()], "{word}");
        }
        let error = "pooling".parse::<Patterns>().unwrap_err().to_string();
        assert!(error.starts_with("unknown fusion pattern \"pooling\"; known: "), "{error}");
        assert!(error.ends_with("known: linear, conv, attention, all, linear_bias and 13 more"), "{error}");
    }
}
