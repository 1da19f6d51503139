//! Compile-time parameters of the dequantizing GEMMs on matrix instructions.

use super::spec::{PackedLayout, dequantized_format};
use crate::cube::CubeCapability;
use crate::cube::capability::{FLOAT_MMA, max_vector_width};
use crate::format::Format;
use crate::layer::{LinearShape, Rejection};
use crate::{Dtype, LayerSpec};
use cubecl::prelude::*;

/// Units that share a row of a fragment.
pub(super) const LANES_PER_ROW: usize = 4;

/// Input values per access of 16 bytes.
pub(super) const VALUES_PER_ACCESS: usize = 8;

/// Returns the weight format of a layer that is dequantized for matrix instructions.
pub(super) fn mma_format(spec: &LayerSpec, capability: &CubeCapability) -> Result<Format, Rejection> {
    let format = dequantized_format(spec)?;
    let missing = Rejection::Device("matrix instructions on the dtype");
    if capability.has_mma(spec.dtype) { Ok(format) } else { Err(missing) }
}

/// Compile-time parameters of the GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct MmaGemmConfig {
    /// Layout of the packed weight.
    pub weight: PackedLayout,
    /// Dtype of the input.
    pub dtype: Dtype,
    /// Planes of a cube that split k.
    pub k_planes: usize,
    /// Planes of a cube along n (weight rows).
    pub n_planes: usize,
    /// Planes of a cube along m (input rows).
    pub m_planes: usize,
    /// Instruction tiles of a plane along n, 16 weight rows each.
    pub n_tiles: usize,
    /// Instruction tiles of a plane along m, 8 input rows each.
    pub m_tiles: usize,
    /// Cubes that split k.
    pub k_splits: usize,
    /// Chunks that a unit loads before it computes; in the staged kernel, chunks of a pipeline stage.
    pub chunks_in_flight: usize,
    /// Parts in which the staged kernel loads the next pipeline stage of the input.
    pub stage_parts: usize,
    /// Input values per access.
    pub input_width: usize,
    /// Weight words per access.
    pub word_width: usize,
}

impl MmaGemmConfig {
    /// Configuration for vector accesses, with default tiles.
    pub(super) fn new(dtype: Dtype, format: Format, LinearShape { m, k, .. }: LinearShape) -> Self {
        Self {
            weight: PackedLayout::new(&format, k),
            dtype,
            k_planes: 1,
            n_planes: 8,
            m_planes: 1,
            n_tiles: 2,
            m_tiles: m.div_ceil(FLOAT_MMA.n).min(8),
            k_splits: 1,
            chunks_in_flight: 2,
            stage_parts: 1,
            input_width: VALUES_PER_ACCESS,
            word_width: 1,
        }
    }

    /// Sets the width of memory accesses, and the number of cubes that split k so that each multiprocessor runs
    /// `cubes_per_processor`.
    pub(super) fn configure_device<R: Runtime>(
        &mut self,
        client: &ComputeClient<R>,
        LinearShape { m, n, .. }: LinearShape,
        cubes_per_processor: usize,
    ) {
        self.word_width = max_vector_width(client, 4, self.words_per_piece());
        let processors = client.properties().hardware.num_streaming_multiprocessors.unwrap_or(1) as usize;
        let blocks = n.div_ceil(self.n_per_cube()) * m.div_ceil(self.m_per_cube());
        let max_splits = (self.chunks() / (4 * self.k_planes * self.chunks_in_flight)).max(1);
        self.k_splits = (cubes_per_processor * processors / blocks).clamp(1, max_splits);
    }

    /// Weight rows per cube.
    pub(super) fn n_per_cube(&self) -> usize {
        FLOAT_MMA.m * self.n_tiles * self.n_planes
    }

    /// Input rows per cube.
    pub(super) fn m_per_cube(&self) -> usize {
        FLOAT_MMA.n * self.m_tiles * self.m_planes
    }

    /// Consecutive values that a unit loads (a piece).
    pub(super) fn piece_len(&self) -> usize {
        if self.weight.element.bits() == 8 { 16 } else { 32 }
    }

    /// Chunks per row; a chunk is one piece for each of [`LANES_PER_ROW`] units.
    pub(super) fn chunks(&self) -> usize {
        self.pieces().div_ceil(LANES_PER_ROW)
    }

    pub(super) fn pieces(&self) -> usize {
        self.weight.cols.div_ceil(self.piece_len())
    }

    /// Words per piece.
    pub(super) fn words_per_piece(&self) -> usize {
        self.piece_len() * self.weight.element.bits() as usize / 32
    }

    pub(super) fn pairs_per_piece(&self) -> usize {
        self.piece_len() / 2
    }

    /// Values of a piece that share a scale.
    pub(super) fn values_per_scale(&self) -> usize {
        self.weight.values_per_scale(self.piece_len())
    }

    /// Chunks that all planes and cubes that split k compute in an iteration.
    fn chunks_per_iteration(&self) -> usize {
        self.k_planes * self.k_splits * self.chunks_in_flight
    }

    /// Iterations along k; pipeline stages in the staged kernel.
    pub(super) fn iterations(&self) -> usize {
        self.chunks().div_ceil(self.chunks_per_iteration())
    }

    /// True if no unit reads beyond the end of a row.
    pub(super) fn has_no_tail(&self) -> bool {
        self.weight.cols == self.iterations() * self.chunks_per_iteration() * LANES_PER_ROW * self.piece_len()
    }
}
