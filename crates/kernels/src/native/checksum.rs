//! Checksum that detects truncated or modified cache entries.

/// FNV-1a, which is stable across builds.
pub(super) fn checksum(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let bytes = bytes.into_iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
