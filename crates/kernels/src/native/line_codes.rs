//! Codes of 8 bits of a matrix and of its transpose: what products of them read.

use std::sync::Arc;

use super::{
    Machine, NativeError,
    driver::Memory,
    gpu::ComputeCapability,
    kernel::{Extent, Geometry, Kernel},
    nvrtc::Source,
    sizes::{MULTIPROCESSORS, checked_size},
};
use crate::SharedScale;

/// What numbers are stored as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Float8Codes {
    /// Three bits of mantissa, up to 448.
    E4m3,
    /// Two, up to 57344.
    E5m2,
}

/// How an operand is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LineFormat {
    /// What its numbers are stored as.
    pub codes: Float8Codes,
    /// Which of them share a scale.
    pub shared: SharedScale,
    /// Whether scales are powers of two, rounded up so that nothing saturates.
    pub power_of_two: bool,
    /// Whether each line has a scale written for it even where all have the same.
    pub scale_per_line: bool,
}

impl LineFormat {
    fn has_scale_per_line(self) -> bool {
        self.scale_per_line || self.shared == SharedScale::Row
    }
}

/// Which codes are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sides {
    /// Those of the matrix, with scales of its rows.
    pub(super) plain: bool,
    /// Those of the transpose, with scales of the columns.
    pub(super) turned: bool,
}

/// Codes with their scales.
#[derive(Debug)]
pub(super) struct Coded {
    pub(super) codes: Memory,
    pub(super) scales: Memory,
}

/// The kernels that make codes of a bf16 matrix, and those codes.
#[derive(Debug)]
pub(super) struct LineCodes {
    largest: Kernel,
    codes: Kernel,
    /// The largest magnitudes of rows, of columns, or of all.
    found: Vec<Memory>,
    pub(super) plain: Option<Coded>,
    pub(super) turned: Option<Coded>,
}

/// Columns of what a block of the first kernel takes, and the most and the fewest of its rows.
const LARGEST_COLUMNS: usize = 256;
const LARGEST_ROWS: [usize; 2] = [256, 32];
/// Two for each multiprocessor: with fewer, the memory waits for them.
const ENOUGH_BLOCKS: usize = 2 * MULTIPROCESSORS;
/// Rows and columns of what a block of the second kernel takes.
const TILE: usize = 128;
const THREADS: (u32, u32) = (256, 1);

impl LineCodes {
    /// Compiles for x[rows, columns], both multiples of 16.
    pub(super) fn new(
        machine: &Arc<Machine>,
        format: LineFormat,
        sides: Sides,
        (rows, columns): (usize, usize),
    ) -> Result<Self, NativeError> {
        machine.require("codes of float8", ComputeCapability::E4M3)?;
        let rows = checked_size("the number of rows", rows)?;
        let columns = checked_size("the length of a row", columns)?;
        let lines = [(sides.plain, rows), (sides.turned, columns)];
        let lines: Vec<usize> = lines.into_iter().filter(|(wanted, _)| *wanted).map(|(_, lines)| lines).collect();
        let found = match format.shared {
            SharedScale::Row => lines.clone(),
            SharedScale::Tensor => vec![1],
        };
        let scales = if format.has_scale_per_line() { lines } else { vec![1; lines.len()] };
        let (x, sizes) = (("x", 2 * rows * columns), (rows as u64, columns as u64));
        let geometry = |blocks: usize| -> Result<Geometry, NativeError> {
            Ok(Geometry { blocks: checked_size("the number of blocks", blocks)? as u32, threads: THREADS })
        };
        let words = |lines: &usize| ("largest", 4 * lines);
        let largest = {
            let extent = Extent { reads: vec![x], writes: found.iter().map(words).collect(), sizes };
            let (tile_rows, blocks) = cut_of_largest(rows, columns);
            let mut macros = macros(LARGEST, format, sides);
            macros.push(format!("ROWS={tile_rows}"));
            Kernel::prepare(machine, Source::LargestOfLines, LARGEST, macros, extent, geometry(blocks)?)?
        };
        let codes = {
            let reads = [x].into_iter().chain(found.iter().map(words)).collect();
            let writes = scales.iter().flat_map(|lines| [("codes", rows * columns), ("scales", 4 * lines)]).collect();
            let extent = Extent { reads, writes, sizes };
            let (name, macros) = (CODES, macros(CODES, format, sides));
            let blocks = rows.div_ceil(TILE) * columns.div_ceil(TILE);
            Kernel::prepare(machine, Source::CodesOfLines, name, macros, extent, geometry(blocks)?)?
        };
        let memory = |bytes| Memory::allocate(machine.stream(), bytes);
        let mut coded = scales
            .iter()
            .map(|lines| Ok(Coded { codes: memory(rows * columns)?, scales: memory(4 * lines)? }))
            .collect::<Result<Vec<_>, NativeError>>()?
            .into_iter();
        Ok(Self {
            largest,
            codes,
            found: found.iter().map(|lines| memory(4 * lines)).collect::<Result<_, _>>()?,
            plain: if sides.plain { coded.next() } else { None },
            turned: if sides.turned { coded.next() } else { None },
        })
    }

    /// Enqueues one run.
    pub(super) fn enqueue(&mut self, x: &Memory) -> Result<(), NativeError> {
        self.found.iter_mut().try_for_each(|found| found.fill(0))?;
        self.largest.enqueue_all(&[x], &mut self.found.iter_mut().collect::<Vec<_>>())?;
        let inputs: Vec<&Memory> = [x].into_iter().chain(&self.found).collect();
        let written = self.plain.iter_mut().chain(&mut self.turned);
        let mut written: Vec<&mut Memory> = written.flat_map(|coded| [&mut coded.codes, &mut coded.scales]).collect();
        self.codes.enqueue_all(&inputs, &mut written)
    }
}

/// Rows of a block that seeks the largest, and how many blocks that makes: as many rows as leave enough blocks.
fn cut_of_largest(rows: usize, columns: usize) -> (usize, usize) {
    let [mut tile_rows, fewest] = LARGEST_ROWS;
    let blocks = |tile_rows: usize| rows.div_ceil(tile_rows) * columns.div_ceil(LARGEST_COLUMNS);
    while tile_rows > fewest && blocks(tile_rows) < ENOUGH_BLOCKS {
        tile_rows /= 2;
    }
    (tile_rows, blocks(tile_rows))
}

const LARGEST: &str = "largest_of_lines";
const CODES: &str = "codes_of_lines";

fn macros(name: &str, format: LineFormat, sides: Sides) -> Vec<String> {
    let LineFormat { codes, shared, power_of_two, scale_per_line } = format;
    let lines = shared == SharedScale::Row;
    let all = [
        (codes == Float8Codes::E5m2, "CODES_E5M2"),
        (power_of_two, "POWER_OF_TWO"),
        (lines, "LINES"),
        (scale_per_line, "SCALE_PER_LINE"),
        (lines && sides.plain, "OF_ROWS"),
        (lines && sides.turned, "OF_COLUMNS"),
        (sides.plain, "PLAIN"),
        (sides.turned, "TURNED"),
    ];
    let set = all.into_iter().filter(|(set, _)| *set).map(|(_, name)| name.to_owned());
    set.chain([format!("KERNEL={name}")]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn a_small_matrix_is_cut_finer_until_all_multiprocessors_have_some_of_it() {
        assert_eq!(cut_of_largest(16384, 16384), (256, 4096));
        assert_eq!(cut_of_largest(4096, 4096), (128, 512));
        assert_eq!(cut_of_largest(1024, 1024), (32, 128));
        assert_eq!(cut_of_largest(16, 16), (32, 1));
    }

    #[test]
    fn the_sources_compile_for_every_format_and_side() {
        for codes in [Float8Codes::E4m3, Float8Codes::E5m2] {
            for (shared, power_of_two, scale_per_line) in [
                (SharedScale::Row, true, false),
                (SharedScale::Tensor, false, false),
                (SharedScale::Tensor, true, true),
            ] {
                for (plain, turned) in [(true, false), (false, true), (true, true)] {
                    let format = LineFormat { codes, shared, power_of_two, scale_per_line };
                    let sides = Sides { plain, turned };
                    for tile_rows in LARGEST_ROWS {
                        let mut macros = macros(LARGEST, format, sides);
                        macros.push(format!("ROWS={tile_rows}"));
                        assert_compiles(Source::LargestOfLines, &macros);
                    }
                    assert_compiles(Source::CodesOfLines, &macros(CODES, format, sides));
                }
            }
        }
    }
}
