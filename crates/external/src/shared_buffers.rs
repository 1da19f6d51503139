//! Inputs and outputs of all buffer sets in a file that both processes map or read.
//!
//! The file is in memory (`/dev/shm`) where that exists. The other process maps the file; this process reads and writes
//! it, so that no code here dereferences memory that another process may change. On Linux the file has no name in any
//! folder, so that nothing remains if this process is killed.

use crate::protocol::{Buffer, BufferSet};
use calorimeter_zoo::element_bytes::{decode, encode};
use calorimeter_zoo::{Element, Matrix, Output};
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use tempfile::TempPath;

/// Alignment of each buffer in bytes: a cache line pair, and the widest vector of any processor.
const ALIGNMENT: u64 = 256;

/// File with the buffers of all sets.
pub(crate) struct SharedBuffers {
    file: File,
    /// Path by which the other process opens the file.
    pub path: String,
    /// Removes a file that has a name.
    _name: Option<TempPath>,
    /// Position of each buffer, by set.
    pub sets: Vec<BufferSet>,
    /// Bytes of the file.
    pub bytes: u64,
    /// Hash of each input by set, as written.
    written: Vec<Vec<u64>>,
}

impl SharedBuffers {
    /// Creates the file for some number of sets.
    pub(crate) fn new(inputs: &[([u64; 2], Element)], outputs: &[([u64; 2], Element)], sets: u32) -> io::Result<Self> {
        let mut bytes = 0;
        let mut place = |&(shape, dtype): &([u64; 2], Element)| {
            let buffer = Buffer { offset: bytes, shape, dtype };
            bytes = (bytes + buffer.bytes()).next_multiple_of(ALIGNMENT);
            buffer
        };
        let mut set = || BufferSet {
            inputs: inputs.iter().map(&mut place).collect(),
            outputs: outputs.iter().map(&mut place).collect(),
        };
        let sets: Vec<BufferSet> = (0..sets).map(|_| set()).collect();
        let folder = if Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
        let (file, path, name) = if Path::new("/proc/self/fd").is_dir() {
            let file = tempfile::tempfile_in(folder)?;
            let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
            (file, path, None)
        } else {
            let (file, path) = tempfile::Builder::new().prefix("calorimeter-").tempfile_in(folder)?.into_parts();
            (file, path.display().to_string(), Some(path))
        };
        // An empty file cannot be mapped.
        let bytes = bytes.max(ALIGNMENT);
        file.set_len(bytes)?;
        let written = sets.iter().map(|set| vec![0; set.inputs.len()]).collect();
        Ok(Self { file, path, _name: name, sets, bytes, written })
    }

    /// Writes the inputs of a set, and NaN to its outputs.
    ///
    /// Every byte is written, so that a full disk is an error here and not a signal in the process that maps the file.
    pub(crate) fn fill(&mut self, set: u32, inputs: &[Matrix]) -> io::Result<()> {
        self.write_inputs(set, inputs)?;
        self.poison(set)
    }

    /// Writes the first inputs of a set.
    pub(crate) fn write_inputs(&mut self, set: u32, inputs: &[Matrix]) -> io::Result<()> {
        let hashes = &mut self.written[set as usize];
        for ((buffer, matrix), hash) in self.sets[set as usize].inputs.iter().zip(inputs).zip(hashes) {
            let bytes = encode(&matrix.values, buffer.dtype);
            self.file.write_all_at(&bytes, buffer.offset)?;
            *hash = hash_of(&bytes);
        }
        Ok(())
    }

    /// Index of the first input of a set whose content was changed since it was written.
    pub(crate) fn changed_input(&self, set: u32) -> io::Result<Option<usize>> {
        let mut bytes = Vec::new();
        let inputs = self.sets[set as usize].inputs.iter().zip(&self.written[set as usize]);
        for (index, (buffer, &hash)) in inputs.enumerate() {
            bytes.resize(buffer.bytes() as usize, 0);
            self.file.read_exact_at(&mut bytes, buffer.offset)?;
            if hash_of(&bytes) != hash {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Fills the outputs of a set with bits that are NaN in every float type.
    pub(crate) fn poison(&self, set: u32) -> io::Result<()> {
        for buffer in &self.sets[set as usize].outputs {
            self.file.write_all_at(&vec![0xFF; buffer.bytes() as usize], buffer.offset)?;
        }
        Ok(())
    }

    /// Reads the outputs of a set.
    pub(crate) fn read(&self, set: u32) -> io::Result<Vec<Output>> {
        let read = |buffer: &Buffer| {
            let mut bytes = vec![0; buffer.bytes() as usize];
            self.file.read_exact_at(&mut bytes, buffer.offset)?;
            let [rows, cols] = buffer.shape.map(|size| size as usize);
            Ok(Output { rows, cols, values: decode(&bytes, buffer.dtype) })
        };
        self.sets[set as usize].outputs.iter().map(read).collect()
    }
}

fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_zoo::{Dtype, Operand};

    #[test]
    fn buffers_do_not_overlap_and_keep_their_values() {
        let f32 = Element::Float(Dtype::F32);
        let input = Operand::normal(3, 5, f32).matrix(1);
        let shapes = [([3, 5], f32)];
        let mut buffers =
            SharedBuffers::new(&shapes, &[([3, 5], Element::Float(Dtype::Bf16)), ([1, 1], f32)], 2).unwrap();
        (0..2).for_each(|set| buffers.fill(set, std::slice::from_ref(&input)).unwrap());
        let mut ends: Vec<(u64, u64)> = buffers
            .sets
            .iter()
            .flat_map(|set| set.inputs.iter().chain(&set.outputs))
            .map(|buffer| (buffer.offset, buffer.offset + buffer.bytes()))
            .collect();
        ends.sort_unstable();
        assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ends:?}");
        assert!(ends.iter().all(|(start, end)| start % ALIGNMENT == 0 && *end <= buffers.bytes), "{ends:?}");
        let output = buffers.read(1).unwrap();
        assert!(output.iter().flat_map(|output| &output.values).all(|value| value.is_nan()), "{output:?}");
        let written = std::fs::read(&buffers.path).unwrap();
        let at = buffers.sets[1].inputs[0];
        assert_eq!(decode(&written[at.offset as usize..][..at.bytes() as usize], f32), &input.values[..]);
        assert_eq!(buffers.changed_input(1).unwrap(), None);
        File::options().write(true).open(&buffers.path).unwrap().write_all_at(&[1], at.offset + 7).unwrap();
        assert_eq!((buffers.changed_input(0).unwrap(), buffers.changed_input(1).unwrap()), (None, Some(0)));
    }
}
