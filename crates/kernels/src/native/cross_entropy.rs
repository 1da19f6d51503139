//! The mean cross-entropy of rows of logits.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError,
    grid_total::GridTotal,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    row_cut::RowCut,
    sizes::checked_size,
};
use crate::Dtype;

/// A plan of the mean over rows of ln(sum of exp(x)) - x at the target, computed in f32 and read once.
#[derive(Debug)]
pub struct CrossEntropy {
    kernel: Kernel,
    total: GridTotal,
    algorithm: String,
}

impl CrossEntropy {
    /// Compiles for `rows` rows of `columns` classes.
    pub fn new(machine: &Arc<Machine>, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        let rows = checked_size("the number of rows", rows)?;
        let columns = checked_size("the number of classes", columns)?;
        let cut = cut(kind, rows, columns);
        let blocks = GridTotal::blocks(rows.div_ceil(cut.rows), cut.threads * cut.rows, RESIDENT);
        let name = format!("cross_entropy_{kind}");
        let mut extent = Extent {
            reads: vec![("x", rows * columns * kind.width()), ("targets", 4 * rows)],
            writes: vec![("y", 4)],
            sizes: (rows as u64, columns as u64),
        };
        let total = GridTotal::new(machine, blocks, &mut extent)?;
        let geometry = Geometry { blocks: blocks as u32, threads: (cut.threads as u32, cut.rows as u32) };
        let macros = macros(&name, kind, columns, cut);
        let RowCut { width, threads, rows, .. } = cut;
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::CrossEntropy, &name, macros, extent, geometry)?,
            total,
            algorithm: format!(
                "{name}: {blocks} blocks of {threads} threads for each of {rows} rows at once, {} accesses of {width} \
                 logits per thread in flight, row read once, the last block adds up",
                in_flight(columns, cut)
            ),
        })
    }

    /// Enqueues one run: logits, the numbers of their classes as signed 32-bit integers, and a single f32.
    pub fn enqueue(&mut self, x: &Buffer, targets: &Buffer, y: &mut Buffer) -> Result<(), NativeError> {
        self.total.enqueue(&self.kernel, &[&x.memory, &targets.memory], &mut y.memory)
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

/// Threads of up to 64 registers that share a multiprocessor.
const RESIDENT: usize = 1024;

/// With as many that are looked at, what registers hold.
const MOST_IN_FLIGHT: usize = 4;

/// A warp for each row where rows are many, which then need no barrier, and several where they are few.
fn cut(kind: Dtype, rows: usize, columns: usize) -> RowCut {
    let warps = GridTotal::warps(RESIDENT).div_ceil(rows);
    let for_each_thread = columns.div_ceil(32 * warps).max(MOST_IN_FLIGHT * widest(kind));
    RowCut::new(columns, widest(kind), for_each_thread)
}

fn in_flight(columns: usize, cut: RowCut) -> usize {
    (columns / cut.width).div_ceil(cut.threads).min(MOST_IN_FLIGHT)
}

fn macros(name: &str, kind: Dtype, columns: usize, cut: RowCut) -> Vec<String> {
    let mut macros = common_macros(name, kind, cut.width);
    macros.push(format!("THREADS={}", cut.threads));
    macros.push(format!("ROWS={}", cut.rows));
    macros.push(GridTotal::macros(cut.threads * cut.rows, RESIDENT));
    macros.push(format!("PIECES={}", in_flight(columns, cut)));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_way_to_cut_a_row() {
        for kind in Dtype::ALL {
            for columns in [2, 257, 768, 4096, 32768, 70001] {
                let cut = cut(kind, 2 * columns, columns);
                assert_compiles(Source::CrossEntropy, &macros("cross_entropy", kind, columns, cut));
            }
        }
    }

    #[test]
    fn many_rows_have_a_warp_each_and_few_as_many_as_they_are_long() {
        let threads = |rows, columns| cut(Dtype::Bf16, rows, columns).threads;
        assert_eq!(
            [threads(16384, 4096), threads(2048, 4096), threads(1, 4096), threads(1, 70000)],
            [32, 96, 128, 1024]
        );
    }
}
