//! Its sizes that are always the same.

/// Tokens of each sequence.
pub const TOKENS: u64 = 16;
/// Attention heads.
pub const HEADS: u64 = 8;
