//! e4m3 codes of columns, as rows of the transpose: the layout in which cuBLASLt takes the second factor of a product.

use std::sync::Arc;

use super::{
    Machine, NativeError, Quantize, ScaleSource,
    gpu::ComputeCapability,
    kernel::{Extent, Geometry, Kernel},
    nvrtc::Source,
    sizes::checked_size,
};

impl Quantize {
    /// The e4m3 codes of xᵀ[columns, rows] from x[rows, columns] in bf16, and one f32 scale per column: [`crate::rowwise`] for
    /// the rows of the transpose, to the bit. [`ScaleSource::Static`] writes a single scale.
    ///
    /// Memory is read once if rows come in sixteens, up to 16384 of them where they need scales, and columns in eights.
    pub fn columns(
        machine: &Arc<Machine>,
        scales: ScaleSource,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        machine.require("e4m3", ComputeCapability::E4M3)?;
        let rows = checked_size("the number of rows", rows)?;
        let columns = checked_size("the length of a row", columns)?;
        let cut = Cut::new(machine.compute_capability(), scales, rows, columns);
        let name = format!("{}_columns", scales.name());
        let scales_bytes = 4 * scales.count(columns);
        let extent = Extent {
            reads: vec![("x", 2 * rows * columns)],
            writes: vec![("codes", rows * columns), ("scales", scales_bytes)],
            sizes: (rows as u64, columns as u64),
        };
        let (source, geometry) = (cut.source(), cut.geometry(columns)?);
        Ok(Self {
            kernel: Kernel::prepare(machine, source, &name, cut.macros(&name, scales), extent, geometry)?,
            scales_bytes,
            algorithm: cut.describe(&name),
        })
    }
}

/// How the matrix is dealt to blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Each thread keeps 8 columns of 16 rows in registers.
    Panels {
        /// Threads that share a row, and so the bytes that are read of it at once: 16 for each.
        lanes: usize,
        /// Blocks that find scales together; 1 where there are none to find.
        cluster: usize,
        /// Blocks for all rows of a panel.
        parts: usize,
    },
    /// Tiles of 32 by 32, each read twice.
    Tiles,
}

impl Cut {
    const THREADS: usize = 256;
    /// So that three blocks share a multiprocessor: its 65536 registers over 768 threads, in eights.
    const REGISTERS: usize = 80;
    const ROWS_PER_THREAD: usize = 16;
    const COLUMNS_PER_THREAD: usize = 8;
    /// The most blocks of a cluster that every GPU with clusters takes.
    const MOST_BLOCKS: usize = 8;
    const TILE: usize = 32;

    fn new(gpu: ComputeCapability, scales: ScaleSource, rows: usize, columns: usize) -> Self {
        if !rows.is_multiple_of(Self::ROWS_PER_THREAD) || !columns.is_multiple_of(Self::COLUMNS_PER_THREAD) {
            return Self::Tiles;
        }
        let most = if gpu >= ComputeCapability::CLUSTERS { Self::MOST_BLOCKS } else { 1 };
        // Four lanes read 64 bytes of a row at once, two reach twice as many rows.
        for lanes in [4, 2] {
            let parts = rows.div_ceil(Self::rows_per_block(lanes));
            match scales {
                ScaleSource::Static => return Self::Panels { lanes, cluster: 1, parts },
                ScaleSource::Largest if parts <= most => {
                    let cluster = parts.next_power_of_two();
                    return Self::Panels { lanes, cluster, parts: cluster };
                }
                ScaleSource::Largest => {}
            }
        }
        Self::Tiles
    }

    fn rows_per_block(lanes: usize) -> usize {
        Self::THREADS / lanes * Self::ROWS_PER_THREAD
    }

    fn source(self) -> Source {
        match self {
            Self::Panels { .. } => Source::QuantizeColumns,
            Self::Tiles => Source::QuantizeAnyColumns,
        }
    }

    fn geometry(self, columns: usize) -> Result<Geometry, NativeError> {
        let (blocks, threads) = match self {
            Self::Panels { lanes, parts, .. } => {
                (columns.div_ceil(lanes * Self::COLUMNS_PER_THREAD) * parts, (Self::THREADS as u32, 1))
            }
            Self::Tiles => (columns.div_ceil(Self::TILE), (Self::TILE as u32, Self::TILE as u32)),
        };
        Ok(Geometry { blocks: checked_size("the number of blocks", blocks)? as u32, threads })
    }

    fn macros(self, name: &str, scales: ScaleSource) -> Vec<String> {
        let mut macros = vec![format!("KERNEL={name}")];
        if let Self::Panels { lanes, cluster, .. } = self {
            let (threads, registers) = (Self::THREADS, Self::REGISTERS);
            macros.extend([format!("LANES={lanes}"), format!("BLOCKS={cluster}")]);
            macros.extend([format!("THREADS={threads}"), format!("REGISTERS={registers}")]);
        }
        macros.extend(scales.macros());
        macros
    }

    fn describe(self, name: &str) -> String {
        match self {
            Self::Panels { lanes, cluster, parts } => {
                let columns = lanes * Self::COLUMNS_PER_THREAD;
                format!(
                    "{name}: {columns} columns per panel, {parts} blocks of {} threads for its rows, clusters of \
                     {cluster}, kept in registers",
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

    const HOPPER: ComputeCapability = ComputeCapability::CLUSTERS;
    const SOURCES: [ScaleSource; 2] = [ScaleSource::Largest, ScaleSource::Static];

    #[test]
    fn the_blocks_of_a_cluster_reach_all_rows() {
        for rows in (16..40_000).step_by(16) {
            for scales in SOURCES {
                let Cut::Panels { lanes, cluster, parts } = Cut::new(HOPPER, scales, rows, 8) else {
                    assert!(rows > 16384 && scales == ScaleSource::Largest, "{rows}");
                    continue;
                };
                assert!(parts * Cut::rows_per_block(lanes) >= rows, "{rows}");
                assert!(cluster == 1 || cluster == parts && cluster <= Cut::MOST_BLOCKS, "{rows}");
                assert!(scales == ScaleSource::Static || cluster == parts, "{rows}");
            }
        }
    }

    #[test]
    fn what_has_no_whole_accesses_or_no_clusters_is_taken_in_tiles() {
        let ada = ComputeCapability::E4M3;
        let largest = ScaleSource::Largest;
        assert_eq!(Cut::new(HOPPER, largest, 1000, 4096), Cut::Tiles);
        assert_eq!(Cut::new(HOPPER, largest, 4096, 1001), Cut::Tiles);
        assert_eq!(Cut::new(ada, largest, 4096, 4096), Cut::Tiles);
        assert_eq!(Cut::new(ada, largest, 1024, 4096), Cut::Panels { lanes: 4, cluster: 1, parts: 1 });
        assert_eq!(Cut::new(HOPPER, largest, 16384, 4096), Cut::Panels { lanes: 2, cluster: 8, parts: 8 });
    }

    #[test]
    fn the_sources_compile_for_every_way_to_cut() {
        for scales in SOURCES {
            for rows in [16, 2048, 4096, 8192, 16384, 17] {
                let cut = Cut::new(HOPPER, scales, rows, 4096);
                assert_compiles(cut.source(), &cut.macros("quantize_columns", scales));
            }
        }
    }
}
