//! Inputs and outputs of all buffer sets in memory that two processes share.

use crate::protocol::{Buffer, BufferSet, SharedMemory};
use crate::shared_file::SharedFile;
#[cfg(feature = "native")]
use calorimeter_kernels::native::DeviceBuffer;
use calorimeter_zoo::element_bytes::{decode, encode};
use calorimeter_zoo::{Element, Matrix, Output};
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::io;
use std::ops::Range;
use std::sync::LazyLock;

/// Alignment of each buffer in bytes: a cache line pair, and the widest vector of any processor or GPU.
const ALIGNMENT: u64 = 256;

/// Byte that fills outputs before the first launch. All bits are set, which is NaN in every float type.
pub(crate) const POISON: u8 = 0xFF;

/// Number of rewritten segments of an input that is too large to be rewritten completely.
const SEGMENTS: u64 = 64;

/// Memory that two processes share.
pub(crate) enum Memory {
    File(SharedFile),
    #[cfg(feature = "native")]
    Cuda(DeviceBuffer),
}

impl Memory {
    fn write(&mut self, first: u64, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.write(first, bytes),
            #[cfg(feature = "native")]
            Self::Cuda(buffer) => buffer.upload_at(first as usize, bytes).map_err(io::Error::other),
        }
    }

    fn read(&self, first: u64, bytes: u64) -> io::Result<Vec<u8>> {
        match self {
            Self::File(file) => file.read(first, bytes),
            #[cfg(feature = "native")]
            Self::Cuda(buffer) => buffer.download_at(first as usize, bytes as usize).map_err(io::Error::other),
        }
    }

    fn fill(&mut self, first: u64, bytes: u64, byte: u8) -> io::Result<()> {
        match self {
            Self::File(file) => file.write(first, &vec![byte; bytes as usize]),
            #[cfg(feature = "native")]
            Self::Cuda(buffer) => buffer.fill_at(first as usize, bytes as usize, byte).map_err(io::Error::other),
        }
    }

    /// Copies bytes within the memory. `content` equals the bytes at `from`.
    fn copy(&mut self, from: u64, to: u64, content: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => {
                let _ = from;
                file.write(to, content)
            }
            #[cfg(feature = "native")]
            Self::Cuda(buffer) => {
                buffer.copy_within(from as usize, to as usize, content.len()).map_err(io::Error::other)
            }
        }
    }

    /// Name by which the other process opens the memory.
    pub(crate) fn shared(&self) -> io::Result<SharedMemory> {
        match self {
            Self::File(file) => Ok(SharedMemory::File(file.path.clone())),
            #[cfg(feature = "native")]
            Self::Cuda(buffer) => {
                let handle = buffer.ipc_handle().map_err(io::Error::other)?;
                Ok(SharedMemory::CudaIpc(handle.iter().map(|byte| format!("{byte:02x}")).collect()))
            }
        }
    }
}

/// Size and element type of an input or output.
pub(crate) type Slot = ([u64; 2], Element);

/// Returns the positions of the inputs and outputs of `sets` buffer sets, and the size of the memory in bytes.
pub(crate) fn place(inputs: &[Slot], outputs: &[Slot], sets: u32) -> (Vec<BufferSet>, u64) {
    let mut bytes = 0;
    let mut place = |&(shape, dtype): &Slot| {
        let buffer = Buffer { offset: bytes, shape, dtype };
        bytes = (bytes + buffer.bytes()).next_multiple_of(ALIGNMENT);
        buffer
    };
    let mut set = || BufferSet {
        inputs: inputs.iter().map(&mut place).collect(),
        outputs: outputs.iter().map(&mut place).collect(),
    };
    let sets = (0..sets).map(|_| set()).collect();
    // Empty memory cannot be shared.
    (sets, bytes.max(ALIGNMENT))
}

/// Buffers of all sets in shared memory.
pub(crate) struct SharedBuffers {
    memory: Memory,
    sets: Vec<BufferSet>,
    /// Hash of the written content of each input, by set.
    written: Vec<Vec<u64>>,
}

impl SharedBuffers {
    /// Creates the buffers of sets at given positions.
    pub(crate) fn new(memory: Memory, sets: Vec<BufferSet>) -> Self {
        let written = sets.iter().map(|set| vec![0; set.inputs.len()]).collect();
        Self { memory, sets, written }
    }

    /// True for memory of a GPU.
    pub(crate) fn is_on_gpu(&self) -> bool {
        !matches!(self.memory, Memory::File(_))
    }

    /// Number of sets.
    pub(crate) fn sets(&self) -> u32 {
        self.sets.len() as u32
    }

    /// Writes the inputs of a set, beginning with the first input. `inputs` may omit the last inputs.
    pub(crate) fn write_inputs(&mut self, set: u32, inputs: &[Vec<u8>]) -> io::Result<()> {
        let buffers = self.sets[set as usize].inputs.iter().zip(inputs);
        for ((buffer, bytes), hash) in buffers.zip(&mut self.written[set as usize]) {
            self.memory.write(buffer.offset, bytes)?;
            *hash = hash_of(bytes);
        }
        Ok(())
    }

    /// Writes equal inputs to all sets, beginning with the input at index `first`.
    pub(crate) fn write_fixed(&mut self, first: usize, inputs: &[Matrix]) -> io::Result<()> {
        for (index, matrix) in (first..).zip(inputs) {
            let Buffer { offset, dtype, .. } = self.sets[0].inputs[index];
            let bytes = encode(&matrix.values, dtype);
            let hash = hash_of(&bytes);
            self.memory.write(offset, &bytes)?;
            for (set, written) in self.sets.iter().zip(&mut self.written) {
                written[index] = hash;
                if set.inputs[index].offset != offset {
                    self.memory.copy(offset, set.inputs[index].offset, &bytes)?;
                }
            }
        }
        Ok(())
    }

    /// Index of the first input of a set whose content was changed after it was written.
    pub(crate) fn changed_input(&self, set: u32) -> io::Result<Option<usize>> {
        let inputs = self.sets[set as usize].inputs.iter().zip(&self.written[set as usize]);
        for (index, (buffer, &hash)) in inputs.enumerate() {
            if hash_of(&self.memory.read(buffer.offset, buffer.bytes())?) != hash {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Rewrites the first inputs of a set. If the inputs have more than `max_bytes`, evenly spaced segments of at most
    /// `max_bytes` in total are rewritten. The elements of each segment are rotated by `positions`, except indices.
    /// With 0 positions, the present content is written again, in the same time.
    pub(crate) fn rotate_inputs(
        &mut self,
        set: u32,
        inputs: usize,
        positions: usize,
        max_bytes: u64,
    ) -> io::Result<()> {
        for buffer in &self.sets[set as usize].inputs[..inputs] {
            let is_index = matches!(buffer.dtype, Element::Signed(bits) | Element::Unsigned(bits) if bits > 8);
            let width = u64::from(buffer.dtype.bits() / 8);
            for Range { start, end } in segments(buffer.bytes(), width, max_bytes / inputs as u64) {
                let bytes = self.memory.read(buffer.offset + start, end - start)?;
                let mut rotated = bytes.clone();
                rotated.rotate_left((positions.max(1) * width as usize).min(bytes.len()));
                let content = if positions == 0 || is_index { &bytes } else { &rotated };
                self.memory.write(buffer.offset + start, content)?;
            }
        }
        Ok(())
    }

    /// Sets every byte of the outputs of a set to `byte`.
    pub(crate) fn fill_outputs(&mut self, set: u32, byte: u8) -> io::Result<()> {
        for buffer in &self.sets[set as usize].outputs {
            self.memory.fill(buffer.offset, buffer.bytes(), byte)?;
        }
        Ok(())
    }

    /// Reads the outputs of a set.
    pub(crate) fn read(&self, set: u32) -> io::Result<Vec<Output>> {
        let read = |buffer: &Buffer| {
            let bytes = self.memory.read(buffer.offset, buffer.bytes())?;
            let [rows, cols] = buffer.shape.map(|size| size as usize);
            Ok(Output { rows, cols, values: decode(&bytes, buffer.dtype) })
        };
        self.sets[set as usize].outputs.iter().map(read).collect()
    }
}

/// Byte ranges to rewrite in an input of elements of `width` bytes: the whole input, or evenly spaced segments, from
/// the beginning to the end of the input.
fn segments(bytes: u64, width: u64, max_bytes: u64) -> Vec<Range<u64>> {
    if bytes <= max_bytes {
        return std::iter::once(0..bytes).collect();
    }
    let length = (max_bytes / SEGMENTS).next_multiple_of(width);
    let start = |segment| (bytes - length) * segment / (SEGMENTS - 1) / width * width;
    (0..SEGMENTS).map(|segment| start(segment)..start(segment) + length).collect()
}

/// Returns a hash of a large buffer. Four independent lanes multiply the words by random factors. A program that
/// changes an input does not know the factors.
fn hash_of(bytes: &[u8]) -> u64 {
    const LANES: usize = 4;
    static KEYS: LazyLock<[u64; LANES]> = LazyLock::new(|| {
        let state = RandomState::new();
        std::array::from_fn(|lane| state.hash_one(lane) | 1)
    });
    let mut sums = *KEYS;
    let mut chunks = bytes.chunks_exact(LANES * size_of::<u64>());
    for chunk in &mut chunks {
        for (lane, (sum, word)) in sums.iter_mut().zip(chunk.chunks_exact(size_of::<u64>())).enumerate() {
            let word = word.try_into().map_or(0, u64::from_le_bytes);
            *sum = (*sum ^ word).wrapping_mul(KEYS[lane]).rotate_left(29);
        }
    }
    let mut hasher = DefaultHasher::new();
    (sums, bytes.len(), chunks.remainder()).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_zoo::{Dtype, Operand};
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    #[test]
    fn buffers_do_not_overlap_and_keep_their_values() {
        let f32 = Element::Float(Dtype::F32);
        let [input, weight] = [1, 2].map(|seed| Operand::normal(3, 5, f32).matrix(seed));
        let shapes = [([3, 5], f32), ([3, 5], f32)];
        let (sets, bytes) = place(&shapes, &[([3, 5], Element::Float(Dtype::Bf16)), ([1, 1], f32)], 2);
        let mut ends: Vec<(u64, u64)> = sets
            .iter()
            .flat_map(|set| set.inputs.iter().chain(&set.outputs))
            .map(|buffer| (buffer.offset, buffer.offset + buffer.bytes()))
            .collect();
        ends.sort_unstable();
        assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ends:?}");
        assert!(ends.iter().all(|(start, end)| start % ALIGNMENT == 0 && *end <= bytes), "{ends:?}");

        let file = SharedFile::new(bytes).unwrap();
        let path = file.path.clone();
        let mut buffers = SharedBuffers::new(Memory::File(file), sets.clone());
        buffers.write_fixed(1, std::slice::from_ref(&weight)).unwrap();
        for set in 0..2 {
            buffers.write_inputs(set, &[encode(&input.values, f32)]).unwrap();
            buffers.fill_outputs(set, POISON).unwrap();
        }
        let output = buffers.read(1).unwrap();
        assert!(output.iter().flat_map(|output| &output.values).all(|value| value.is_nan()), "{output:?}");
        let written = std::fs::read(&path).unwrap();
        for (at, matrix) in sets[1].inputs.iter().zip([&input, &weight]) {
            assert_eq!(decode(&written[at.offset as usize..][..at.bytes() as usize], f32), &matrix.values[..]);
        }
        assert_eq!(buffers.changed_input(1).unwrap(), None);
        buffers.rotate_inputs(0, 1, 4, bytes).unwrap();
        assert_eq!(buffers.changed_input(0).unwrap(), Some(0));
        buffers.rotate_inputs(0, 1, 11, bytes).unwrap();
        assert_eq!(buffers.changed_input(0).unwrap(), None);
        File::options().write(true).open(&path).unwrap().write_all_at(&[1], sets[1].inputs[1].offset + 7).unwrap();
        assert_eq!((buffers.changed_input(0).unwrap(), buffers.changed_input(1).unwrap()), (None, Some(1)));
    }

    #[test]
    fn large_inputs_are_rewritten_in_part_up_to_both_ends() {
        let f32 = Element::Float(Dtype::F32);
        let (elements, max_bytes) = (100_003, 65_536);
        let (sets, bytes) = place(&[([1, elements], f32), ([1, 5], f32)], &[], 1);
        let mut buffers = SharedBuffers::new(Memory::File(SharedFile::new(bytes).unwrap()), sets);
        let values = |elements: u64| (0..elements).map(|value| value as f32).collect::<Vec<f32>>();
        buffers.write_inputs(0, &[encode(&values(elements), f32), encode(&values(5), f32)]).unwrap();
        let read = |buffers: &SharedBuffers| -> Vec<Vec<f32>> {
            let inputs = buffers.sets[0].inputs.iter();
            inputs.map(|one| decode(&buffers.memory.read(one.offset, one.bytes()).unwrap(), f32)).collect()
        };
        buffers.rotate_inputs(0, 2, 0, max_bytes).unwrap();
        assert_eq!(buffers.changed_input(0).unwrap(), None);
        buffers.rotate_inputs(0, 2, 1, max_bytes).unwrap();
        let [large, small] = &read(&buffers)[..] else { panic!("two inputs") };
        let changed: Vec<usize> = (0..large.len()).filter(|&at| large[at] != at as f32).collect();
        assert_eq!((changed[0], changed[changed.len() - 1]), (0, large.len() - 1));
        let share = changed.len() as f64 * 4.0 / (max_bytes as f64 / 2.0);
        assert!(share > 0.9 && share <= 1.0, "{share}");
        assert!(changed.windows(2).all(|pair| pair[1] - pair[0] < large.len() / 64));
        assert_eq!(small, &[1.0, 2.0, 3.0, 4.0, 0.0]);
    }
}
