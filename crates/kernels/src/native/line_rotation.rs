//! Cyclic rotation of rows or columns of a matrix, for rotated buffer sets.

use super::{
    CudaDevice, CudaKernel, DeviceBuffer, NativeError,
    kernel::{KernelArgs, LaunchGeometry},
    nvrtc::CudaSource,
};

/// Cyclic rotation of equally long lines of bytes: each line is shifted right, and its last bytes become its first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LineRotation {
    /// Number of lines, stored contiguously.
    pub lines: usize,
    /// Bytes per line.
    pub bytes: usize,
    /// Shift in bytes, smaller than a line.
    pub shift: usize,
}

const THREADS: usize = 256;
const WORDS_PER_THREAD: usize = 4;

/// Word sizes in bytes, with the CUDA types.
const WORDS: [(usize, &str); 5] =
    [(16, "uint4"), (8, "uint2"), (4, "unsigned"), (2, "unsigned short"), (1, "unsigned char")];

impl LineRotation {
    /// Identity rotation of `bytes` bytes.
    pub fn identity(bytes: usize) -> Self {
        Self { lines: 1, bytes, shift: 0 }
    }

    fn kernel(self, device: &CudaDevice, name: &str, extent: KernelArgs) -> Result<CudaKernel, NativeError> {
        let Self { lines, bytes, shift: by } = self;
        let (width, word) = self.word();
        let line = bytes / width;
        let geometry = LaunchGeometry::new(lines * line.div_ceil(THREADS * WORDS_PER_THREAD), (THREADS, 1))?;
        if by >= bytes {
            let what = "the shift of a line in bytes";
            return Err(NativeError::InvalidSize { what, limit: bytes - 1, value: by });
        }
        let extent = KernelArgs { sizes: (line as u64, (by / width) as u64), ..extent };
        CudaKernel::prepare(device, CudaSource::RotateRows, name, macros(word), extent, geometry)
    }

    /// Largest word that divides both the line and the shift.
    fn word(self) -> (usize, &'static str) {
        let fits = |(width, _): &(usize, &str)| self.bytes.is_multiple_of(*width) && self.shift.is_multiple_of(*width);
        WORDS.into_iter().find(fits).unwrap_or(WORDS[4])
    }

    fn total_bytes(self) -> usize {
        self.lines * self.bytes
    }
}

impl CudaDevice {
    /// Allocates a buffer with the rotated content of another.
    pub fn rotate_lines(&self, x: &DeviceBuffer, circle: LineRotation) -> Result<DeviceBuffer, NativeError> {
        let bytes = circle.total_bytes();
        let kernel = circle.kernel(self, "rotate_rows", KernelArgs::new([("x", bytes)], [("y", bytes)], (0, 0)))?;
        let mut y = self.allocate(bytes)?;
        kernel.enqueue([x], [&mut y])?;
        Ok(y)
    }

    /// True if `y` is the rotation of `x` bit for bit, after all enqueued work; returns the error of that work, if any.
    pub fn is_rotation_of(
        &self,
        x: &DeviceBuffer,
        y: &DeviceBuffer,
        circle: LineRotation,
    ) -> Result<bool, NativeError> {
        let reads = ["x", "y"].map(|what| (what, circle.total_bytes()));
        let kernel = circle.kernel(self, "find_mismatch", KernelArgs::new(reads, [("found", 4)], (0, 0)))?;
        let mut found = self.allocate(4)?;
        found.fill(0)?;
        kernel.enqueue([x, y], [&mut found])?;
        Ok(found.download()?.iter().all(|&byte| byte == 0))
    }
}

fn macros(word: &str) -> Vec<String> {
    vec![format!("WORD={word}"), format!("THREADS={THREADS}"), format!("WORDS_PER_THREAD={WORDS_PER_THREAD}")]
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_word_width() {
        for (_, word) in WORDS {
            assert_compiles(CudaSource::RotateRows, &macros(word));
        }
    }

    #[test]
    fn word_width_divides_line_and_shift() {
        let width = |bytes, by| LineRotation { lines: 3, bytes, shift: by }.word().0;
        assert_eq!(
            [width(64, 32), width(64, 24), width(64, 20), width(64, 2), width(64, 7), width(9, 0)],
            [16, 8, 4, 2, 1, 1]
        );
    }
}
