//! Numbers as the bytes of memory.

use calorimeter_recipes::{Codes, Element};
use rayon::prelude::*;

/// The bytes of numbers that an element type of whole bytes holds exactly.
pub fn bytes(values: &[f32], element: Element) -> Vec<u8> {
    let width = width(element);
    let mut bytes = vec![0; values.len() * width];
    let each = bytes.par_chunks_exact_mut(width).zip(values);
    each.for_each(|(bytes, &value)| bytes.copy_from_slice(&element.encode(value).to_le_bytes()[..width]));
    bytes
}

/// The bytes of words.
#[cfg(feature = "cuda")]
pub fn of_words(words: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0; words.len() * 4];
    bytes.par_chunks_exact_mut(4).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
    bytes
}

/// The numbers of such bytes.
pub fn numbers(bytes: &[u8], element: Element) -> Vec<f32> {
    let width = width(element);
    let number = |bytes: &[u8]| {
        let mut code = [0; 4];
        code[..width].copy_from_slice(bytes);
        element.decode(u32::from_le_bytes(code))
    };
    bytes.par_chunks_exact(width).map(number).collect()
}

fn width(element: Element) -> usize {
    (element.bits() / 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_recipes::Dtype;

    #[test]
    fn numbers_survive_the_way_there_and_back_and_all_ones_are_nan() {
        let floats = Dtype::ALL.map(Element::Float);
        for element in floats.into_iter().chain([Element::E4m3, Element::Signed(32)]) {
            let some = [0.0, 1.0, -2.0, 448.0, 0.0];
            assert_eq!(numbers(&bytes(&some, element), element), some, "{element}");
            let poison = numbers(&[0xFF; 8], element);
            assert!(element == Element::Signed(32) || poison.iter().all(|number| number.is_nan()), "{element}");
        }
    }
}
