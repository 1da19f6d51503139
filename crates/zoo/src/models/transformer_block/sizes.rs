//! Fixed sizes of `transformer_block`.

/// Tokens per sequence.
pub const TOKENS: u64 = 16;
/// Attention heads.
pub const HEADS: u64 = 8;
