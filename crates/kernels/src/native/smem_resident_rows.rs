//! Rows that stay resident on the multiprocessors until the tensor-wide scale is known.

use super::{
    ComputeCapability, CudaDevice, NativeError,
    kernel::{LaunchGeometry, vector_width},
    layer_specs::DynamicSpec,
    row_tile::RowTile,
};

/// Single-pass quantization with a tensor-wide scale: one cooperative block per multiprocessor keeps some rows of x in
/// registers and the others in shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct SmemResidentRows {
    /// Row tile of a block, which processes its rows iteratively.
    pub(super) tile: RowTile,
    /// Rows per block.
    pub(super) rows: usize,
    pub(super) shared_bytes: usize,
}

impl SmemResidentRows {
    const MAX_THREADS: usize = 1024;
    const MAX_ELEMENTS_PER_THREAD: usize = 32;
    /// Shared memory available for rows, and for row statistics.
    const MAX_ROW_BYTES: usize = 224 << 10;
    const MAX_STATISTICS_BYTES: usize = 2 << 10;

    /// Returns the configuration, or `None` if the rows do not fit. Rows are loaded in 16-byte pieces, which requires
    /// Hopper.
    pub(super) fn new(
        device: &CudaDevice,
        spec: DynamicSpec,
        (rows, columns): (usize, usize),
    ) -> Result<Option<Self>, NativeError> {
        if device.compute_capability() != ComputeCapability::WGMMA {
            return Ok(None);
        }
        Ok(Self::for_multiprocessors(device.multiprocessors()?, spec, (rows, columns)))
    }

    pub(super) fn for_multiprocessors(
        multiprocessors: usize,
        spec: DynamicSpec,
        (rows, columns): (usize, usize),
    ) -> Option<Self> {
        let rows_per_block = rows.div_ceil(multiprocessors);
        let rows_in_registers = |tile: &RowTile| Self::MAX_THREADS / tile.threads;
        let tile = RowTile::for_row(spec.kind, columns);
        // With many iterations, threads keep more of a row in registers: 4096 x 4096 after a normalization is then
        // about 3 % faster, while 1024 rows, which take two iterations, would be slower by as much.
        let wide = RowTile::new(columns, vector_width(spec.kind), Self::MAX_ELEMENTS_PER_THREAD);
        let tile = if rows_per_block > 2 * rows_in_registers(&tile) { wide } else { tile };
        let tile = RowTile { rows: rows_in_registers(&tile).min(rows_per_block), ..tile };
        let shared_bytes = (rows_per_block - tile.rows) * columns * spec.kind.width();
        let statistics_bytes = rows_per_block.div_ceil(tile.rows) * (8 + 8 * tile.rows);
        let fits = tile.width == vector_width(spec.kind) && tile.vectors.is_some();
        let fits = fits && shared_bytes <= Self::MAX_ROW_BYTES && statistics_bytes <= Self::MAX_STATISTICS_BYTES;
        fits.then_some(Self { tile, rows: rows_per_block, shared_bytes })
    }

    pub(super) fn geometry(&self, rows: usize) -> LaunchGeometry {
        self.tile.geometry_of_blocks(rows.div_ceil(self.rows))
    }

    pub(super) fn describe(&self, name: &str) -> String {
        let Self { tile, rows, .. } = self;
        format!(
            "{name}: {rows} resident rows per block, {} of them in registers, {} threads per row, {} elements per access",
            tile.rows, tile.threads, tile.width
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        layer_specs::tests::dynamic_specs,
        nvrtc::{CudaSource, tests::assert_compiles},
        quantize_input,
    };
    use super::*;
    use crate::Dtype;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_spec() {
        let mut found = 0;
        for (at, spec) in dynamic_specs().filter(|spec| spec.is_per_tensor()).enumerate() {
            let (rows, columns) = ([1, 1000][at % 2], [257, 1000, 4096][at % 3]);
            let Some(held) = SmemResidentRows::for_multiprocessors(132, spec, (rows, columns)) else { continue };
            let mut macros = quantize_input::macros("held", spec, held.tile, columns.next_multiple_of(32));
            macros.push(format!("ROWS_PER_BLOCK={}", held.rows));
            assert_compiles(CudaSource::SmemResidentRows, &macros);
            found += 1;
        }
        // Rows of the first of three lengths do not qualify.
        assert_eq!(found, 3 * 4 * 4 * 2 / 3);
    }

    #[test]
    fn rows_fit_registers_and_shared_memory() {
        let form = |kind| dynamic_specs().find(|spec| spec.kind == kind && spec.is_per_tensor()).unwrap();
        let on = |kind, rows, columns| {
            SmemResidentRows::for_multiprocessors(132, form(kind), (rows, columns))
                .map(|held| (held.rows, held.tile.rows))
        };
        assert_eq!(on(Dtype::Bf16, 4096, 4096), Some((32, 8)));
        // 28 rows of 8 KiB fill the shared memory.
        assert_eq!(on(Dtype::Bf16, 36 * 132, 4096), Some((36, 8)));
        assert_eq!(on(Dtype::Bf16, 36 * 132 + 1, 4096), None);
        assert_eq!(on(Dtype::Bf16, 1, 4096), Some((1, 1)));
        assert_eq!(on(Dtype::F32, 1024, 4096), Some((8, 4)));
        assert_eq!(on(Dtype::F32, 1061, 4096), Some((9, 8)));
        // Row length not divisible by 16-byte vectors, and too many vectors per thread.
        assert_eq!(on(Dtype::Bf16, 16, 4100), None);
        assert_eq!(on(Dtype::Bf16, 16, 65536), None);
        for held in (1..40_000)
            .step_by(13)
            .filter_map(|rows| SmemResidentRows::for_multiprocessors(132, form(Dtype::F16), (rows, 1000)))
        {
            assert!(held.rows >= held.tile.rows && held.tile.threads * held.tile.rows <= 1024, "{held:?}");
        }
    }
}
