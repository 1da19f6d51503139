//! Conversion between f32 values and device memory.

use calorimeter_recipes::{Codes, Dtype, Element};
use half::{bf16, f16};
use rayon::prelude::*;

/// Elements that one task converts.
const SHARE: usize = 1 << 14;

/// Encodes values as elements of 8, 16 or 32 bits.
pub fn bytes(values: &[f32], element: Element) -> Vec<u8> {
    match element {
        Element::Float(Dtype::F32) => bytes_by(values, f32::to_le_bytes),
        Element::Float(Dtype::Bf16) => bytes_by(values, |value| bf16::from_f32(value).to_le_bytes()),
        Element::Float(Dtype::F16) => bytes_by(values, |value| f16::from_f32(value).to_le_bytes()),
        _ if element.bits() == 8 => bytes_by(values, |value| [element.encode(value) as u8]),
        _ if element.bits() == 16 => bytes_by(values, |value| (element.encode(value) as u16).to_le_bytes()),
        _ => bytes_by(values, |value| element.encode(value).to_le_bytes()),
    }
}

fn bytes_by<const WIDTH: usize>(values: &[f32], bytes_of: impl Fn(f32) -> [u8; WIDTH] + Sync) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * WIDTH];
    bytes.par_chunks_mut(SHARE * WIDTH).zip(values.par_chunks(SHARE)).for_each(|(bytes, values)| {
        let each = bytes.as_chunks_mut::<WIDTH>().0.iter_mut().zip(values);
        each.for_each(|(bytes, &value)| *bytes = bytes_of(value));
    });
    bytes
}

/// Maps values in parallel.
pub fn each<T: Send>(values: &[f32], of: impl Fn(f32) -> T + Sync) -> Vec<T> {
    values.par_iter().with_min_len(SHARE).map(|&value| of(value)).collect()
}

/// Little-endian bytes of 32-bit words.
#[cfg(feature = "cuda")]
pub fn of_words(words: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0; words.len() * 4];
    bytes.par_chunks_exact_mut(4).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
    bytes
}

/// Decodes elements of 8, 16 or 32 bits as f32.
pub fn numbers(bytes: &[u8], element: Element) -> Vec<f32> {
    numbers_as(bytes, element)
}

/// Decodes elements of 8, 16 or 32 bits as f64.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub fn doubles(bytes: &[u8], element: Element) -> Vec<f64> {
    numbers_as(bytes, element)
}

/// Type that represents every f32: f32 or f64.
trait Wide: From<f32> + Default + Clone + Send {}

impl<T: From<f32> + Default + Clone + Send> Wide for T {}

fn numbers_as<T: Wide>(bytes: &[u8], element: Element) -> Vec<T> {
    match element {
        Element::Float(Dtype::F32) => numbers_by(bytes, f32::from_le_bytes),
        Element::Float(Dtype::Bf16) => numbers_by(bytes, |bytes| bf16::from_le_bytes(bytes).to_f32()),
        Element::Float(Dtype::F16) => numbers_by(bytes, |bytes| f16::from_le_bytes(bytes).to_f32()),
        _ if element.bits() == 8 => numbers_by(bytes, |[byte]| element.decode(byte.into())),
        _ if element.bits() == 16 => numbers_by(bytes, |bytes| element.decode(u16::from_le_bytes(bytes).into())),
        _ => numbers_by(bytes, |bytes| element.decode(u32::from_le_bytes(bytes))),
    }
}

fn numbers_by<const WIDTH: usize, T: Wide>(bytes: &[u8], number_of: impl Fn([u8; WIDTH]) -> f32 + Sync) -> Vec<T> {
    let mut numbers = vec![T::default(); bytes.len() / WIDTH];
    numbers.par_chunks_mut(SHARE).zip(bytes.par_chunks(SHARE * WIDTH)).for_each(|(numbers, bytes)| {
        let each = numbers.iter_mut().zip(bytes.as_chunks::<WIDTH>().0);
        each.for_each(|(number, &bytes)| *number = number_of(bytes).into());
    });
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_the_way_there_and_back_and_all_ones_are_nan() {
        let floats = Dtype::ALL.map(Element::Float);
        for element in floats.into_iter().chain([Element::E4m3, Element::Signed(16), Element::Signed(32)]) {
            // Longer than the chunk of one task.
            let some = [0.0, 1.0, -2.0, 448.0, 0.0].repeat(SHARE / 4);
            let stored = bytes(&some, element);
            let width = element.bits() as usize / 8;
            let code = |&number: &f32| element.encode(number).to_le_bytes()[..width].to_vec();
            assert!(stored == some.iter().flat_map(code).collect::<Vec<u8>>(), "{element}");
            assert_eq!(numbers(&stored, element), some, "{element}");
            let poison = numbers(&[0xFF; 8], element);
            assert!(matches!(element, Element::Signed(_)) || poison.iter().all(|number| number.is_nan()), "{element}");
        }
    }
}
