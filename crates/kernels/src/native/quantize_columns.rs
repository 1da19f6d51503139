//! Column-wise e4m3 quantization with transposed output, the layout that cuBLASLt requires for the second operand.

use super::{
    CudaDevice, CudaKernel, NativeError, ScaleSource, gpu::ComputeCapability, kernel::LaunchGeometry,
    nvrtc::CudaSource, quantize, sizes::check_matrix,
};

impl CudaKernel {
    /// Quantizes columns in bf16 to e4m3 with one f32 scale per column, and transposes: bit-identical to
    /// [`crate::rowwise`] on the rows of the transpose. [`ScaleSource::Static`] writes a single scale. Input: x[rows,
    /// columns]; outputs: quantized xᵀ[columns, rows], scales.
    ///
    /// Memory is read once if columns are a multiple of 8 and rows a multiple of 16, with at most 16384 rows for amax
    /// scales.
    pub fn quantize_columns(
        device: &CudaDevice,
        scales: ScaleSource,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        check_matrix(rows, columns)?;
        let tile = ColumnQuantizeTile::new(device.compute_capability(), scales, rows, columns);
        let name = format!("{}_columns", scales.name());
        let (macros, args) = (tile.macros(&name, scales), quantize::args(rows, columns, scales.count(columns)));
        let kernel = Self::prepare(device, tile.source(), &name, macros, args, tile.geometry(columns)?)?;
        Ok(kernel.with_description(tile.describe(&name)))
    }
}

/// Tile configuration of column-wise quantization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnQuantizeTile {
    /// Column panels; each thread keeps 16 rows by 8 columns in registers.
    Panels {
        /// Threads per row, each with 16 bytes: the contiguous access width.
        lanes: usize,
        /// Blocks of a cluster that reduce amax together; 1 for static scales.
        cluster: usize,
        /// Blocks for all rows of a panel.
        parts: usize,
    },
    /// Tiles of 32 by 32, each read twice.
    Tiles,
}

impl ColumnQuantizeTile {
    const THREADS: usize = 256;
    /// Register limit for three resident blocks: 65536 registers over 768 threads, rounded down to a multiple of 8.
    const REGISTERS: usize = 80;
    const ROWS_PER_THREAD: usize = 16;
    const COLUMNS_PER_THREAD: usize = 8;
    /// Largest portable cluster size.
    const MAX_CLUSTER_BLOCKS: usize = 8;
    const TILE: usize = 32;

    fn new(gpu: ComputeCapability, scales: ScaleSource, rows: usize, columns: usize) -> Self {
        if !rows.is_multiple_of(Self::ROWS_PER_THREAD) || !columns.is_multiple_of(Self::COLUMNS_PER_THREAD) {
            return Self::Tiles;
        }
        let max_cluster = if gpu >= ComputeCapability::CLUSTERS { Self::MAX_CLUSTER_BLOCKS } else { 1 };
        // Four lanes read 64 contiguous bytes of a row; two lanes cover twice as many rows.
        for lanes in [4, 2] {
            let parts = rows.div_ceil(Self::rows_per_block(lanes));
            match scales {
                ScaleSource::Static => return Self::Panels { lanes, cluster: 1, parts },
                ScaleSource::Amax if parts <= max_cluster => {
                    let cluster = parts.next_power_of_two();
                    return Self::Panels { lanes, cluster, parts: cluster };
                }
                ScaleSource::Amax => {}
            }
        }
        Self::Tiles
    }

    fn rows_per_block(lanes: usize) -> usize {
        Self::THREADS / lanes * Self::ROWS_PER_THREAD
    }

    fn source(self) -> CudaSource {
        match self {
            Self::Panels { .. } => CudaSource::QuantizeColumns,
            Self::Tiles => CudaSource::QuantizeColumnsTiled,
        }
    }

    fn geometry(self, columns: usize) -> Result<LaunchGeometry, NativeError> {
        match self {
            Self::Panels { lanes, parts, .. } => {
                let panels = columns.div_ceil(lanes * Self::COLUMNS_PER_THREAD);
                LaunchGeometry::new(panels * parts, (Self::THREADS, 1))
            }
            Self::Tiles => LaunchGeometry::new(columns.div_ceil(Self::TILE), (Self::TILE, Self::TILE)),
        }
    }

    fn macros(self, name: &str, scales: ScaleSource) -> Vec<String> {
        let mut macros = vec![format!("KERNEL={name}")];
        if let Self::Panels { lanes, cluster, .. } = self {
            let (threads, registers) = (Self::THREADS, Self::REGISTERS);
            macros.extend([format!("LANES={lanes}"), format!("CLUSTER_SIZE={cluster}")]);
            macros.extend([format!("THREADS={threads}"), format!("MAX_REGISTERS={registers}")]);
        }
        macros.extend(scales.macros());
        macros
    }

    fn describe(self, name: &str) -> String {
        match self {
            Self::Panels { lanes, cluster, parts } => {
                let columns = lanes * Self::COLUMNS_PER_THREAD;
                format!(
                    "{name}: panels of {columns} columns in registers, {parts} blocks of {} threads per panel, clusters \
                     of {cluster}",
                    Self::THREADS
                )
            }
            Self::Tiles => format!("{name}: tiles of {0} by {0}, columns read twice", Self::TILE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    const SOURCES: [ScaleSource; 2] = [ScaleSource::Amax, ScaleSource::Static];

    #[test]
    fn cluster_covers_all_rows() {
        for rows in (16..40_000).step_by(16) {
            for scales in SOURCES {
                let ColumnQuantizeTile::Panels { lanes, cluster, parts } =
                    ColumnQuantizeTile::new(ComputeCapability::HOPPER, scales, rows, 8)
                else {
                    assert!(rows > 16384 && scales == ScaleSource::Amax, "{rows}");
                    continue;
                };
                assert!(parts * ColumnQuantizeTile::rows_per_block(lanes) >= rows, "{rows}");
                assert!(
                    cluster == 1 || cluster == parts && cluster <= ColumnQuantizeTile::MAX_CLUSTER_BLOCKS,
                    "{rows}"
                );
                assert!(scales == ScaleSource::Static || cluster == parts, "{rows}");
            }
        }
    }

    #[test]
    fn unaligned_or_clusterless_inputs_use_tiles() {
        let ada = ComputeCapability::E4M3;
        let largest = ScaleSource::Amax;
        assert_eq!(ColumnQuantizeTile::new(ComputeCapability::HOPPER, largest, 1000, 4096), ColumnQuantizeTile::Tiles);
        assert_eq!(ColumnQuantizeTile::new(ComputeCapability::HOPPER, largest, 4096, 1001), ColumnQuantizeTile::Tiles);
        assert_eq!(ColumnQuantizeTile::new(ada, largest, 4096, 4096), ColumnQuantizeTile::Tiles);
        assert_eq!(
            ColumnQuantizeTile::new(ada, largest, 1024, 4096),
            ColumnQuantizeTile::Panels { lanes: 4, cluster: 1, parts: 1 }
        );
        assert_eq!(
            ColumnQuantizeTile::new(ComputeCapability::HOPPER, largest, 16384, 4096),
            ColumnQuantizeTile::Panels { lanes: 2, cluster: 8, parts: 8 }
        );
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn sources_compile_for_every_tile() {
        for scales in SOURCES {
            for rows in [16, 2048, 4096, 8192, 16384, 17] {
                let tile = ColumnQuantizeTile::new(ComputeCapability::HOPPER, scales, rows, 4096);
                assert_compiles(tile.source(), &tile.macros("quantize_columns", scales));
            }
        }
    }
}
