//! Dense packing of values of 1 to 8 bits into 32-bit words, first value in the lowest bits.
//!
//! Thirty-two values of `b` bits fill `b` words exactly, so every multiple of 32 values starts at a word.

use crate::Format;

/// Values of a packing block; every row is padded to a multiple of it.
pub const BLOCK: usize = Format::PACKING_BLOCK;

/// Packs one value per byte into words; the length of `codes` is a multiple of [`BLOCK`], and each value has at most
/// `bits` bits.
#[inline(always)]
pub fn pack(codes: &[u8], bits: u32, words: &mut [u32]) {
    match bits {
        8 => {
            for (word, codes) in words.iter_mut().zip(codes.as_chunks::<4>().0) {
                *word = u32::from_le_bytes(*codes);
            }
        }
        4 => {
            for (word, codes) in words.iter_mut().zip(codes.as_chunks::<8>().0) {
                *word = compact(*codes, 4) as u32;
            }
        }
        _ => {
            for (words, codes) in words.chunks_exact_mut(bits as usize).zip(codes.as_chunks::<BLOCK>().0) {
                // Eight values fill `bits` bytes; the excess bytes are overwritten by the next store.
                let mut bytes = [0; BLOCK + 4];
                for (at, codes) in codes.as_chunks::<8>().0.iter().enumerate() {
                    bytes[at * bits as usize..][..8].copy_from_slice(&compact(*codes, bits).to_le_bytes());
                }
                for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
                    *word = u32::from_le_bytes(*bytes);
                }
            }
        }
    }
}

/// Compacts eight values into adjacent bits: first pairs, then groups of four.
#[inline(always)]
fn compact(codes: [u8; 8], bits: u32) -> u64 {
    let apart = u64::from_le_bytes(codes);
    let twos = apart & 0x00FF_00FF_00FF_00FF | (apart & 0xFF00_FF00_FF00_FF00) >> (8 - bits);
    let fours = twos & 0x0000_FFFF_0000_FFFF | (twos & 0xFFFF_0000_FFFF_0000) >> (16 - 2 * bits);
    fours & 0xFFFF_FFFF | fours >> 32 << (4 * bits)
}

/// Returns the value at `index` of a row.
#[inline(always)]
pub fn unpack(words: &[u32], index: usize, bits: u32) -> u32 {
    let at = index * bits as usize;
    let (word, shift) = (at / 32, at as u32 % 32);
    let low = words[word] >> shift;
    let high = if shift + bits > 32 { words[word + 1] << (32 - shift) } else { 0 };
    (low | high) & (u32::MAX >> (32 - bits))
}

/// Stores a value at `index` of a row whose bits are still zero there.
#[inline(always)]
pub fn insert(words: &mut [u32], index: usize, bits: u32, code: u32) {
    let at = index * bits as usize;
    let (word, shift) = (at / 32, at as u32 % 32);
    words[word] |= code << shift;
    if shift + bits > 32 {
        words[word + 1] |= code >> (32 - shift);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packing_round_trips(bits in 1u32..=8, blocks in 1usize..5, seed in any::<u64>()) {
            let mix = |i: usize| (seed.wrapping_add(i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u8;
            let codes: Vec<u8> = (0..blocks * BLOCK).map(|i| mix(i) & (0xFF >> (8 - bits))).collect();
            let mut packed = vec![0; codes.len() / 32 * bits as usize];
            pack(&codes, bits, &mut packed);
            let unpacked: Vec<u8> = (0..codes.len()).map(|i| unpack(&packed, i, bits) as u8).collect();
            prop_assert_eq!(unpacked, codes);
        }
    }

    #[test]
    fn four_bit_values_pack_low_nibble_first() {
        let codes: Vec<u8> = (0..32).map(|i| i % 16).collect();
        let mut packed = [0; 4];
        pack(&codes, 4, &mut packed);
        assert_eq!(packed[0].to_le_bytes(), [0x10, 0x32, 0x54, 0x76]);
    }
}
