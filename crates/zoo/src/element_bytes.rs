//! Conversion between f32 values and device memory.

use calorimeter_recipes::{Dtype, Element, ElementCodec};
use half::{bf16, f16};
use rayon::prelude::*;

/// Elements that one task converts.
const CHUNK_LEN: usize = 1 << 14;

/// Encodes values as elements of 8, 16 or 32 bits, or as 64-bit integers.
pub fn encode(values: &[f32], element: Element) -> Vec<u8> {
    match element {
        Element::Float(Dtype::F32) => encode_with(values, f32::to_le_bytes),
        Element::Float(Dtype::Bf16) => encode_with(values, |value| bf16::from_f32(value).to_le_bytes()),
        Element::Float(Dtype::F16) => encode_with(values, |value| f16::from_f32(value).to_le_bytes()),
        _ if element.bits() == 8 => encode_with(values, |value| [element.encode(value) as u8]),
        _ if element.bits() == 16 => encode_with(values, |value| (element.encode(value) as u16).to_le_bytes()),
        Element::Signed(64) => encode_with(values, |value| (value as i64).to_le_bytes()),
        _ => encode_with(values, |value| element.encode(value).to_le_bytes()),
    }
}

fn encode_with<const WIDTH: usize>(values: &[f32], bytes_of: impl Fn(f32) -> [u8; WIDTH] + Sync) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * WIDTH];
    bytes.par_chunks_mut(CHUNK_LEN * WIDTH).zip(values.par_chunks(CHUNK_LEN)).for_each(|(bytes, values)| {
        let each = bytes.as_chunks_mut::<WIDTH>().0.iter_mut().zip(values);
        each.for_each(|(bytes, &value)| *bytes = bytes_of(value));
    });
    bytes
}

/// Maps values in parallel.
pub(crate) fn par_map<T: Send>(values: &[f32], of: impl Fn(f32) -> T + Sync) -> Vec<T> {
    values.par_iter().with_min_len(CHUNK_LEN).map(|&value| of(value)).collect()
}

/// Little-endian bytes of 32-bit words.
#[cfg(feature = "native")]
pub(crate) fn words_to_bytes(words: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0; words.len() * 4];
    bytes.par_chunks_exact_mut(4).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
    bytes
}

/// Decodes elements of 8, 16 or 32 bits, or 64-bit integers, as f32.
pub fn decode(bytes: &[u8], element: Element) -> Vec<f32> {
    decode_as(bytes, element)
}

/// Decodes elements of 8, 16 or 32 bits as f64.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub(crate) fn decode_f64(bytes: &[u8], element: Element) -> Vec<f64> {
    decode_as(bytes, element)
}

/// Type that represents every f32: f32 or f64.
trait FromF32: From<f32> + Default + Clone + Send {}

impl<T: From<f32> + Default + Clone + Send> FromF32 for T {}

fn decode_as<T: FromF32>(bytes: &[u8], element: Element) -> Vec<T> {
    match element {
        Element::Float(Dtype::F32) => decode_with(bytes, f32::from_le_bytes),
        Element::Float(Dtype::Bf16) => decode_with(bytes, |bytes| bf16::from_le_bytes(bytes).to_f32()),
        Element::Float(Dtype::F16) => decode_with(bytes, |bytes| f16::from_le_bytes(bytes).to_f32()),
        _ if element.bits() == 8 => decode_with(bytes, |[byte]| element.decode(byte.into())),
        _ if element.bits() == 16 => decode_with(bytes, |bytes| element.decode(u16::from_le_bytes(bytes).into())),
        Element::Signed(64) => decode_with(bytes, |bytes| i64::from_le_bytes(bytes) as f32),
        _ => decode_with(bytes, |bytes| element.decode(u32::from_le_bytes(bytes))),
    }
}

fn decode_with<const WIDTH: usize, T: FromF32>(bytes: &[u8], number_of: impl Fn([u8; WIDTH]) -> f32 + Sync) -> Vec<T> {
    let mut numbers = vec![T::default(); bytes.len() / WIDTH];
    numbers.par_chunks_mut(CHUNK_LEN).zip(bytes.par_chunks(CHUNK_LEN * WIDTH)).for_each(|(numbers, bytes)| {
        let each = numbers.iter_mut().zip(bytes.as_chunks::<WIDTH>().0);
        each.for_each(|(number, &bytes)| *number = number_of(bytes).into());
    });
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_round_trip_and_all_ones_are_nan() {
        let floats = Dtype::ALL.map(Element::Float);
        for element in floats.into_iter().chain([Element::E4m3, Element::Signed(16), Element::Signed(32)]) {
            // Longer than the chunk of one task.
            let some = [0.0, 1.0, -2.0, 448.0, 0.0].repeat(CHUNK_LEN / 4);
            let stored = encode(&some, element);
            let width = element.bits() as usize / 8;
            let code = |&number: &f32| element.encode(number).to_le_bytes()[..width].to_vec();
            assert!(stored == some.iter().flat_map(code).collect::<Vec<u8>>(), "{element}");
            assert_eq!(decode(&stored, element), some, "{element}");
            let poison = decode(&[0xFF; 8], element);
            assert!(matches!(element, Element::Signed(_)) || poison.iter().all(|number| number.is_nan()), "{element}");
        }
    }
}
