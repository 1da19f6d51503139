//! Digests of a matrix on the device: samples, non-finite elements and random-sign sums for correctness checks.

use super::{
    CudaDevice, CudaKernel, DeviceBuffer, NativeError,
    kernel::{KernelArgs, LaunchGeometry, common_macros},
    nvrtc::CudaSource,
};
use crate::Dtype;

/// Digest of a row or column: sum of the elements with pseudo-random signs, and sum of their squares.
pub type SignedDigest = [f64; 2];

/// Row-major matrix in a device buffer.
#[derive(Debug, Clone, Copy)]
pub struct DeviceMatrix<'a> {
    /// Buffer.
    pub buffer: &'a DeviceBuffer,
    /// Dtype of the elements.
    pub kind: Dtype,
    /// Rows and columns.
    pub size: [usize; 2],
}

const THREADS: usize = 256;
const ELEMENTS_PER_THREAD: usize = 8;
/// Rows that a block reduces to one partial sum per column.
const ROWS_PER_PARTIAL: usize = 256;

impl DeviceMatrix<'_> {
    /// Downloads the elements at the intersections of some rows and columns.
    pub fn sample(&self, device: &CudaDevice, rows: &[usize], cols: &[usize]) -> Result<Vec<f64>, NativeError> {
        let [of_rows, of_cols] = [self.size[0], self.size[1]];
        let indices = |of: &[usize], below: usize| -> Result<Vec<u8>, NativeError> {
            let limit = below.min(u32::MAX as usize);
            match of.iter().find(|&&at| at >= limit) {
                Some(&value) => Err(NativeError::InvalidSize { what: "a matrix index", limit, value }),
                None => Ok(of.iter().flat_map(|&at| (at as u32).to_le_bytes()).collect()),
            }
        };
        let (row_bytes, col_bytes) = (indices(rows, of_rows)?, indices(cols, of_cols)?);
        let bytes = rows.len() * cols.len() * 4;
        if bytes == 0 {
            return Ok(Vec::new());
        }
        let reads = vec![("x", self.bytes()), ("the rows", row_bytes.len()), ("the columns", col_bytes.len())];
        let (args, blocks) = ((reads, bytes, (of_cols, cols.len())), rows.len() * cols.len().div_ceil(THREADS));
        let kernel = self.kernel(device, "gather_samples", args, blocks)?;
        let (row_places, col_places) = (device.upload(&row_bytes)?, device.upload(&col_bytes)?);
        let mut found = device.allocate(bytes)?;
        kernel.enqueue([self.buffer, &row_places, &col_places], [&mut found])?;
        device.download_f64(&found.memory)
    }

    /// Returns the index of the first non-finite element and the number of such elements; `None` if all are finite.
    pub fn find_non_finite(&self, device: &CudaDevice) -> Result<Option<(usize, usize)>, NativeError> {
        let count = self.size[0] * self.size[1];
        let arguments = (vec![("x", self.bytes())], 16, (count, 0));
        let kernel =
            self.kernel(device, "count_nonfinite", arguments, count.div_ceil(THREADS * ELEMENTS_PER_THREAD))?;
        let none = [u64::MAX, 0].map(u64::to_le_bytes);
        let mut found = device.upload(none.as_flattened())?;
        kernel.enqueue([self.buffer], [&mut found])?;
        let found = found.download()?;
        let word = |at: usize| found[8 * at..8 * at + 8].try_into().map_or(0, u64::from_le_bytes) as usize;
        Ok((word(1) > 0).then(|| (word(0), word(1))))
    }

    /// Returns the digests of all rows and of all columns.
    pub fn row_col_digests(&self, device: &CudaDevice) -> Result<[Vec<SignedDigest>; 2], NativeError> {
        let [rows, cols] = self.size;
        let sums = |name: &str, count: usize, blocks: usize| -> Result<Vec<SignedDigest>, NativeError> {
            let kernel = self.kernel(device, name, (vec![("x", self.bytes())], 16 * count, (rows, cols)), blocks)?;
            let mut found = device.allocate(16 * count)?;
            kernel.enqueue([self.buffer], [&mut found])?;
            let half_at =
                |bytes: &[u8; 16], at: usize| bytes[8 * at..8 * at + 8].try_into().map_or(0.0, f64::from_le_bytes);
            Ok(found.download()?.as_chunks().0.iter().map(|bytes| [half_at(bytes, 0), half_at(bytes, 1)]).collect())
        };
        let partial_count = rows.div_ceil(ROWS_PER_PARTIAL);
        let partials = sums("col_digests", partial_count * cols, partial_count * cols.div_ceil(THREADS))?;
        let mut of_cols = vec![[0.0; 2]; cols];
        for part in partials.chunks(cols.max(1)) {
            for (sum, part) in of_cols.iter_mut().zip(part) {
                *sum = [sum[0] + part[0], sum[1] + part[1]];
            }
        }
        Ok([sums("row_digests", rows, rows)?, of_cols])
    }

    fn bytes(&self) -> usize {
        self.size[0] * self.size[1] * self.kind.width()
    }

    /// Prepares a kernel with the given inputs, output bytes and sizes.
    fn kernel(
        &self,
        device: &CudaDevice,
        name: &str,
        (reads, bytes, sizes): (Vec<(&'static str, usize)>, usize, (usize, usize)),
        blocks: usize,
    ) -> Result<CudaKernel, NativeError> {
        let args = KernelArgs::new(reads, [("y", bytes)], sizes);
        let geometry = LaunchGeometry::new(blocks, (THREADS, 1))?;
        CudaKernel::prepare(device, CudaSource::OutputDigest, name, macros(self.kind), args, geometry)
    }
}

fn macros(kind: Dtype) -> Vec<String> {
    let mut macros = common_macros("output_digest", kind, 1);
    let sizes =
        [("THREADS", THREADS), ("ELEMENTS_PER_THREAD", ELEMENTS_PER_THREAD), ("ROWS_PER_SLICE", ROWS_PER_PARTIAL)];
    macros.extend(sizes.map(|(name, size)| format!("{name}={size}")));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_dtype() {
        Dtype::ALL.into_iter().for_each(|kind| assert_compiles(CudaSource::OutputDigest, &macros(kind)));
    }
}
