//! A sum over bytes, by which what was cut or changed is found out.

/// FNV-1a, which is the same in every build.
pub(super) fn checksum(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let bytes = bytes.into_iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
