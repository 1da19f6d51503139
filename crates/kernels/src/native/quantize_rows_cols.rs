//! float8 quantization of a matrix and its transpose, as operands of training matmuls.

use super::{
    CudaDevice, CudaKernel, NativeError,
    driver::DeviceMemory,
    kernel::{KernelArgs, LaunchGeometry},
    nvrtc::CudaSource,
    sizes::{MULTIPROCESSORS, check_matrix},
};
use crate::format::Grouping;

/// float8 element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Float8Dtype {
    /// Three mantissa bits, up to 448.
    E4m3,
    /// Two mantissa bits, up to 57344.
    E5m2,
}

/// Quantization format of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Float8Format {
    /// Element type.
    pub dtype: Float8Dtype,
    /// Granularity of the scales.
    pub granularity: Grouping,
    /// True if scales are rounded up to powers of two, so that no value saturates.
    pub power_of_two: bool,
    /// True if a tensor-wide scale is written once per row or column.
    pub scale_per_line: bool,
}

impl Float8Format {
    fn has_scale_per_line(self) -> bool {
        self.scale_per_line || self.granularity == Grouping::Row
    }
}

/// Orientations that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OperandOrientations {
    /// Matrix, with row scales.
    pub(super) plain: bool,
    /// Transpose, with column scales.
    pub(super) transposed: bool,
}

/// Quantized values with scales.
#[derive(Debug)]
pub(super) struct QuantizedOperand {
    pub(super) codes: DeviceMemory,
    pub(super) scales: DeviceMemory,
}

/// Kernels that quantize a bf16 matrix, and their results.
#[derive(Debug)]
pub(super) struct RowColQuantizer {
    amax_kernel: CudaKernel,
    codes: CudaKernel,
    /// amax of each row, of each column, or of the tensor.
    amax: Vec<DeviceMemory>,
    pub(super) plain: Option<QuantizedOperand>,
    pub(super) turned: Option<QuantizedOperand>,
}

/// Tile of the amax kernel: columns, and maximum and minimum rows.
const AMAX_TILE_COLUMNS: usize = 256;
const AMAX_TILE_ROWS: [usize; 2] = [256, 32];
/// Two blocks per multiprocessor; fewer do not saturate the memory.
const MIN_AMAX_BLOCKS: usize = 2 * MULTIPROCESSORS;
/// Rows and columns per block of the quantize kernel.
const TILE: usize = 128;
const THREADS: (usize, usize) = (256, 1);

impl RowColQuantizer {
    /// Compiles for x[rows, columns], both multiples of 16.
    pub(super) fn new(
        device: &CudaDevice,
        format: Float8Format,
        sides: OperandOrientations,
        (rows, columns): (usize, usize),
    ) -> Result<Self, NativeError> {
        check_matrix(rows, columns)?;
        let lines = [(sides.plain, rows), (sides.transposed, columns)];
        let lines: Vec<usize> = lines.into_iter().filter(|(requested, _)| *requested).map(|(_, lines)| lines).collect();
        let found = if format.granularity == Grouping::Row { lines.clone() } else { vec![1] };
        let scales = if format.has_scale_per_line() { lines } else { vec![1; lines.len()] };
        let x = ("x", 2 * rows * columns);
        let words = |lines: &usize| ("amax", 4 * lines);
        let largest = {
            let args = KernelArgs::new([x], found.iter().map(words).collect::<Vec<_>>(), (rows, columns));
            let (tile_rows, blocks) = amax_tile(rows, columns);
            let geometry = LaunchGeometry::new(blocks, THREADS)?;
            let mut macros = macros(AMAX_KERNEL, format, sides);
            macros.push(format!("ROWS={tile_rows}"));
            CudaKernel::prepare(device, CudaSource::AmaxRowsCols, AMAX_KERNEL, macros, args, geometry)?
        };
        let codes = {
            let reads: Vec<_> = [x].into_iter().chain(found.iter().map(words)).collect();
            let writes = scales.iter().flat_map(|lines| [("quantized values", rows * columns), ("scales", 4 * lines)]);
            let args = KernelArgs::new(reads, writes.collect::<Vec<_>>(), (rows, columns));
            let (name, macros) = (QUANTIZE_KERNEL, macros(QUANTIZE_KERNEL, format, sides));
            let geometry = LaunchGeometry::new(rows.div_ceil(TILE) * columns.div_ceil(TILE), THREADS)?;
            CudaKernel::prepare(device, CudaSource::QuantizeRowsCols, name, macros, args, geometry)?
        };
        let memory = |bytes| DeviceMemory::allocate(device.stream(), bytes);
        let mut coded = scales
            .iter()
            .map(|lines| Ok(QuantizedOperand { codes: memory(rows * columns)?, scales: memory(4 * lines)? }))
            .collect::<Result<Vec<_>, NativeError>>()?
            .into_iter();
        Ok(Self {
            amax_kernel: largest,
            codes,
            amax: found.iter().map(|lines| memory(4 * lines)).collect::<Result<_, _>>()?,
            plain: if sides.plain { coded.next() } else { None },
            turned: if sides.transposed { coded.next() } else { None },
        })
    }

    /// Enqueues a launch.
    pub(super) fn enqueue(&mut self, x: &DeviceMemory) -> Result<(), NativeError> {
        self.amax.iter_mut().try_for_each(|found| found.fill(0))?;
        self.amax_kernel.enqueue_all([x], &mut self.amax)?;
        let written = self.plain.iter_mut().chain(&mut self.turned);
        let written = written.flat_map(|coded| [&mut coded.codes, &mut coded.scales]);
        self.codes.enqueue_all([x].into_iter().chain(&self.amax), written)
    }
}

/// Rows per block of the amax kernel, and the number of blocks: the most rows that leave enough blocks.
fn amax_tile(rows: usize, columns: usize) -> (usize, usize) {
    let [mut tile_rows, fewest] = AMAX_TILE_ROWS;
    let blocks = |tile_rows: usize| rows.div_ceil(tile_rows) * columns.div_ceil(AMAX_TILE_COLUMNS);
    while tile_rows > fewest && blocks(tile_rows) < MIN_AMAX_BLOCKS {
        tile_rows /= 2;
    }
    (tile_rows, blocks(tile_rows))
}

const AMAX_KERNEL: &str = "amax_rows_cols";
const QUANTIZE_KERNEL: &str = "quantize_rows_cols";

fn macros(name: &str, format: Float8Format, sides: OperandOrientations) -> Vec<String> {
    let Float8Format { dtype: codes, granularity: shared, power_of_two, scale_per_line } = format;
    let lines = shared == Grouping::Row;
    let all = [
        (codes == Float8Dtype::E5m2, "QUANT_E5M2"),
        (power_of_two, "POWER_OF_TWO_SCALES"),
        (lines, "AXISWISE"),
        (scale_per_line, "BROADCAST_SCALES"),
        (lines && sides.plain, "ROW_AMAX"),
        (lines && sides.transposed, "COLUMN_AMAX"),
        (sides.plain, "ROW_MAJOR_OUTPUT"),
        (sides.transposed, "TRANSPOSED_OUTPUT"),
    ];
    let set = all.into_iter().filter(|(set, _)| *set).map(|(_, name)| name.to_owned());
    set.chain([format!("KERNEL={name}")]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn small_matrices_get_smaller_amax_tiles() {
        assert_eq!(amax_tile(16384, 16384), (256, 4096));
        assert_eq!(amax_tile(4096, 4096), (128, 512));
        assert_eq!(amax_tile(1024, 1024), (32, 128));
        assert_eq!(amax_tile(16, 16), (32, 1));
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn sources_compile_for_every_format_and_orientation() {
        for codes in [Float8Dtype::E4m3, Float8Dtype::E5m2] {
            for (shared, power_of_two, scale_per_line) in
                [(Grouping::Row, true, false), (Grouping::Tensor, false, false), (Grouping::Tensor, true, true)]
            {
                for (plain, turned) in [(true, false), (false, true), (true, true)] {
                    let format = Float8Format { dtype: codes, granularity: shared, power_of_two, scale_per_line };
                    let sides = OperandOrientations { plain, transposed: turned };
                    for tile_rows in AMAX_TILE_ROWS {
                        let mut macros = macros(AMAX_KERNEL, format, sides);
                        macros.push(format!("ROWS={tile_rows}"));
                        assert_compiles(CudaSource::AmaxRowsCols, &macros);
                    }
                    assert_compiles(CudaSource::QuantizeRowsCols, &macros(QUANTIZE_KERNEL, format, sides));
                }
            }
        }
    }
}
