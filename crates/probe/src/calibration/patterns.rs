//! Fusion patterns: words of `--fusion-patterns` and `fusion --patterns`, and their operators.

use super::operations::look_up;
use calorimeter_case::{UnknownName, names_match};
use std::str::FromStr;

/// Group of patterns with equal axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternFamily {
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
    family: PatternFamily,
}

const fn pattern(family: PatternFamily, operator: &'static str, name: &'static str) -> Pattern {
    Pattern { operator, name, family }
}

/// All patterns.
pub const PATTERNS: &[Pattern] = &[
    pattern(PatternFamily::Linear, "linear_bias", "Linear_Bias"),
    pattern(PatternFamily::Linear, "linear_bias_relu", "Linear_Bias_ReLU"),
    pattern(PatternFamily::Linear, "linear_bias_gelu", "Linear_Bias_GELU"),
    pattern(PatternFamily::Linear, "linear_bias_silu", "Linear_Bias_SiLU"),
    pattern(PatternFamily::Linear, "ln_linear", "LayerNorm_Linear"),
    pattern(PatternFamily::Linear, "swiglu_mlp", "SwiGLU_MLP"),
    pattern(PatternFamily::Conv, "conv2d_relu", "Conv2d_ReLU"),
    pattern(PatternFamily::Conv, "conv2d_bn", "Conv2d_BN"),
    pattern(PatternFamily::Conv, "conv2d_bn_relu", "Conv2d_BN_ReLU"),
    pattern(PatternFamily::Attention, "qk_scores", "QK_AttentionScores"),
    pattern(PatternFamily::Attention, "qk_softmax", "QK_Softmax"),
    pattern(PatternFamily::Attention, "full_attention", "FullAttention"),
    pattern(PatternFamily::Attention, "attention_4d", "FullAttention_4D"),
    pattern(PatternFamily::Attention, "attention_4d_causal", "FullAttention_4D_Causal"),
];

impl Pattern {
    /// Returns the pattern of an operator.
    pub fn for_operator(operator: &str) -> Option<Self> {
        PATTERNS.iter().find(|pattern| pattern.operator == operator).copied()
    }
}

/// Patterns denoted by one word of the command line: a family or a pattern, by either of its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patterns(pub Vec<Pattern>);

const FAMILIES: &[(&str, &[PatternFamily])] = &[
    ("linear", &[PatternFamily::Linear]),
    ("conv", &[PatternFamily::Conv]),
    ("attention", &[PatternFamily::Attention]),
    ("all", &[PatternFamily::Linear, PatternFamily::Conv, PatternFamily::Attention]),
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
            families.contains(&family) || names_match(word, operator) || names_match(word, name)
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
    fn patterns_parse_by_family_and_name() {
        let named = |word: &str| word.parse::<Patterns>().unwrap().0;
        assert_eq!(named("all").len(), PATTERNS.len());
        assert_eq!(named("conv").len(), 3);
        for word in ["conv2d_bn", "Conv2d_BN", "Conv2dBn"] {
            assert_eq!(named(word), [Pattern::for_operator("conv2d_bn").unwrap()], "{word}");
        }
        let error = "pooling".parse::<Patterns>().unwrap_err().to_string();
        assert!(error.starts_with("unknown fusion pattern \"pooling\"; known: "), "{error}");
        assert!(error.ends_with("known: linear, conv, attention, all, linear_bias and 13 more"), "{error}");
    }
}
