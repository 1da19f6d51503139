//! SwiGLU of rows whose columns are halved, and its gradient.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    sizes::checked_size,
};
use crate::Dtype;

/// A plan of y = silu(a) b for rows that are a and b one after the other, or of the gradient of such rows, computed in f32.
#[derive(Debug)]
pub struct HalvedSwiglu {
    kernel: Kernel,
    algorithm: String,
}

impl HalvedSwiglu {
    /// Compiles for `rows` rows of `columns` elements, an even number.
    pub fn forward(machine: &Arc<Machine>, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        Self::new(machine, kind, (rows, columns), false)
    }

    /// The gradient of the same rows, given the rows and the gradient of the result.
    pub fn backward(machine: &Arc<Machine>, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        Self::new(machine, kind, (rows, columns), true)
    }

    fn new(
        machine: &Arc<Machine>,
        kind: Dtype,
        (rows, columns): (usize, usize),
        backward: bool,
    ) -> Result<Self, NativeError> {
        let rows = checked_size("the number of rows", rows)?;
        let half = checked_size("half the length of a row", columns / 2)?;
        let cut = Cut::new(kind, half);
        let blocks = checked_size("the number of blocks", rows.div_ceil(cut.rows) * cut.parts)?;
        let direction = if backward { "backward" } else { "forward" };
        let name = format!("halved_swiglu_{direction}_{kind}");
        let of_half = rows * half * kind.width();
        let (reads, writes) = match backward {
            false => (vec![("x", 2 * of_half)], vec![("y", of_half)]),
            true => (vec![("x", 2 * of_half), ("dy", of_half)], vec![("dx", 2 * of_half)]),
        };
        let extent = Extent { reads, writes, sizes: (rows as u64, 2 * half as u64) };
        let geometry = Geometry { blocks: blocks as u32, threads: (cut.threads as u32, cut.rows as u32) };
        let macros = cut.macros(&name, kind, backward);
        let Cut { width, threads, rows, parts } = cut;
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::HalvedSwiglu, &name, macros, extent, geometry)?,
            algorithm: format!(
                "{name}: {threads} threads for each of {rows} rows per block, {parts} blocks for a row, {PIECES} accesses of \
                 {width} elements of either half per thread"
            ),
        })
    }

    /// Enqueues one run on as many inputs as the direction has.
    pub fn enqueue(&self, inputs: &[&Buffer], y: &mut Buffer) -> Result<(), NativeError> {
        let inputs: Vec<_> = inputs.iter().map(|input| &input.memory).collect();
        self.kernel.enqueue_all(&inputs, &mut [&mut y.memory])
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

/// So that each thread has four loads of 16 bytes in flight, or six.
const PIECES: usize = 2;

/// How half a row is dealt to threads.
#[derive(Debug, Clone, Copy)]
struct Cut {
    /// Elements in one access.
    width: usize,
    /// Threads for one row in a block.
    threads: usize,
    /// Rows in a block.
    rows: usize,
    /// Blocks that share a row.
    parts: usize,
}

impl Cut {
    const THREADS: usize = 256;

    fn new(kind: Dtype, half: usize) -> Self {
        let widest = widest(kind);
        let width = if half.is_multiple_of(widest) { widest } else { 1 };
        let pieces = half / width;
        let threads = pieces.div_ceil(PIECES).next_power_of_two().min(Self::THREADS);
        Self { width, threads, rows: Self::THREADS / threads, parts: pieces.div_ceil(threads * PIECES) }
    }

    fn macros(&self, name: &str, kind: Dtype, backward: bool) -> Vec<String> {
        let mut macros = common_macros(name, kind, self.width);
        macros.push(format!("THREADS={}", self.threads));
        macros.push(format!("ROWS={}", self.rows));
        macros.push(format!("PIECES={PIECES}"));
        macros.push(format!("BACKWARD={}", u8::from(backward)));
        macros
    }
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn every_half_is_covered_by_full_blocks() {
        for kind in Dtype::ALL {
            for half in (1..3000).chain([4096, 14336, 28672, 70001]) {
                let cut = Cut::new(kind, half);
                assert_eq!(cut.threads * cut.rows, Cut::THREADS, "{half} {cut:?}");
                assert!(cut.parts * cut.threads * PIECES * cut.width >= half, "{half} {cut:?}");
                assert!((cut.parts - 1) * cut.threads * PIECES * cut.width < half, "{half} {cut:?}");
            }
        }
    }

    #[test]
    fn the_source_compiles_for_both_directions() {
        for kind in Dtype::ALL {
            for half in [1, 8, 1000, 4096] {
                for backward in [false, true] {
                    assert_compiles(Source::HalvedSwiglu, &Cut::new(kind, half).macros("swiglu", kind, backward));
                }
            }
        }
    }
}
