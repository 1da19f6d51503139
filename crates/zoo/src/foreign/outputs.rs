//! Outputs of foreign calls, and detection of elements that a call did not write.

use super::argument::{Buffer, Role};
use crate::{Output, ZooError, numbers};
use calorimeter_recipes::Element;

/// All ones is NaN in every float type, including e4m3.
const POISON: u8 = 0xFF;

/// Access to the buffers of a call.
pub trait Buffers {
    /// Buffers in argument order, without scalars.
    fn buffers(&self) -> &[Buffer];

    /// Sets every byte of a buffer.
    fn fill(&mut self, index: usize, byte: u8) -> Result<(), ZooError>;

    /// Restores the initial content of a buffer.
    fn restore(&mut self, index: usize) -> Result<(), ZooError>;

    /// Reads a buffer.
    fn read(&mut self, index: usize) -> Result<Vec<u8>, ZooError>;

    /// Calls once and waits.
    fn call(&mut self) -> Result<(), ZooError>;
}

/// True if unwritten elements are recognizable after one call. Integers have no NaN, so they are not.
fn shows(buffer: &Buffer) -> bool {
    buffer.role != Role::Out || is_float(buffer.element)
}

fn is_float(element: Element) -> bool {
    !matches!(element, Element::Signed(_) | Element::Unsigned(_))
}

/// Buffer content after a call.
struct Left {
    bytes: Vec<u8>,
    values: Vec<f32>,
    /// True if unwritten elements are recognizable in `values`.
    shows: bool,
}

impl Left {
    /// Replaces unwritten elements by NaN: those that differ from a second call on differently poisoned memory.
    fn beside(self, again: &Self) -> Output {
        if self.shows {
            return output(self.values);
        }
        let width = (self.bytes.len() / self.values.len().max(1)).max(1);
        let same = self.bytes.chunks(width).zip(again.bytes.chunks(width)).map(|(one, other)| one == other);
        output(self.values.into_iter().zip(same).map(|(value, same)| if same { value } else { f32::NAN }).collect())
    }
}

/// Calls once on restored or poisoned buffers and reads the outputs; unwritten elements are NaN.
///
/// Integer outputs need a second call on differently poisoned memory.
pub fn fresh(buffers: &mut dyn Buffers) -> Result<Vec<Output>, ZooError> {
    let first = called(buffers, POISON)?;
    if first.iter().all(|left| left.shows) {
        return Ok(first.into_iter().map(|left| output(left.values)).collect());
    }
    let second = called(buffers, 0)?;
    Ok(first.into_iter().zip(&second).map(|(left, again)| left.beside(again)).collect())
}

/// Reads the outputs of the last call. `None` if a buffer is also read, because it accumulates over calls.
pub fn left(buffers: &mut dyn Buffers) -> Result<Option<Vec<Output>>, ZooError> {
    if buffers.buffers().iter().any(|buffer| buffer.role == Role::InOut) {
        return Ok(None);
    }
    Ok(Some(read(buffers)?.into_iter().map(|left| output(left.values)).collect()))
}

fn called(buffers: &mut dyn Buffers, poison: u8) -> Result<Vec<Left>, ZooError> {
    for index in written_buffers(buffers) {
        match buffers.buffers()[index].role {
            Role::InOut => buffers.restore(index)?,
            Role::In | Role::Out => buffers.fill(index, poison)?,
        }
    }
    buffers.call()?;
    read(buffers)
}

fn read(buffers: &mut dyn Buffers) -> Result<Vec<Left>, ZooError> {
    let each = written_buffers(buffers).into_iter().map(|index| {
        let bytes = buffers.read(index)?;
        let buffer = &buffers.buffers()[index];
        Ok(Left { values: numbers::numbers(&bytes, buffer.element), bytes, shows: shows(buffer) })
    });
    each.collect()
}

fn written_buffers(buffers: &dyn Buffers) -> Vec<usize> {
    (0..buffers.buffers().len()).filter(|&index| buffers.buffers()[index].role.is_written()).collect()
}

fn output(values: Vec<f32>) -> Output {
    Output { rows: 1, cols: values.len(), values }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the first elements of a byte buffer, and increments a second buffer.
    struct Half {
        declared: [Buffer; 2],
        bytes: [Vec<u8>; 2],
    }

    impl Buffers for Half {
        fn buffers(&self) -> &[Buffer] {
            &self.declared
        }

        fn fill(&mut self, index: usize, byte: u8) -> Result<(), ZooError> {
            self.bytes[index].fill(byte);
            Ok(())
        }

        fn restore(&mut self, index: usize) -> Result<(), ZooError> {
            self.fill(index, 5)
        }

        fn read(&mut self, index: usize) -> Result<Vec<u8>, ZooError> {
            Ok(self.bytes[index].clone())
        }

        fn call(&mut self) -> Result<(), ZooError> {
            self.bytes[0][..2].copy_from_slice(&[0, 255]);
            self.bytes[1].iter_mut().for_each(|byte| *byte += 1);
            Ok(())
        }
    }

    #[test]
    fn whole_numbers_that_were_not_written_are_found_and_what_is_changed_in_place_starts_anew() {
        let buffer = |role| Buffer { element: Element::Unsigned(8), length: 4, role, fill: None };
        let mut half = Half { declared: [buffer(Role::Out), buffer(Role::InOut)], bytes: [vec![0; 4], vec![0; 4]] };
        for _ in 0..2 {
            let outputs = fresh(&mut half).unwrap();
            assert_eq!(outputs[0].values[..2], [0.0, 255.0]);
            assert!(outputs[0].values[2..].iter().all(|value| value.is_nan()));
            assert_eq!(outputs[1].values, [6.0; 4]);
        }
        assert_eq!(left(&mut half), Ok(None));
    }
}
