//! Sparsity of weights, with the names of torchao's configuration files.

use crate::UnknownName;
use std::{fmt, str::FromStr};

/// Sparsity pattern of a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sparsity {
    /// 2:4 sparsity: two of every four values along K are zero.
    SemiStructured,
    /// Block sparsity: square blocks are zero.
    Block {
        /// Percentage of zero blocks in each row of blocks.
        percent: u8,
        /// Rows and columns of a block.
        block_size: u16,
    },
}

impl Sparsity {
    /// Default parameters, for the plain name `block`.
    pub const DEFAULT_BLOCK: Self = Self::Block { percent: 90, block_size: 64 };

    /// Nonzero blocks per row of blocks in rows of `k` values; `None` without block sparsity.
    pub fn retained_blocks_per_row(self, k: usize) -> Option<usize> {
        match self {
            Self::Block { percent, block_size } => {
                Some((k / usize::from(block_size) * (100 - usize::from(percent))).div_ceil(100))
            }
            Self::SemiStructured => None,
        }
    }

    /// All names and patterns of names.
    fn spellings() -> Vec<String> {
        ["semi-sparse", "2:4", "block", "block-{0.01..0.99}-{side}", "bsr-{0.01..0.99}-{side}"]
            .map(str::to_owned)
            .to_vec()
    }
}

impl fmt::Display for Sparsity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SemiStructured => f.pad("semi-sparse"),
            Self::Block { percent, block_size: side } => {
                let level = format!("{percent:02}");
                f.pad(&format!("block-0.{}-{side}", level.trim_end_matches('0')))
            }
        }
    }
}

impl FromStr for Sparsity {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "semi-sparse" | "2:4" => return Ok(Self::SemiStructured),
            "block" => return Ok(Self::DEFAULT_BLOCK),
            _ => {}
        }
        parse_block(name).ok_or_else(|| UnknownName::among_patterns("sparsity", name, Self::spellings()))
    }
}

/// Parses `block-0.9-64`, which torchao's generation script calls `bsr-0.9-64`.
fn parse_block(name: &str) -> Option<Sparsity> {
    let parameters = name.strip_prefix("block-").or_else(|| name.strip_prefix("bsr-"))?;
    let (level, side) = parameters.split_once('-')?;
    let digits = level.strip_prefix("0.").filter(|digits| matches!(digits.len(), 1 | 2))?;
    let hundredths: u8 = digits.parse().ok()?;
    let percent = if digits.len() == 1 { hundredths * 10 } else { hundredths };
    let side = side.parse().ok().filter(|&side| side > 0 && !parameters.contains("-0"))?;
    (percent > 0 && !parameters.contains('+')).then_some(Sparsity::Block { percent, block_size: side })
}

crate::written_as_a_name!(
    Sparsity,
    "Sparsity",
    "a sparsity: semi-sparse (also written 2:4), or block with its level and side, such as block-0.9-64",
    Sparsity::spellings()
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_exactly_and_round_trip() {
        let block = |percent, side| Sparsity::Block { percent, block_size: side };
        for (name, expected, shown) in [
            ("semi-sparse", Sparsity::SemiStructured, "semi-sparse"),
            ("2:4", Sparsity::SemiStructured, "semi-sparse"),
            ("block", block(90, 64), "block-0.9-64"),
            ("bsr-0.9-64", block(90, 64), "block-0.9-64"),
            ("block-0.75-32", block(75, 32), "block-0.75-32"),
            ("block-0.05-16", block(5, 16), "block-0.05-16"),
        ] {
            let sparsity: Sparsity = name.parse().unwrap();
            assert_eq!((sparsity, sparsity.to_string().as_str()), (expected, shown));
            assert_eq!(shown.parse(), Ok(expected));
        }
        for name in
            ["None", "", "block-", "block-1.0-64", "block-0.0-64", "block-0.9-0", "block-0.9-064", "block-.9-64"]
        {
            assert!(name.parse::<Sparsity>().is_err(), "{name}");
        }
        for name in ["block-0.9", "block-0.999-64", "bsr--0.9-64", "block-0.9-64-", "block-0.+9-64", "semi"] {
            assert!(name.parse::<Sparsity>().is_err(), "{name}");
        }
    }
}
