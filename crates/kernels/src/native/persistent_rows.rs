//! Persistent row kernel: blocks loop over rows that are prefetched into shared memory.

use super::{
    ComputeCapability, CudaDevice, NativeError,
    kernel::{LaunchGeometry, vector_width},
    layer_specs::DynamicSpec,
    row_tile::RowTile,
};
use crate::{Dtype, Prologue};

/// Persistent blocks with double buffering: the next rows are copied to shared memory while the current ones are
/// quantized. Pays off if computing a row takes as long as reading it.
#[derive(Debug, Clone, Copy)]
pub(super) struct PersistentRows {
    pub(super) tile: RowTile,
    pub(super) geometry: LaunchGeometry,
    /// Blocks per multiprocessor.
    blocks_per_sm: usize,
    pub(super) shared_bytes: usize,
}

impl PersistentRows {
    /// Pipeline stages.
    const STAGES: usize = 2;
    /// Elements per thread. The fixed cost per row weighs less, and asynchronous copies saturate the memory with few
    /// threads.
    const ELEMENTS_PER_THREAD: usize = 64;
    /// Minimum row length with a benefit.
    const MIN_COLUMNS: usize = 8192;
    /// Minimum iterations per block; with fewer, the exposed first copies dominate.
    const MIN_ITERATIONS: usize = 4;
    /// Shared memory per multiprocessor available for stages.
    const MAX_SMEM_BYTES: usize = 216 << 10;

    /// Returns the configuration, or `None` if there is no benefit. Rows are loaded in 16-byte pieces, which requires
    /// Hopper.
    pub(super) fn new(
        device: &CudaDevice,
        spec: DynamicSpec,
        size: (usize, usize),
    ) -> Result<Option<Self>, NativeError> {
        if device.compute_capability() != ComputeCapability::WGMMA {
            return Ok(None);
        }
        Ok(Self::for_multiprocessors(device.multiprocessors()?, spec, size))
    }

    pub(super) fn for_multiprocessors(
        multiprocessors: usize,
        spec: DynamicSpec,
        (rows, columns): (usize, usize),
    ) -> Option<Self> {
        let tile = RowTile::new(columns, vector_width(spec.kind), Self::ELEMENTS_PER_THREAD);
        let tile = RowTile { vectors: Some((columns / tile.width).div_ceil(tile.threads)), ..tile };
        let shared_bytes = Self::STAGES * tile.rows * columns * spec.kind.width();
        let resident = (2048 / (tile.threads * tile.rows)).min(Self::MAX_SMEM_BYTES / shared_bytes);
        let turns = rows.div_ceil(tile.rows);
        let gains =
            matches!(spec.prologue, Prologue::Activation(_)) && columns >= Self::MIN_COLUMNS && spec.kind != Dtype::F32;
        let fits = tile.width == vector_width(spec.kind) && resident > 0;
        let enough = turns >= Self::MIN_ITERATIONS * resident * multiprocessors;
        (gains && fits && enough).then(|| Self {
            tile,
            geometry: tile.geometry_of_blocks(resident * multiprocessors),
            blocks_per_sm: resident,
            shared_bytes,
        })
    }

    pub(super) fn macros(self) -> [String; 2] {
        [format!("BLOCKS_PER_SM={}", self.blocks_per_sm), format!("STAGES={}", Self::STAGES)]
    }

    pub(super) fn describe(self, name: &str) -> String {
        let Self { tile, geometry, .. } = self;
        format!(
            "{name}: {} persistent blocks, {} rows per iteration, {} stages, {} threads per row, {} elements per access",
            geometry.blocks,
            tile.rows,
            Self::STAGES,
            tile.threads,
            tile.width
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        layer_specs::tests::dynamic_specs,
        nvrtc::{CudaSource, tests::assert_compiles_for},
        quantize_input,
    };
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn long_activated_rows_use_persistent_blocks() {
        let mut found = 0;
        for spec in dynamic_specs() {
            let on = |rows, columns| PersistentRows::for_multiprocessors(132, spec, (rows, columns));
            let gains = matches!(spec.prologue, Prologue::Activation(_)) && spec.kind != Dtype::F32;
            assert_eq!(on(16384, 16384).is_some(), gains, "{spec:?}");
            // Too few iterations, short rows, unaligned rows, and rows too long for registers.
            for (rows, columns) in [(1583, 16384), (1 << 20, 4096), (1 << 20, 8196), (1 << 20, 65536)] {
                assert!(on(rows, columns).is_none(), "{spec:?} {rows} {columns}");
            }
            for (rows, columns) in [(1584, 16384), (100_001, 8192), (100_001, 32768)] {
                let Some(turns) = on(rows, columns) else { continue };
                found += 1;
                // Shared memory of a multiprocessor; every block reserves 1 KiB in addition.
                let resident = turns.blocks_per_sm * (turns.shared_bytes + (1 << 10));
                assert!(
                    turns.tile.threads * turns.tile.rows * turns.blocks_per_sm <= 2048 && resident <= 228 << 10,
                    "{turns:?}"
                );
                let mut macros = quantize_input::macros("in_turns", spec, turns.tile, columns);
                macros.extend(turns.macros());
                macros.push("REVERSE_ROWS=true".into());
                assert_compiles_for(ComputeCapability::WGMMA, CudaSource::QuantizeInput, &macros);
            }
        }
        // Two dtypes, four formats, two granularities, three sizes.
        assert_eq!(found, 2 * 4 * 2 * 3);
    }
}
