//! What is told of a matrix that stays on its device: enough to say whether it is right.

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
};
use crate::Dtype;

/// What numbers of a row or column add up to, each with a sign that is as good as drawn, and what their squares do.
pub type SignedSum = [f64; 2];

/// A matrix of so many rows and columns in a buffer.
#[derive(Debug, Clone, Copy)]
pub struct DeviceMatrix<'a> {
    /// Where it is.
    pub buffer: &'a Buffer,
    /// What its numbers are.
    pub kind: Dtype,
    /// How many rows and columns it has.
    pub size: [usize; 2],
}

const THREADS: usize = 256;
const PIECES: usize = 8;
/// Rows whose columns are added up together.
const TOGETHER: usize = 256;

impl DeviceMatrix<'_> {
    /// Its numbers in some columns of some rows.
    pub fn sampled(&self, machine: &Machine, rows: &[usize], cols: &[usize]) -> Result<Vec<f64>, NativeError> {
        let [of_rows, of_cols] = [self.size[0], self.size[1]];
        let indices = |of: &[usize], below: usize| -> Result<Vec<u8>, NativeError> {
            let limit = below.min(u32::MAX as usize);
            match of.iter().find(|&&at| at >= limit) {
                Some(&value) => Err(NativeError::InvalidSize { what: "the place of a number", limit, value }),
                None => Ok(of.iter().flat_map(|&at| (at as u32).to_le_bytes()).collect()),
            }
        };
        let (row_bytes, col_bytes) = (indices(rows, of_rows)?, indices(cols, of_cols)?);
        let bytes = rows.len() * cols.len() * 4;
        if bytes == 0 {
            return Ok(Vec::new());
        }
        let reads = vec![("x", self.bytes()), ("the rows", row_bytes.len()), ("the columns", col_bytes.len())];
        let sizes = (of_cols as u64, cols.len() as u64);
        let kernel =
            self.kernel(machine, "sampled", (reads, bytes, sizes), rows.len() * cols.len().div_ceil(THREADS))?;
        let (row_places, col_places) = (machine.upload(&row_bytes)?, machine.upload(&col_bytes)?);
        let mut found = machine.allocate(bytes)?;
        kernel.enqueue_all(&[&self.buffer.memory, &row_places.memory, &col_places.memory], &mut [&mut found.memory])?;
        machine.doubles(&found.memory)
    }

    /// The place of the first that is infinite or no number, and how many are.
    pub fn spoilt(&self, machine: &Machine) -> Result<Option<(usize, usize)>, NativeError> {
        let count = self.size[0] * self.size[1];
        let about = (vec![("x", self.bytes())], 16, (count as u64, 0));
        let kernel = self.kernel(machine, "spoilt", about, count.div_ceil(THREADS * PIECES))?;
        let none = [u64::MAX, 0].map(u64::to_le_bytes);
        let mut found = machine.upload(none.as_flattened())?;
        kernel.enqueue(&self.buffer.memory, &mut found.memory)?;
        let found = found.download()?;
        let word = |at: usize| found[8 * at..8 * at + 8].try_into().map_or(0, u64::from_le_bytes) as usize;
        Ok((word(1) > 0).then(|| (word(0), word(1))))
    }

    /// What its rows and its columns add up to.
    pub fn sums(&self, machine: &Machine) -> Result<[Vec<SignedSum>; 2], NativeError> {
        let [rows, cols] = self.size;
        let sizes = (rows as u64, cols as u64);
        let sums = |name: &str, count: usize, blocks: usize| -> Result<Vec<SignedSum>, NativeError> {
            let kernel = self.kernel(machine, name, (vec![("x", self.bytes())], 16 * count, sizes), blocks)?;
            let mut found = machine.allocate(16 * count)?;
            kernel.enqueue(&self.buffer.memory, &mut found.memory)?;
            let of_half =
                |bytes: &[u8; 16], at: usize| bytes[8 * at..8 * at + 8].try_into().map_or(0.0, f64::from_le_bytes);
            Ok(found.download()?.as_chunks().0.iter().map(|bytes| [of_half(bytes, 0), of_half(bytes, 1)]).collect())
        };
        let some = rows.div_ceil(TOGETHER);
        let of_some = sums("col_sums", some * cols, some * cols.div_ceil(THREADS))?;
        let mut of_cols = vec![[0.0; 2]; cols];
        for part in of_some.chunks(cols.max(1)) {
            for (sum, part) in of_cols.iter_mut().zip(part) {
                *sum = [sum[0] + part[0], sum[1] + part[1]];
            }
        }
        Ok([sums("row_sums", rows, rows)?, of_cols])
    }

    fn bytes(&self) -> usize {
        self.size[0] * self.size[1] * self.kind.width()
    }

    /// One that reads, writes so many bytes and knows two sizes.
    fn kernel(
        &self,
        machine: &Machine,
        name: &str,
        (reads, bytes, sizes): (Vec<(&'static str, usize)>, usize, (u64, u64)),
        blocks: usize,
    ) -> Result<Kernel, NativeError> {
        let limit = i32::MAX as usize;
        if !(1..=limit).contains(&blocks) {
            return Err(NativeError::InvalidSize { what: "the parts of what is looked at", limit, value: blocks });
        }
        let extent = Extent { reads, writes: vec![("y", bytes)], sizes };
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        Kernel::prepare(machine, Source::Look, name, macros(self.kind), extent, geometry)
    }
}

fn macros(kind: Dtype) -> Vec<String> {
    let mut macros = common_macros("look", kind, 1);
    let sizes = [("THREADS", THREADS), ("PIECES", PIECES), ("TOGETHER", TOGETHER)];
    macros.extend(sizes.map(|(name, size)| format!("{name}={size}")));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_type() {
        Dtype::ALL.into_iter().for_each(|kind| assert_compiles(Source::Look, &macros(kind)));
    }
}
