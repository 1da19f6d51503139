//! Products of bytes, four by four into sixteen sums, whatever instructions there are.

/// The instructions of one set, proven to be there by the value. Each function must be inlined into a [`ByteJob`] that the
/// set runs, or it is a call.
pub trait Bytes: Copy {
    /// Sixteen sums.
    type Sums: Copy;
    /// Sixteen words of four bytes.
    type Words: Copy;

    /// Rows, and vectors of sixteen columns, of a tile whose sums stay in registers.
    const TILE: (usize, usize);
    /// What each byte of a word has on it: 128, which makes signed ones unsigned, where the instructions want those.
    const ADDED: u8;

    /// Sums of nothing.
    fn nothing(self) -> Self::Sums;

    /// Sixteen words.
    fn words(self, words: &[u32; 16]) -> Self::Words;

    /// Adds to each sum the products of its word's bytes with the four signed bytes of `x`, modulo 2³². The word's are unsigned if
    /// something is added to them, else signed.
    fn add_products(self, sums: Self::Sums, words: Self::Words, x: u32) -> Self::Sums;

    /// The sums.
    fn store(self, sums: Self::Sums) -> [i32; 16];
}

/// What a set is to run, all of it inlined.
pub trait ByteJob {
    /// Runs it.
    fn on<B: Bytes>(self, bytes: B);
}
