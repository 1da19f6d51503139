//! Outputs of foreign calls, and detection of elements that a call did not write.

use super::argument::{BufferRole, ResolvedBuffer};
use crate::{Output, ZooError, element_bytes};
use calorimeter_recipes::Element;

/// All ones is NaN in every float type, including e4m3.
const POISON: u8 = 0xFF;

/// Access to the buffers of a call.
pub(super) trait CallBuffers {
    /// Buffers in argument order, without scalars.
    fn buffers(&self) -> &[ResolvedBuffer];

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
fn reveals_unwritten(buffer: &ResolvedBuffer) -> bool {
    buffer.role != BufferRole::Out || is_float(buffer.element)
}

fn is_float(element: Element) -> bool {
    !matches!(element, Element::Signed(_) | Element::Unsigned(_))
}

/// Buffer content after a call.
struct BufferReadback {
    bytes: Vec<u8>,
    values: Vec<f32>,
    /// True if unwritten elements are recognizable in `values`.
    reveals_unwritten: bool,
}

impl BufferReadback {
    /// Replaces unwritten elements by NaN: those that differ from a second call on differently poisoned memory.
    fn mark_unwritten(self, again: &Self) -> Output {
        if self.reveals_unwritten {
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
pub(super) fn call_and_read(buffers: &mut dyn CallBuffers) -> Result<Vec<Output>, ZooError> {
    let first = poison_and_call(buffers, POISON)?;
    if first.iter().all(|left| left.reveals_unwritten) {
        return Ok(first.into_iter().map(|left| output(left.values)).collect());
    }
    let second = poison_and_call(buffers, 0)?;
    Ok(first.into_iter().zip(&second).map(|(left, again)| left.mark_unwritten(again)).collect())
}

/// Reads the outputs of the last call. `None` if a buffer is also read, because it accumulates over calls.
pub(super) fn read_last(buffers: &mut dyn CallBuffers) -> Result<Option<Vec<Output>>, ZooError> {
    if buffers.buffers().iter().any(|buffer| buffer.role == BufferRole::InOut) {
        return Ok(None);
    }
    Ok(Some(read(buffers)?.into_iter().map(|left| output(left.values)).collect()))
}

fn poison_and_call(buffers: &mut dyn CallBuffers, poison: u8) -> Result<Vec<BufferReadback>, ZooError> {
    for index in written_buffers(buffers) {
        match buffers.buffers()[index].role {
            BufferRole::InOut => buffers.restore(index)?,
            BufferRole::In | BufferRole::Out => buffers.fill(index, poison)?,
        }
    }
    buffers.call()?;
    read(buffers)
}

fn read(buffers: &mut dyn CallBuffers) -> Result<Vec<BufferReadback>, ZooError> {
    let each = written_buffers(buffers).into_iter().map(|index| {
        let bytes = buffers.read(index)?;
        let buffer = &buffers.buffers()[index];
        Ok(BufferReadback {
            values: element_bytes::decode(&bytes, buffer.element),
            bytes,
            reveals_unwritten: reveals_unwritten(buffer),
        })
    });
    each.collect()
}

fn written_buffers(buffers: &dyn CallBuffers) -> Vec<usize> {
    (0..buffers.buffers().len()).filter(|&index| buffers.buffers()[index].role.is_written()).collect()
}

fn output(values: Vec<f32>) -> Output {
    Output { rows: 1, cols: values.len(), values }
}

#[cfg(test)]
mod tests {
    use super::super::argument::ResolvedContent;
    use super::*;

    /// Writes the first elements of a byte buffer, and increments a second buffer.
    struct HalfWriter {
        declared: [ResolvedBuffer; 2],
        bytes: [Vec<u8>; 2],
    }

    impl CallBuffers for HalfWriter {
        fn buffers(&self) -> &[ResolvedBuffer] {
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
    fn unwritten_integers_are_found() {
        let buffer =
            |role| ResolvedBuffer { element: Element::Unsigned(8), length: 4, role, content: ResolvedContent::Zero };
        let mut half = HalfWriter {
            declared: [buffer(BufferRole::Out), buffer(BufferRole::InOut)],
            bytes: [vec![0; 4], vec![0; 4]],
        };
        for _ in 0..2 {
            let outputs = call_and_read(&mut half).unwrap();
            assert_eq!(outputs[0].values[..2], [0.0, 255.0]);
            assert!(outputs[0].values[2..].iter().all(|value| value.is_nan()));
            assert_eq!(outputs[1].values, [6.0; 4]);
        }
        assert_eq!(read_last(&mut half), Ok(None));
    }
}
