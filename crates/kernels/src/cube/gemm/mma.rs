//! Dequantizing GEMM Y = X Wᵀ on matrix instructions (m16n8k16); weights are dequantized in registers. X is `[inputs,
//! k]` in f16 or bf16, W is `[outputs, k]` in packed words. CubeCL's units, planes and cubes are CUDA's threads, warps
//! and blocks.
//!
//! Data flow: a plane computes a tile of `16 * form.n_tiles` columns and `8 * form.m_tiles` rows of Y, over every
//! `form.k_planes`-th chunk of k. In a chunk, unit `4 g + t` loads a piece, 16 or 32 consecutive values, of rows g and
//! g + 8 of each sixteen weight rows, with `form.chunks_in_flight` chunks in flight, and the matching input values,
//! which all cubes but the first find in cache. The piece is dequantized to pairs of the input dtype and goes straight
//! into mma fragments: k is permuted identically in both operands. Planes that split k reduce their accumulators in
//! shared memory; cubes that split k (`form.k_splits`) write partial sums that another kernel reduces. The order of
//! additions is fixed.
//!
//! Traffic: W once for each `8 * form.m_tiles` rows of X, X once per cube. Roofline: memory bandwidth for W with few
//! rows of X, as long as dequantization keeps up: 2 instructions per 8-bit value, 4 to 6 with group scales. Matrix
//! instructions with many rows.

use super::spec::{dequantized_format, grid};
use crate::cube::capability::{FLOAT_MMA, PLANE_SIZE, max_vector_width};
use crate::cube::decode::{DequantMode, decode, decode_fast, unpack_value};
use crate::cube::layer::{PlanResult, buffer_arg};
use crate::cube::matrix::storage;
use crate::cube::{Cube, CubeCapability, CubeContext, CubeLayerPlan, LayerOperands};
use crate::format::Format;
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::{Dtype, Element, LayerSpec};
use cubecl::cmma::MmaDefinition;
use cubecl::prelude::*;

/// Input values per access of 16 bytes.
pub(super) const VALUES_PER_ACCESS: usize = 8;

/// Units of a cube that reduces partial sums of split-K.
const UNITS_PER_REDUCTION: usize = 256;

/// Dequantizing GEMM on matrix instructions.
pub struct MmaGemm;

impl<R: Runtime> LayerKernel<Cube<R>> for MmaGemm {
    fn name(&self) -> &'static str {
        "mma_gemm"
    }

    fn accepts(&self, spec: &LayerSpec, _: LinearShape, capability: &CubeCapability) -> Result<Cost, Rejection> {
        mma_format(spec, capability)?;
        Ok(Cost::Fastest)
    }

    fn prepare(&self, context: &CubeContext<R>, spec: &LayerSpec, shape: LinearShape) -> PlanResult {
        let LinearShape { m, n, .. } = shape;
        let form = config(context, MmaGemmConfig::new(spec.dtype, dequantized_format(spec)?, shape), shape);
        Ok(CubeLayerPlan::new(context, spec, shape, move |client, operands| {
            launch(client, operands, shape, form, |count, dim, y, dtypes| {
                // SAFETY: the kernel checks rows against their number, and the operands have the sizes of the layer.
                unsafe {
                    mma_gemm::launch_unchecked::<R>(
                        client,
                        count,
                        dim,
                        form.input_width,
                        form.word_width,
                        buffer_arg(operands.x, form.dtype.width() * form.input_width),
                        buffer_arg(operands.weight.codes, 4 * form.word_width),
                        operands.scales(),
                        operands.zeros(),
                        y,
                        m,
                        n,
                        form.magic_bits(),
                        form,
                        dtypes,
                    );
                }
            });
        }))
    }
}

/// Returns the weight format of a layer that is dequantized for matrix instructions.
pub(super) fn mma_format(spec: &LayerSpec, capability: &CubeCapability) -> Result<Format, Rejection> {
    let format = dequantized_format(spec)?;
    let missing = Rejection::Device("matrix instructions on the dtype");
    if capability.has_mma(spec.dtype) { Ok(format) } else { Err(missing) }
}

/// Selects the tile configuration, which was tuned on an H200.
fn config<R: Runtime>(context: &CubeContext<R>, mut form: MmaGemmConfig, shape: LinearShape) -> MmaGemmConfig {
    let tiles = shape.m.div_ceil(FLOAT_MMA.n);
    // Unaligned rows and unaligned inputs are read value by value.
    let is_vectorized = context.aligned_input && shape.k.is_multiple_of(VALUES_PER_ACCESS);
    form.input_width = if is_vectorized { VALUES_PER_ACCESS } else { 1 };
    // With few input rows many planes split k to load the weight. With more rows every cube reads the whole input, so
    // cubes must be larger.
    let max_in_flight;
    (form.k_planes, form.n_planes, form.m_planes, form.n_tiles, max_in_flight) = match tiles {
        1 => (16, 1, 1, 1, 2),
        2..=4 => (8, 1, 1, 1, 4),
        5..=8 => (8, 2, 1, 1, 2),
        _ => (1, 4, 2, 2, 1),
    };
    form.chunks_in_flight = 1;
    if !is_vectorized {
        // Each value is a branch; with many of them CubeCL's compiler overflows its stack.
        (form.n_tiles, form.m_tiles) = (1, tiles.min(2));
    }
    let chunks = form.chunks();
    // At least two chunks per plane, or the reduction costs more than it saves.
    while form.k_planes > 1 && chunks < 2 * form.k_planes {
        form.k_planes /= 2;
    }
    form.configure_device(&context.client, shape, 1);
    let max_in_flight = if is_vectorized { max_in_flight } else { 1 };
    form.chunks_in_flight = chunks.div_ceil(form.k_planes * form.k_splits).min(max_in_flight);
    form
}

/// Launches a GEMM and, with split-K, the reduction of its partial sums. `gemm` receives the sizes of the launch, the
/// output, and the dtypes of input and output.
pub(super) fn launch<R: Runtime>(
    client: &ComputeClient<R>,
    operands: &LayerOperands,
    LinearShape { m, n, .. }: LinearShape,
    form: MmaGemmConfig,
    gemm: impl FnOnce(CubeCount, CubeDim, ArrayArg<R>, [StorageType; 2]),
) {
    let parts = (form.k_splits > 1).then(|| client.empty(4 * form.k_splits * m * n));
    let (target, dtype) = parts.as_ref().map_or((operands.y, form.dtype), |parts| (parts, Dtype::F32));
    let (row_cubes, input_cubes) = (n.div_ceil(form.n_per_cube()), m.div_ceil(form.m_per_cube()));
    let count = CubeCount::Static((row_cubes * form.k_splits) as u32, 1, input_cubes as u32);
    let dim = CubeDim::new_3d(PLANE_SIZE as u32, form.k_planes as u32, (form.n_planes * form.m_planes) as u32);
    gemm(count, dim, buffer_arg(target, dtype.width()), [storage(form.dtype), storage(dtype)]);
    if let Some(parts) = parts {
        // SAFETY: the kernel checks its index against `m * n`, and there are `k_splits` partial sums for each index.
        unsafe {
            reduce_splits::launch_unchecked::<R>(
                client,
                grid((m * n).div_ceil(UNITS_PER_REDUCTION), 1),
                CubeDim::new_1d(UNITS_PER_REDUCTION as u32),
                buffer_arg(&parts, 4),
                operands.scales(),
                buffer_arg(operands.y, form.dtype.width()),
                m * n,
                n,
                form,
                storage(form.dtype),
            );
        }
    }
}

/// Units that share a row of a chunk.
pub const LANES_PER_ROW: usize = 4;

/// Compile-time parameters of the GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MmaGemmConfig {
    /// Values per row of both operands (k).
    pub cols: usize,
    /// Words of quantized values per weight row.
    pub words_per_row: usize,
    /// Values of a row that share a scale.
    pub group: usize,
    pub element: Element,
    /// Dtype of the input.
    pub dtype: Dtype,
    pub scale: Element,
    pub zero: DequantMode,
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
    pub fn new(dtype: Dtype, format: Format, LinearShape { m, k, .. }: LinearShape) -> Self {
        Self {
            cols: k,
            words_per_row: format.words_per_row(k),
            group: format.group_size(k),
            element: format.element,
            dtype,
            scale: format.scale,
            zero: DequantMode::of_format(&format),
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
    pub fn configure_device<R: Runtime>(
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
    pub fn n_per_cube(&self) -> usize {
        FLOAT_MMA.m * self.n_tiles * self.n_planes
    }

    /// Input rows per cube.
    pub fn m_per_cube(&self) -> usize {
        FLOAT_MMA.n * self.m_tiles * self.m_planes
    }

    /// Consecutive values that a unit loads (a piece).
    pub fn piece_len(&self) -> usize {
        if self.element.bits() == 8 { 16 } else { 32 }
    }

    /// Chunks per row; a chunk is one piece for each of [`LANES_PER_ROW`] units.
    pub fn chunks(&self) -> usize {
        self.pieces().div_ceil(LANES_PER_ROW)
    }

    pub fn pieces(&self) -> usize {
        self.cols.div_ceil(self.piece_len())
    }

    /// Words per piece.
    pub fn words_per_piece(&self) -> usize {
        self.piece_len() * self.element.bits() as usize / 32
    }

    pub fn pairs_per_piece(&self) -> usize {
        self.piece_len() / 2
    }

    pub fn groups_per_row(&self) -> usize {
        self.cols.div_ceil(self.group)
    }

    /// Values of a piece that share a scale.
    pub fn values_per_scale(&self) -> usize {
        if self.groups_per_row() == 1 { self.piece_len() } else { self.group.min(self.piece_len()) }
    }

    /// True if each row has a single scale without zero point, which is applied in the epilogue.
    pub fn scales_in_epilogue(&self) -> bool {
        self.groups_per_row() == 1 && self.zero == DequantMode::ScaleOnly
    }

    /// True if values are converted to the input dtype in pairs, exactly.
    pub fn converts_exact_pairs(&self) -> bool {
        self.scales_in_epilogue() && matches!(self.element, Element::Signed(8) | Element::E4m3)
    }

    /// True if 4-bit values are dequantized in pairs in the input dtype, with scale and zero point in this dtype. The
    /// compiler may round the product before the addition.
    fn converts_scaled_pairs(&self) -> bool {
        let own = Element::Float(self.dtype);
        self.pair_distance() == 4
            && self.scale == own
            && self.zero == DequantMode::ZeroAfterScale(own)
            && !self.scales_in_epilogue()
    }

    /// Distance of the two values of a pair: the one that is cheapest to move into both halves of a word.
    fn pair_distance(&self) -> usize {
        match self.element {
            Element::Unsigned(4) => 4,
            _ if self.converts_exact_pairs() => 2,
            _ => 1,
        }
    }

    /// Bit pattern of the power of two into whose low mantissa bits values are inserted. Passed at run time, because an
    /// instruction that masks and ORs accepts a single immediate.
    pub fn magic_bits(&self) -> u32 {
        match (self.converts_exact_pairs() || self.converts_scaled_pairs(), self.dtype) {
            (true, Dtype::F16) => 0x6400_6400,
            (true, _) => 0x4300_4300,
            (false, _) => 0x4300_0000,
        }
    }

    /// Index of the first value of a pair.
    fn pair_start(&self, pair: usize) -> usize {
        let apart = self.pair_distance();
        pair / apart * 2 * apart + pair % apart
    }

    fn iterations(&self) -> usize {
        self.chunks().div_ceil(self.k_planes * self.k_splits * self.chunks_in_flight)
    }

    /// True if no unit reads beyond the end of a row.
    pub fn has_no_tail(&self) -> bool {
        self.cols
            == self.iterations()
                * self.k_planes
                * self.k_splits
                * self.chunks_in_flight
                * LANES_PER_ROW
                * self.piece_len()
    }
}

/// Computes y = x wᵀ, or partial sums of it with `form.k_splits`.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn mma_gemm<F: Float, Y: Float, X: Size, W: Size>(
    input: &Array<Vector<F, X>>,
    codes: &Array<Vector<u32, W>>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    y: &mut Array<Y>,
    inputs: usize,
    outputs: usize,
    power: u32,
    #[comptime] form: MmaGemmConfig,
    #[define(F, Y)] _dtypes: [StorageType; 2],
) {
    let (lane, plane, team) = (UNIT_POS_X as usize, UNIT_POS_Y as usize, UNIT_POS_Z as usize);
    let (g, t) = (lane / LANES_PER_ROW, lane % LANES_PER_ROW);
    let split = CUBE_POS_X as usize % comptime!(form.k_splits);
    let block = CUBE_POS_Y as usize * (CUBE_COUNT_X as usize / comptime!(form.k_splits))
        + CUBE_POS_X as usize / comptime!(form.k_splits);
    let first_row =
        block * comptime!(form.n_per_cube()) + team % comptime!(form.n_planes) * comptime!(FLOAT_MMA.m * form.n_tiles);
    let first_input = CUBE_POS_Z as usize * comptime!(form.m_per_cube())
        + team / comptime!(form.n_planes) * comptime!(FLOAT_MMA.n * form.m_tiles);
    let (rows, words, pairs) = comptime!((2 * form.n_tiles, form.words_per_piece(), form.pairs_per_piece()));

    let mut sums = Sequence::<Array<Vector<f32, Const<2>>>>::new();
    #[unroll]
    for _ in 0..comptime!(form.n_tiles * form.m_tiles) {
        let mut tile_sums = Array::<Vector<f32, Const<2>>>::new(2usize);
        tile_sums[0] = Vector::new(0.0f32);
        tile_sums[1] = Vector::new(0.0f32);
        sums.push(tile_sums);
    }
    // Weight rows of the unit. Rows beyond the last one repeat it; their results are not stored.
    let mut weight_rows = Array::<usize>::new(rows);
    #[unroll]
    for row_index in 0..rows {
        weight_rows[row_index] = min(first_row + comptime!(8 * row_index) + g, outputs - 1);
    }

    let first_chunk = split * comptime!(form.k_planes) + plane;
    for iteration in 0..comptime!(form.iterations()) {
        // All loads precede their use. Pieces beyond the end of a row are multiplied by zeros of the input.
        let mut loaded = Array::<u32>::new(comptime!(form.chunks_in_flight * rows * words));
        #[unroll]
        for chunk in 0..comptime!(form.chunks_in_flight) {
            let piece = clamped_piece(first_chunk, iteration, chunk, t, form);
            #[unroll]
            for row_index in 0..rows {
                let from = (weight_rows[row_index] * comptime!(form.words_per_row) + piece * words)
                    / comptime!(form.word_width);
                #[unroll]
                for access in 0..comptime!(words / form.word_width) {
                    let vector = codes[from + access];
                    #[unroll]
                    for i in 0..comptime!(form.word_width) {
                        loaded[comptime!((chunk * rows + row_index) * words + access * form.word_width + i)] =
                            vector[i];
                    }
                }
            }
        }
        #[unroll]
        for chunk in 0..comptime!(form.chunks_in_flight) {
            let piece = clamped_piece(first_chunk, iteration, chunk, t, form);
            let mut weight_pairs = Array::<Vector<F, Const<2>>>::new(comptime!(rows * pairs));
            #[unroll]
            for row_index in 0..rows {
                dequant_piece::<F>(
                    &loaded,
                    scales,
                    zeros,
                    &mut weight_pairs,
                    weight_rows[row_index],
                    piece,
                    power,
                    chunk,
                    row_index,
                    form,
                );
            }
            let first_col = piece_index(first_chunk, iteration, chunk, t, form) * comptime!(form.piece_len());
            #[unroll]
            for tile in 0..comptime!(form.m_tiles) {
                let row = min(first_input + comptime!(8 * tile) + g, inputs - 1);
                let input_pairs = load_input_piece::<F, X>(input, row, first_col, form);
                #[unroll]
                for step in 0..comptime!(pairs / 2) {
                    let mut b_fragment = Array::<Vector<F, Const<2>>>::new(2usize);
                    b_fragment[0] = input_pair::<F>(&input_pairs, comptime!(2 * step), form);
                    b_fragment[1] = input_pair::<F>(&input_pairs, comptime!(2 * step + 1), form);
                    #[unroll]
                    for row_index in 0..comptime!(form.n_tiles) {
                        let mut a_fragment = Array::<Vector<F, Const<2>>>::new(4usize);
                        #[unroll]
                        for i in 0..4usize {
                            a_fragment[i] = weight_pairs[comptime!((2 * row_index + i % 2) * pairs + 2 * step + i / 2)];
                        }
                        let def = MmaDefinition::<F, F, f32>::new(16usize, 8usize, 16usize);
                        let at = comptime!(row_index * form.m_tiles + tile);
                        def.execute_inplace(&a_fragment, &b_fragment, sums.index_mut(at));
                    }
                }
            }
        }
    }

    if comptime!(form.k_planes > 1) {
        reduce_planes::<f32>(
            &mut sums,
            comptime!(form.n_tiles * form.m_tiles),
            form.k_planes,
            comptime!(form.n_planes * form.m_planes),
        );
    }
    if plane == 0 {
        store_tiles::<Y>(&sums, scales, y, first_row, first_input, split, inputs, outputs, form);
    }
}

/// Stores the accumulators of a plane, with the scales of the epilogue.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn store_tiles<Y: Float>(
    sums: &Sequence<Array<Vector<f32, Const<2>>>>,
    scales: &Array<u32>,
    y: &mut Array<Y>,
    first_row: usize,
    first_input: usize,
    split: usize,
    inputs: usize,
    outputs: usize,
    #[comptime] form: MmaGemmConfig,
) {
    let lane = UNIT_POS_X as usize;
    let (g, t) = (lane / LANES_PER_ROW, lane % LANES_PER_ROW);
    #[unroll]
    for row_tile in 0..comptime!(form.n_tiles) {
        #[unroll]
        for half in 0..2usize {
            let row = first_row + comptime!(16 * row_tile + 8 * half) + g;
            if row < outputs {
                let mut scale = 1.0f32.runtime();
                if comptime!(form.scales_in_epilogue() && form.k_splits == 1) {
                    scale = decode(unpack_value(scales, 0, row, comptime!(form.scale.bits())), comptime!(form.scale));
                }
                #[unroll]
                for tile in 0..comptime!(form.m_tiles) {
                    #[unroll]
                    for i in 0..2usize {
                        let input_row = first_input + comptime!(8 * tile + i) + 2 * t;
                        if input_row < inputs {
                            let sum = sums.index(comptime!(row_tile * form.m_tiles + tile))[half][i];
                            y[(split * inputs + input_row) * outputs + row] = Y::cast_from(sum * scale);
                        }
                    }
                }
            }
        }
    }
}

/// Reduces the partial sums of split-K, with the scales of the epilogue.
#[cube(launch_unchecked)]
fn reduce_splits<F: Float>(
    parts: &Array<f32>,
    scales: &Array<u32>,
    y: &mut Array<F>,
    count: usize,
    outputs: usize,
    #[comptime] form: MmaGemmConfig,
    #[define(F)] _dtype: StorageType,
) {
    if ABSOLUTE_POS < count {
        let mut sum = 0.0f32.runtime();
        #[unroll]
        for split in 0..comptime!(form.k_splits) {
            sum += parts[split * count + ABSOLUTE_POS];
        }
        if comptime!(form.scales_in_epilogue()) {
            let row = ABSOLUTE_POS % outputs;
            sum *= decode(unpack_value(scales, 0, row, comptime!(form.scale.bits())), comptime!(form.scale));
        }
        y[ABSOLUTE_POS] = F::cast_from(sum);
    }
}

/// Index of the piece of a unit; may lie beyond the end of a row.
#[cube]
fn piece_index(
    first: usize,
    iteration: usize,
    #[comptime] chunk: usize,
    t: usize,
    #[comptime] form: MmaGemmConfig,
) -> usize {
    let stride = comptime!(form.k_planes * form.k_splits);
    (first + iteration * comptime!(stride * form.chunks_in_flight) + comptime!(chunk * stride)) * LANES_PER_ROW + t
}

/// Index of the piece that a unit loads.
#[cube]
fn clamped_piece(
    first: usize,
    iteration: usize,
    #[comptime] chunk: usize,
    t: usize,
    #[comptime] form: MmaGemmConfig,
) -> usize {
    let piece = piece_index(first, iteration, chunk, t, form);
    if comptime!(form.has_no_tail()) { piece } else { min(piece, comptime!(form.pieces() - 1)) }
}

/// Dequantizes a piece of a row to pairs.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn dequant_piece<F: Float>(
    loaded: &Array<u32>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    weight_pairs: &mut Array<Vector<F, Const<2>>>,
    row: usize,
    piece: usize,
    power: u32,
    #[comptime] chunk: usize,
    #[comptime] row_index: usize,
    #[comptime] form: MmaGemmConfig,
) {
    let (words, pairs) = comptime!((form.words_per_piece(), form.pairs_per_piece()));
    let first_word = comptime!((chunk * 2 * form.n_tiles + row_index) * words);
    #[unroll]
    for part in 0..comptime!(form.piece_len() / form.values_per_scale()) {
        let mut scale = 1.0f32.runtime();
        let mut offset = 0.0f32.runtime();
        if comptime!(!form.scales_in_epilogue()) {
            let group = scale_index(row, piece, part, form);
            scale = decode(unpack_value(scales, 0, group, comptime!(form.scale.bits())), comptime!(form.scale));
            let mut zero = 0u32.runtime();
            if comptime!(form.zero.bits() > 0) {
                zero = unpack_value(zeros, 0, group, comptime!(form.zero.bits()));
            }
            offset = dequant_offset(zero, scale, form);
        }
        #[unroll]
        for local_pair in 0..comptime!(form.values_per_scale() / 2) {
            let pair = comptime!(part * form.values_per_scale() / 2 + local_pair);
            weight_pairs[comptime!(row_index * pairs + pair)] =
                dequant_pair::<F>(loaded, scale, offset, power, first_word, pair, form);
        }
    }
}

/// Index of the scale of a part of a piece. The last piece of a row may extend beyond its groups.
#[cube]
pub fn scale_index(row: usize, piece: usize, #[comptime] part: usize, #[comptime] form: MmaGemmConfig) -> usize {
    let group =
        (piece * comptime!(form.piece_len()) + comptime!(part * form.values_per_scale())) / comptime!(form.group);
    row * comptime!(form.groups_per_row()) + min(group, comptime!(form.groups_per_row() - 1))
}

/// Offset added to scaled values.
#[cube]
pub fn dequant_offset(zero: u32, scale: f32, #[comptime] form: MmaGemmConfig) -> f32 {
    let mut offset = match comptime!(form.zero) {
        DequantMode::ZeroBeforeScale(element) => -decode(zero, element) * scale,
        DequantMode::ZeroAfterScale(element) => {
            let midpoint =
                comptime!(if form.converts_scaled_pairs() { 0.0 } else { (1u32 << (form.element.bits() - 1)) as f32 });
            decode(zero, element) - midpoint * scale
        }
        _ => 0.0f32.runtime(),
    };
    if comptime!(form.pair_distance() == 4 && !form.converts_scaled_pairs()) {
        offset -= 128.0 * scale;
    }
    offset
}

/// Dequantizes a pair of values.
#[cube]
pub fn dequant_pair<F: Float>(
    loaded: &Array<u32>,
    scale: f32,
    offset: f32,
    power: u32,
    #[comptime] first_word: usize,
    #[comptime] pair: usize,
    #[comptime] form: MmaGemmConfig,
) -> Vector<F, Const<2>> {
    if comptime!(form.converts_exact_pairs()) {
        convert_pair::<F>(loaded[comptime!(first_word + pair / 2)], power, comptime!(pair % 2), form)
    } else if comptime!(form.converts_scaled_pairs()) {
        // Inserted into the low bits of a power of two with spacing 1; subtracting that and the midpoint is exact.
        let inserted = (loaded[comptime!(first_word + pair / 4)] >> comptime!(4 * (pair % 4) as u32)) & 0x000F_000F;
        let bias = comptime!(if form.dtype == Dtype::F16 { 1032.0 } else { 136.0 });
        let code = pair_from_bits::<F>(inserted | power) - Vector::new(F::new(bias));
        code * Vector::new(F::cast_from(scale)) + Vector::new(F::cast_from(offset))
    } else {
        dequant_pair_f32::<F>(loaded, scale, offset, power, first_word, pair, form)
    }
}

/// Converts the values `at` and `at + 2` of a word, without scales. An integer is inserted into the low bits of a power
/// of two with spacing 1, which is then subtracted: 2^7 in bf16, 2^10 in f16.
#[cube]
fn convert_pair<F: Float>(
    word: u32,
    power: u32,
    #[comptime] at: usize,
    #[comptime] form: MmaGemmConfig,
) -> Vector<F, Const<2>> {
    let is_bf16 = comptime!(form.dtype == Dtype::Bf16);
    if comptime!(form.element == Element::E4m3) {
        // Moved to the upper bytes, then multiplied to correct the exponent bias for the wider dtype.
        let upper = if comptime!(at == 0) { word << 8 } else { word };
        let sign = upper & 0x8000_8000u32;
        if comptime!(is_bf16) {
            pair_from_bits::<F>(sign | ((upper >> 4) & 0x07F0_07F0)) * Vector::new(F::new(comptime!(2f32.powi(120))))
        } else {
            pair_from_bits::<F>(sign | ((upper >> 1) & 0x3F80_3F80)) * Vector::new(F::new(256.0))
        }
    } else {
        let lower = if comptime!(at == 0) { word } else { word >> 8 };
        if comptime!(is_bf16) {
            // Only seven bits fit: the sign bit selects whether 128 or 256 is subtracted.
            pair_from_bits::<F>((lower & 0x007F_007F) | power) - pair_from_bits::<F>((lower & 0x0080_0080) | power)
        } else {
            pair_from_bits::<F>(((lower ^ 0x0080_0080) & 0x00FF_00FF) | power) - Vector::new(F::new(1152.0))
        }
    }
}

/// Reinterprets a word as a pair of values.
#[cube]
pub fn pair_from_bits<F: Float>(bits: u32) -> Vector<F, Const<2>> {
    Vector::<F, Const<2>>::reinterpret(bits)
}

/// Dequantizes a pair of values in f32 and rounds once.
#[cube]
fn dequant_pair_f32<F: Float>(
    loaded: &Array<u32>,
    scale: f32,
    offset: f32,
    power: u32,
    #[comptime] first_word: usize,
    #[comptime] pair: usize,
    #[comptime] form: MmaGemmConfig,
) -> Vector<F, Const<2>> {
    let mut values = Vector::<f32, Const<2>>::empty();
    #[unroll]
    for i in 0..2usize {
        let code = comptime!(form.pair_start(pair) + i * form.pair_distance());
        let bits = comptime!(form.element.bits());
        let (word, at) = comptime!((first_word + code * bits as usize / 32, (code * bits as usize % 32) as u32));
        let decoded = if comptime!(form.pair_distance() == 4) {
            // Inserted into the low bits of 2^7 as a bf16, which saves a shift and a mask.
            let shifted = if comptime!(at < 16) {
                loaded[word] << comptime!(16 - at)
            } else {
                loaded[word] >> comptime!(at - 16)
            };
            f32::from_bits((shifted & 0x000F_0000) | power)
        } else {
            let mut extracted = loaded[word] >> at;
            if comptime!(at + bits > 32) {
                extracted |= loaded[comptime!(word + 1)] << comptime!(32 - at);
            }
            decode_fast(extracted & comptime!(u32::MAX >> (32 - bits)), form.element)
        };
        values[i] = if comptime!(form.scales_in_epilogue()) {
            if comptime!(form.pair_distance() == 4) { decoded - 128.0 } else { decoded }
        } else {
            fma(decoded, scale, offset)
        };
    }
    Vector::cast_from(values)
}

/// Loads the input values that are multiplied with a piece, two per word; zero beyond the end of a row.
#[cube]
fn load_input_piece<F: Float, X: Size>(
    input: &Array<Vector<F, X>>,
    row: usize,
    first: usize,
    #[comptime] form: MmaGemmConfig,
) -> Array<u32> {
    let mut words = Array::<u32>::new(comptime!(form.pairs_per_piece()));
    if comptime!(form.input_width == 8) {
        #[unroll]
        for access in 0..comptime!(form.piece_len() / 8) {
            let col = first + comptime!(8 * access);
            let mut loaded = Vector::<F, X>::new(F::new(0.0));
            if comptime!(form.has_no_tail()) {
                loaded = input[(row * comptime!(form.cols) + col) / 8];
            } else if col < comptime!(form.cols) {
                loaded = input[(row * comptime!(form.cols) + col) / 8];
            }
            let vector = Vector::<u32, Const<4>>::reinterpret(loaded);
            #[unroll]
            for i in 0..4usize {
                words[comptime!(4 * access + i)] = vector[i];
            }
        }
    } else {
        #[unroll]
        for pair in 0..comptime!(form.pairs_per_piece()) {
            let mut values = Vector::<F, Const<2>>::new(F::new(0.0));
            #[unroll]
            for i in 0..2usize {
                let col = first + comptime!(2 * pair + i);
                if col < comptime!(form.cols) {
                    values[i] = input[row * comptime!(form.cols) + col][0];
                }
            }
            words[pair] = u32::reinterpret(values);
        }
    }
    words
}

/// Input pair in the order of a pair of weight values.
#[cube]
pub fn input_pair<F: Float>(
    words: &Array<u32>,
    #[comptime] pair: usize,
    #[comptime] form: MmaGemmConfig,
) -> Vector<F, Const<2>> {
    if comptime!(form.pair_distance() == 1) {
        pair_from_bits::<F>(words[pair])
    } else {
        let first = comptime!(form.pair_start(pair));
        let (near, far) = (words[comptime!(first / 2)], words[comptime!((first + form.pair_distance()) / 2)]);
        if comptime!(first.is_multiple_of(2)) {
            pair_from_bits::<F>((near & 0xFFFF) | (far << 16))
        } else {
            pair_from_bits::<F>((near >> 16) | (far & 0xFFFF_0000u32))
        }
    }
}

/// Tree reduction of the accumulators of `planes` planes that split k, into those of the first plane; a cube holds
/// `teams` groups of such planes.
#[cube]
pub fn reduce_planes<A: Numeric>(
    sums: &mut Sequence<Array<Vector<A, Const<2>>>>,
    #[comptime] tiles: usize,
    #[comptime] planes: usize,
    #[comptime] teams: usize,
) {
    let (lane, plane, team) = (UNIT_POS_X as usize, UNIT_POS_Y as usize, UNIT_POS_Z as usize);
    let values_per_plane = comptime!(4 * tiles * PLANE_SIZE);
    let mut shared = SharedMemory::<A>::new(comptime!(planes / 2 * teams * values_per_plane));
    #[unroll]
    for level in 0..comptime!(planes.ilog2()) {
        let width = comptime!(planes >> (level + 1));
        let slot = ((plane % width) * teams + team) * values_per_plane + lane;
        if plane >= width && plane < comptime!(2 * width) {
            #[unroll]
            for tile in 0..tiles {
                #[unroll]
                for i in 0..4usize {
                    shared[slot + comptime!((4 * tile + i) * PLANE_SIZE)] =
                        sums.index(tile)[comptime!(i / 2)][comptime!(i % 2)];
                }
            }
        }
        sync_cube();
        if plane < width {
            #[unroll]
            for tile in 0..tiles {
                let tile_sums = sums.index_mut(tile);
                #[unroll]
                for half in 0..2usize {
                    let mut partner = Vector::<A, Const<2>>::empty();
                    partner[0] = shared[slot + comptime!((4 * tile + 2 * half) * PLANE_SIZE)];
                    partner[1] = shared[slot + comptime!((4 * tile + 2 * half + 1) * PLANE_SIZE)];
                    tile_sums[half] = tile_sums[half] + partner;
                }
            }
        }
        sync_cube();
    }
}
