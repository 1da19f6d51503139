//! Dequantizing GEMM Y = X Wᵀ on matrix instructions for many rows of X, which are staged in shared memory with double
//! buffering. Operands, fragments and dequantization: see `mma.rs`.
//!
//! Data flow: a plane computes a tile of `16 * form.n_tiles` columns and `8 * form.m_tiles` rows of Y over the chunks
//! of its split; all planes of a cube share the rows of X. While a cube computes a pipeline stage of
//! `form.chunks_in_flight` chunks, the quantized values of the next stage are loaded into registers, and its input
//! values, in `form.stage_parts` parts, through registers into the other shared-memory buffer.
//!
//! Traffic: W once for each `8 * form.m_tiles` rows of X, X once per cube. Roofline: matrix instructions, or memory
//! bandwidth for W with fewer rows.

use super::mma_config::{LANES_PER_ROW, MmaGemmConfig, VALUES_PER_ACCESS, mma_format};
use super::mma_dequant::{dequant_offset, dequant_pair, input_pair, pair_from_bits};
use super::mma_tiles::{clamped_rows, load_words, multiply_step, store_tiles, zero_tiles};
use super::spec::scale_index;
use super::split_k::launch;
use crate::cube::capability::{FLOAT_MMA, PLANE_SIZE};
use crate::cube::decode::decode;
use crate::cube::layer::{PlanResult, buffer_arg};
use crate::cube::{Cube, CubeCapability, CubeContext, CubeError, CubeLayerPlan};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::{Element, LayerSpec};
use cubecl::prelude::*;

/// Minimum tiles of input rows, measured on an H200.
const MIN_TILES: usize = 5;

/// Dequantizing GEMM on matrix instructions for many input rows.
pub(crate) struct StagedMmaGemm;

impl<R: Runtime> LayerKernel<Cube<R>> for StagedMmaGemm {
    fn name(&self) -> &'static str {
        "staged_mma_gemm"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, capability: &CubeCapability) -> Result<Cost, Rejection> {
        config(spec, shape, capability)?;
        Ok(Cost::Fastest)
    }

    fn prepare(&self, context: &CubeContext<R>, spec: &LayerSpec, shape: LinearShape) -> PlanResult {
        if !context.aligned_input {
            return Err(CubeError::Misaligned { operand: "x" });
        }
        let LinearShape { m, n, .. } = shape;
        let mut form = config(spec, shape, &CubeCapability::of_client(&context.client))?;
        // Few accumulators leave registers for two cubes per multiprocessor.
        let cubes_per_processor = if form.m_tiles <= 6 && form.converts_exact_pairs() { 2 } else { 1 };
        form.configure_device(&context.client, shape, cubes_per_processor);
        Ok(CubeLayerPlan::new(context, spec, shape, move |client, operands| {
            launch(client, operands, shape, form, |count, dim, y, dtypes| {
                // SAFETY: the kernel checks rows against their number, and the operands have the sizes of the layer.
                unsafe {
                    staged_mma_gemm::launch_unchecked::<R>(
                        client,
                        count,
                        dim,
                        4,
                        form.word_width,
                        buffer_arg(operands.x, form.dtype.width() * VALUES_PER_ACCESS),
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

/// Selects the tile configuration, which was tuned on an H200.
fn config(spec: &LayerSpec, shape: LinearShape, capability: &CubeCapability) -> Result<MmaGemmConfig, Rejection> {
    let mut form = MmaGemmConfig::new(spec.dtype, mma_format(spec, capability)?, shape);
    let tiles = shape.m.div_ceil(FLOAT_MMA.n);
    if tiles < MIN_TILES || !shape.k.is_multiple_of(VALUES_PER_ACCESS) || !form.supports_staging() {
        return Err(Rejection::Spec(
            "at least 33 input rows, k divisible by 8, and scales and zero points that do not cross words",
        ));
    }
    match (tiles, form.converts_exact_pairs()) {
        (..=8, _) => form.n_tiles = 1,
        // Formats without group scales need fewer registers, which allows more accumulators; other formats dequantize
        // more weight rows at once.
        (_, true) => {
            (form.m_tiles, form.chunks_in_flight) = (tiles.min(16), 1);
            form.stage_parts = if form.weight.element == Element::E4m3 { 1 } else { form.steps_per_stage() };
        }
        (128.., false) => {
            form.m_tiles = 16;
            if form.smem_bytes() > capability.shared_memory {
                form.chunks_in_flight = 1;
            }
        }
        _ => form.stage_parts = form.steps_per_stage(),
    }
    let (max, value) = (capability.shared_memory, form.smem_bytes());
    if value > max { Err(Rejection::Size { what: "bytes of shared memory", max, value }) } else { Ok(form) }
}

impl MmaGemmConfig {
    /// Accesses per input row of a pipeline stage.
    fn accesses_per_stage_row(&self) -> usize {
        self.chunks_in_flight * LANES_PER_ROW * self.piece_len() / VALUES_PER_ACCESS
    }

    /// Distance of rows in shared memory, in accesses. Padded so that eight adjacent units, which read two rows, access
    /// different banks.
    fn smem_row_stride(&self) -> usize {
        self.accesses_per_stage_row() + 4
    }

    /// Size of a shared-memory buffer, in accesses.
    fn smem_stage_len(&self) -> usize {
        FLOAT_MMA.n * self.m_tiles * self.smem_row_stride()
    }

    /// True if scales and zero points do not span words, and all values of an input access share a scale.
    fn supports_staging(&self) -> bool {
        let whole = |bits: u32| bits == 0 || 32 % bits == 0;
        self.weight.scales_in_epilogue()
            || self.values_per_scale().is_multiple_of(VALUES_PER_ACCESS)
                && whole(self.weight.scale.bits())
                && whole(self.weight.zero.bits())
    }

    /// Bytes of shared memory of both buffers.
    fn smem_bytes(&self) -> usize {
        2 * self.smem_stage_len() * 2 * VALUES_PER_ACCESS
    }

    /// Units of a cube.
    fn units_per_cube(&self) -> usize {
        PLANE_SIZE * self.n_planes
    }

    /// Accesses per unit and pipeline stage.
    fn accesses_per_unit(&self) -> usize {
        (FLOAT_MMA.n * self.m_tiles * self.accesses_per_stage_row()).div_ceil(self.units_per_cube())
    }

    /// Steps of a pipeline stage; each multiplies the values of one input access.
    fn steps_per_stage(&self) -> usize {
        self.chunks_in_flight * self.accesses_per_piece()
    }

    /// Steps during which one part of the next pipeline stage is loaded.
    fn steps_per_part(&self) -> usize {
        self.steps_per_stage() / self.stage_parts
    }

    /// True if a stage is also loaded behind the last one, where it is not used: a branch would split the loads in
    /// flight. With few stages the extra load would cost more.
    fn prefetches_past_end(&self) -> bool {
        self.n_tiles > 1
    }

    /// Accesses of a unit in one of `parts` parts of a pipeline stage.
    fn part_accesses(&self, part: usize, parts: usize) -> std::ops::Range<usize> {
        let each = self.accesses_per_unit().div_ceil(parts);
        (each * part).min(self.accesses_per_unit())..(each * (part + 1)).min(self.accesses_per_unit())
    }

    /// Input accesses per piece.
    fn accesses_per_piece(&self) -> usize {
        self.piece_len() / VALUES_PER_ACCESS
    }

    /// Scales per piece.
    fn scales_per_piece(&self) -> usize {
        if self.weight.scales_in_epilogue() { 0 } else { self.piece_len() / self.values_per_scale() }
    }
}

/// Computes y = x wᵀ, or partial sums of it with `form.k_splits`.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn staged_mma_gemm<F: Float, Y: Float, X: Size, W: Size>(
    input: &Array<Vector<u32, X>>,
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
    let (lane, plane) = (UNIT_POS_X as usize, UNIT_POS_Z as usize);
    let (g, t) = (lane / LANES_PER_ROW, lane % LANES_PER_ROW);
    let split = CUBE_POS_X as usize % comptime!(form.k_splits);
    let block = CUBE_POS_X as usize / comptime!(form.k_splits);
    let first_row = block * comptime!(form.n_per_cube()) + plane * comptime!(FLOAT_MMA.m * form.n_tiles);
    let first_input = CUBE_POS_Z as usize * comptime!(form.m_per_cube());
    let first_chunk = split * comptime!(form.iterations() * form.chunks_in_flight);
    let (rows, words) = comptime!((2 * form.n_tiles, form.words_per_piece()));

    let mut sums = zero_tiles::<f32>(comptime!(form.n_tiles * form.m_tiles));
    let weight_rows = clamped_rows(first_row, g, outputs, rows);
    let mut staged = SharedMemory::<Vector<u32, Const<4>>>::new(comptime!(2 * form.smem_stage_len()));
    let mut loaded = Array::<u32>::new(comptime!(form.chunks_in_flight * rows * words));
    let mut scaled = Array::<u32>::new(comptime!(2 * (form.chunks_in_flight * rows * form.scales_per_piece()).max(1)));
    let mut initial = Array::<Vector<u32, X>>::new(comptime!(form.accesses_per_unit()));
    load_input::<X>(input, &mut initial, first_input, first_chunk, inputs, 0usize, 1usize, form);
    #[unroll]
    for chunk_in_stage in 0..comptime!(form.chunks_in_flight) {
        load_weight::<W>(
            codes,
            scales,
            zeros,
            &mut loaded,
            &mut scaled,
            &weight_rows,
            first_chunk + chunk_in_stage,
            chunk_in_stage,
            form,
        );
    }
    store_input::<F, X>(&initial, &mut staged, 0usize, first_chunk, 0usize, 1usize, form);
    let last_chunk = first_chunk + comptime!((form.iterations() - 1) * form.chunks_in_flight);
    let mut incoming = Array::<Vector<u32, X>>::new(comptime!(form.part_accesses(0, form.stage_parts).len()));
    for stage in 0..comptime!(form.iterations()) {
        let buffer = stage % 2 * comptime!(form.smem_stage_len());
        let chunk = first_chunk + stage * comptime!(form.chunks_in_flight);
        let loads_next = comptime!(form.prefetches_past_end()) || stage + 1 < comptime!(form.iterations());
        let next = min(chunk + comptime!(form.chunks_in_flight), last_chunk);
        // After this barrier all units have finished reading the buffer that is written next.
        sync_cube();
        let from = buffer + g * comptime!(form.smem_row_stride()) + t;
        #[unroll]
        for chunk_in_stage in 0..comptime!(form.chunks_in_flight) {
            let piece = min((chunk + chunk_in_stage) * LANES_PER_ROW + t, comptime!(form.pieces() - 1));
            #[unroll]
            for access in 0..comptime!(form.accesses_per_piece()) {
                let step = comptime!(chunk_in_stage * form.accesses_per_piece() + access);
                let part = comptime!(step / form.steps_per_part());
                if comptime!(step.is_multiple_of(form.steps_per_part())) && loads_next {
                    load_input::<X>(input, &mut incoming, first_input, next, inputs, part, form.stage_parts, form);
                }
                let mut weight_pairs = Array::<Vector<F, Const<2>>>::new(comptime!(rows * VALUES_PER_ACCESS / 2));
                #[unroll]
                for row_index in 0..rows {
                    dequant_access::<F>(
                        &loaded,
                        &scaled,
                        &mut weight_pairs,
                        weight_rows[row_index],
                        piece,
                        power,
                        chunk_in_stage,
                        access,
                        row_index,
                        form,
                    );
                }
                if comptime!(access + 1 == form.accesses_per_piece()) {
                    // The piece is consumed; its registers receive the piece of the next stage.
                    let next_chunk = chunk + comptime!(form.chunks_in_flight + chunk_in_stage);
                    load_weight::<W>(
                        codes,
                        scales,
                        zeros,
                        &mut loaded,
                        &mut scaled,
                        &weight_rows,
                        next_chunk,
                        chunk_in_stage,
                        form,
                    );
                }
                #[unroll]
                for tile in 0..comptime!(form.m_tiles) {
                    let input_pairs =
                        staged[from + comptime!(8 * tile * form.smem_row_stride() + step * LANES_PER_ROW)];
                    #[unroll]
                    for instruction in 0..2usize {
                        let mut b_fragment = Array::<Vector<F, Const<2>>>::new(2usize);
                        b_fragment[0] = pair_from_bits::<F>(input_pairs[comptime!(2 * instruction)]);
                        b_fragment[1] = pair_from_bits::<F>(input_pairs[comptime!(2 * instruction + 1)]);
                        let pairs = comptime!(VALUES_PER_ACCESS / 2);
                        multiply_step::<F>(&weight_pairs, &b_fragment, &mut sums, pairs, instruction, tile, form);
                    }
                }
                if comptime!((step + 1).is_multiple_of(form.steps_per_part())) && loads_next {
                    let next_buffer = comptime!(form.smem_stage_len()) - buffer;
                    store_input::<F, X>(&incoming, &mut staged, next_buffer, next, part, form.stage_parts, form);
                }
            }
        }
    }
    store_tiles::<Y>(&sums, scales, y, first_row, first_input, split, inputs, outputs, form);
}

/// Dequantizes the weight values of an input access to pairs.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn dequant_access<F: Float>(
    loaded: &Array<u32>,
    scaled: &Array<u32>,
    weight_pairs: &mut Array<Vector<F, Const<2>>>,
    row: usize,
    piece: usize,
    power: u32,
    #[comptime] chunk_in_stage: usize,
    #[comptime] access: usize,
    #[comptime] row_index: usize,
    #[comptime] form: MmaGemmConfig,
) {
    let first_word = comptime!((chunk_in_stage * 2 * form.n_tiles + row_index) * form.words_per_piece());
    let mut scale = 1.0f32.runtime();
    let mut offset = 0.0f32.runtime();
    if comptime!(!form.weight.scales_in_epilogue()) {
        let part = comptime!(access * VALUES_PER_ACCESS / form.values_per_scale());
        let at = comptime!(2 * ((chunk_in_stage * 2 * form.n_tiles + row_index) * form.scales_per_piece() + part));
        let group = scale_index(row, piece, part, comptime!(form.piece_len()), form.weight);
        scale =
            decode(extract_bits(scaled[at], group, comptime!(form.weight.scale.bits())), comptime!(form.weight.scale));
        let mut zero = 0u32.runtime();
        if comptime!(form.weight.zero.bits() > 0) {
            zero = extract_bits(scaled[comptime!(at + 1)], group, comptime!(form.weight.zero.bits()));
        }
        offset = dequant_offset(zero, scale, form);
    }
    #[unroll]
    for local_pair in 0..comptime!(VALUES_PER_ACCESS / 2) {
        let pair = comptime!(access * VALUES_PER_ACCESS / 2 + local_pair);
        weight_pairs[comptime!(row_index * VALUES_PER_ACCESS / 2 + local_pair)] =
            dequant_pair::<F>(loaded, scale, offset, power, first_word, pair, form);
    }
}

/// Extracts a packed element from its word.
#[cube]
fn extract_bits(word: u32, index: usize, #[comptime] bits: u32) -> u32 {
    let shift = (index % comptime!(32 / bits as usize)) as u32 * bits;
    (word >> shift) & comptime!(u32::MAX >> (32 - bits))
}

/// Starts loading the quantized values of a chunk, with the words of their scales and zero points. Pieces beyond the
/// end of a row are multiplied by zeros.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn load_weight<W: Size>(
    codes: &Array<Vector<u32, W>>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    loaded: &mut Array<u32>,
    scaled: &mut Array<u32>,
    weight_rows: &Array<usize>,
    chunk: usize,
    #[comptime] chunk_in_stage: usize,
    #[comptime] form: MmaGemmConfig,
) {
    let (rows, t) = (comptime!(2 * form.n_tiles), UNIT_POS_X as usize % LANES_PER_ROW);
    let piece = min(chunk * LANES_PER_ROW + t, comptime!(form.pieces() - 1));
    #[unroll]
    for row_index in 0..rows {
        let slot = comptime!(chunk_in_stage * rows + row_index);
        load_words::<W>(codes, loaded, weight_rows[row_index], piece, slot, form);
        #[unroll]
        for part in 0..comptime!(form.scales_per_piece()) {
            let group = scale_index(weight_rows[row_index], piece, part, comptime!(form.piece_len()), form.weight);
            let at = comptime!(2 * (slot * form.scales_per_piece() + part));
            scaled[at] = scales[group / comptime!(32 / form.weight.scale.bits() as usize)];
            if comptime!(form.weight.zero.bits() > 0) {
                scaled[comptime!(at + 1)] = zeros[group / comptime!(32 / form.weight.zero.bits() as usize)];
            }
        }
    }
}

/// Starts loading a part of the next pipeline stage of the input.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn load_input<X: Size>(
    input: &Array<Vector<u32, X>>,
    incoming: &mut Array<Vector<u32, X>>,
    first_input: usize,
    chunk: usize,
    inputs: usize,
    #[comptime] part: usize,
    #[comptime] parts: usize,
    #[comptime] form: MmaGemmConfig,
) {
    let unit = UNIT_POS as usize;
    let accesses = comptime!(form.part_accesses(part, parts));
    #[unroll]
    for i in 0..comptime!(accesses.len()) {
        let at = comptime!((accesses.start + i) * form.units_per_cube()) + unit;
        let row = min(first_input + at / comptime!(form.accesses_per_stage_row()), inputs - 1);
        let access = chunk * comptime!(LANES_PER_ROW * form.piece_len() / VALUES_PER_ACCESS)
            + at % comptime!(form.accesses_per_stage_row());
        // Values beyond the end are zeroed when they are stored: using a load here would wait for it.
        let last = comptime!(form.weight.cols / VALUES_PER_ACCESS - 1);
        let access = if comptime!(form.has_no_tail()) { access } else { min(access, last) };
        incoming[i] = input[row * comptime!(form.weight.cols / VALUES_PER_ACCESS) + access];
    }
}

/// Stores a part of a pipeline stage in shared memory, in the order of the weight values, so that adjacent units read
/// adjacent accesses.
#[cube]
fn store_input<F: Float, X: Size>(
    incoming: &Array<Vector<u32, X>>,
    staged: &mut SharedMemory<Vector<u32, Const<4>>>,
    buffer: usize,
    chunk: usize,
    #[comptime] part: usize,
    #[comptime] parts: usize,
    #[comptime] form: MmaGemmConfig,
) {
    let unit = UNIT_POS as usize;
    let accesses_per_piece = comptime!(form.accesses_per_piece());
    let accesses = comptime!(form.part_accesses(part, parts));
    #[unroll]
    for i in 0..comptime!(accesses.len()) {
        let at = comptime!((accesses.start + i) * form.units_per_cube()) + unit;
        let (row, access) =
            (at / comptime!(form.accesses_per_stage_row()), at % comptime!(form.accesses_per_stage_row()));
        let (piece, access_in_piece) = (access / accesses_per_piece, access % accesses_per_piece);
        let slot =
            (piece / LANES_PER_ROW * accesses_per_piece + access_in_piece) * LANES_PER_ROW + piece % LANES_PER_ROW;
        let total_accesses = comptime!(FLOAT_MMA.n * form.m_tiles * form.accesses_per_stage_row());
        if comptime!(total_accesses.is_multiple_of(form.units_per_cube())) || at < total_accesses {
            let loaded = incoming[i];
            let mut words = Array::<u32>::new(4usize);
            #[unroll]
            for pair in 0..4usize {
                words[pair] = loaded[pair];
            }
            let mut ordered = Vector::<u32, Const<4>>::empty();
            #[unroll]
            for pair in 0..4usize {
                let word = u32::reinterpret(input_pair::<F>(&words, pair, form));
                let is_past_end = chunk * comptime!(LANES_PER_ROW * form.piece_len() / VALUES_PER_ACCESS) + access
                    >= comptime!(form.weight.cols / VALUES_PER_ACCESS);
                ordered[pair] = if comptime!(form.has_no_tail()) { word } else { select(is_past_end, 0, word) };
            }
            staged[buffer + row * comptime!(form.smem_row_stride()) + slot] = ordered;
        }
    }
}
