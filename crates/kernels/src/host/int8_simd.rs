//! Portable interface of int8 dot products: four products per word into sixteen accumulators.

/// SIMD operations of one instruction set; a value proves that the processor supports it. Every function must be
/// inlined into a [`Int8Task`] that the set runs; otherwise it is a call.
pub(super) trait Int8Simd: Copy {
    /// Sixteen accumulators.
    type Sums: Copy;
    /// Sixteen words of four bytes.
    type Words: Copy;

    /// Rows, and vectors of sixteen columns, of a tile whose accumulators stay in registers.
    const TILE: (usize, usize);
    /// Offset of the weight bytes: 128 makes signed bytes unsigned, for instructions that require it.
    const WEIGHT_OFFSET: u8;

    /// Zeroed accumulators.
    fn zero(self) -> Self::Sums;

    /// Loads sixteen words.
    fn words(self, words: &[u32; 16]) -> Self::Words;

    /// Adds to each accumulator the dot product of its word's bytes with the four signed bytes of `x`, modulo 2³². The
    /// bytes of the words are unsigned if the offset is nonzero, else signed.
    fn dot_accumulate(self, sums: Self::Sums, words: Self::Words, x: u32) -> Self::Sums;

    /// Returns the accumulators.
    fn store(self, sums: Self::Sums) -> [i32; 16];
}

/// Task that an instruction set runs, fully inlined.
pub(super) trait Int8Task {
    /// Runs the task.
    fn execute<B: Int8Simd>(self, bytes: B);
}
