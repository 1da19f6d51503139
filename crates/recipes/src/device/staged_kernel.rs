//! Dequantizing GEMM Y = X Wᵀ on matrix instructions for many rows of X, which are staged in shared memory with double
//! buffering. Operands, fragments and dequantization are those of `mma_gemm_kernel`.
//!
//! Data flow: a plane computes a tile of `16 * form.n_tiles` columns and `8 * form.m_tiles` rows of Y over the chunks
//! of its split; all planes of a cube share the rows of X. While a cube computes a pipeline stage of
//! `form.chunks_in_flight` chunks, the quantized values of the next stage are loaded into registers, and its input
//! values, in `form.stage_parts` parts, through registers into the other shared-memory buffer.
//!
//! Traffic: W once for each `8 * form.m_tiles` rows of X, X once per cube. Roofline: matrix instructions, or memory
//! bandwidth for W with fewer rows.

use super::kernels::decode;
use super::matrix_kernel::{
    ABREAST, INSTRUCTION, LANES, MatrixForm, group_of, met_pair, number_pair, pair_of, shift_of, write_tiles,
};
use cubecl::cmma::MmaDefinition;
use cubecl::prelude::*;

/// Input values per access.
pub const ACCESS: usize = 8;

impl MatrixForm {
    /// Accesses per input row of a pipeline stage.
    fn accesses(&self) -> usize {
        self.flight * ABREAST * self.piece() / ACCESS
    }

    /// Distance of rows in shared memory, in accesses. Padded so that eight adjacent units, which read two rows, access
    /// different banks.
    fn stride(&self) -> usize {
        self.accesses() + 4
    }

    /// Size of a shared-memory buffer, in accesses.
    fn half(&self) -> usize {
        INSTRUCTION.1 * self.inputs * self.stride()
    }

    /// True if scales and zero points do not span words, and all values of an input access share a scale.
    pub fn can_be_staged(&self) -> bool {
        let whole = |bits: u32| bits == 0 || 32 % bits == 0;
        self.scale_is_last()
            || self.part().is_multiple_of(ACCESS) && whole(self.scale.bits()) && whole(self.zero.bits())
    }

    /// Bytes of shared memory of both buffers.
    pub fn staged_bytes(&self) -> usize {
        2 * self.half() * 2 * ACCESS
    }

    /// Units of a cube.
    fn units(&self) -> usize {
        LANES * self.beside
    }

    /// Accesses per unit and pipeline stage.
    fn share(&self) -> usize {
        (INSTRUCTION.1 * self.inputs * self.accesses()).div_ceil(self.units())
    }

    /// Steps of a pipeline stage; each multiplies the values of one input access.
    pub fn steps(&self) -> usize {
        self.flight * self.accesses_of_piece()
    }

    /// Steps during which one part of the next pipeline stage is loaded.
    fn steps_of_part(&self) -> usize {
        self.steps() / self.parts
    }

    /// True if a stage is also loaded behind the last one, where it is not used: a branch would split the loads in
    /// flight. With few stages the extra load would cost more.
    fn comes_again(&self) -> bool {
        self.rows > 1
    }

    /// Accesses of a unit in one of `parts` parts of a pipeline stage.
    fn accesses_of_part(&self, part: usize, parts: usize) -> std::ops::Range<usize> {
        let each = self.share().div_ceil(parts);
        (each * part).min(self.share())..(each * (part + 1)).min(self.share())
    }

    /// Input accesses per piece.
    fn accesses_of_piece(&self) -> usize {
        self.piece() / ACCESS
    }

    /// Scales per piece.
    fn scales_of_piece(&self) -> usize {
        if self.scale_is_last() { 0 } else { self.piece() / self.part() }
    }

    fn stages(&self) -> usize {
        self.chunks().div_ceil(self.splits * self.flight)
    }
}

/// Computes y = x wᵀ, or partial sums of it with `form.k_splits`.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn staged_product<F: Float, Y: Float, X: Size, W: Size>(
    input: &Array<Vector<u32, X>>,
    codes: &Array<Vector<u32, W>>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    y: &mut Array<Y>,
    inputs: usize,
    outputs: usize,
    power: u32,
    #[comptime] form: MatrixForm,
    #[define(F, Y)] _dtypes: [StorageType; 2],
) {
    let (lane, plane) = (UNIT_POS_X as usize, UNIT_POS_Z as usize);
    let (g, t) = (lane / ABREAST, lane % ABREAST);
    let split = CUBE_POS_X as usize % comptime!(form.splits);
    let block = CUBE_POS_X as usize / comptime!(form.splits);
    let first_row = block * comptime!(form.rows_of_cube()) + plane * comptime!(INSTRUCTION.0 * form.rows);
    let first_input = CUBE_POS_Z as usize * comptime!(form.inputs_of_cube());
    let first_chunk = split * comptime!(form.stages() * form.flight);
    let (rows, words) = comptime!((2 * form.rows, form.words()));

    let mut sums = Sequence::<Array<Vector<f32, Const<2>>>>::new();
    #[unroll]
    for _ in 0..comptime!(form.rows * form.inputs) {
        let mut tile_sums = Array::<Vector<f32, Const<2>>>::new(2usize);
        tile_sums[0] = Vector::new(0.0f32);
        tile_sums[1] = Vector::new(0.0f32);
        sums.push(tile_sums);
    }
    // Rows beyond the last one repeat it; their results are not stored.
    let mut weight_rows = Array::<usize>::new(rows);
    #[unroll]
    for row_index in 0..rows {
        weight_rows[row_index] = min(first_row + comptime!(8 * row_index) + g, outputs - 1);
    }

    let mut staged = SharedMemory::<Vector<u32, Const<4>>>::new(comptime!(2 * form.half()));
    let mut loaded = Array::<u32>::new(comptime!(form.flight * rows * words));
    let mut scaled = Array::<u32>::new(comptime!(2 * (form.flight * rows * form.scales_of_piece()).max(1)));
    let mut initial = Array::<Vector<u32, X>>::new(comptime!(form.share()));
    fetch::<X>(input, &mut initial, first_input, first_chunk, inputs, 0usize, 1usize, form);
    #[unroll]
    for chunk_in_stage in 0..comptime!(form.flight) {
        load::<W>(
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
    put::<F, X>(&initial, &mut staged, 0usize, first_chunk, 0usize, 1usize, form);
    let last_chunk = first_chunk + comptime!((form.stages() - 1) * form.flight);
    let mut incoming = Array::<Vector<u32, X>>::new(comptime!(form.accesses_of_part(0, form.parts).len()));
    for stage in 0..comptime!(form.stages()) {
        let buffer = stage % 2 * comptime!(form.half());
        let chunk = first_chunk + stage * comptime!(form.flight);
        let loads_next = comptime!(form.comes_again()) || stage + 1 < comptime!(form.stages());
        let next = min(chunk + comptime!(form.flight), last_chunk);
        // After this barrier all units have finished reading the buffer that is written next.
        sync_cube();
        let from = buffer + g * comptime!(form.stride()) + t;
        #[unroll]
        for chunk_in_stage in 0..comptime!(form.flight) {
            let piece = min((chunk + chunk_in_stage) * ABREAST + t, comptime!(form.pieces() - 1));
            #[unroll]
            for access in 0..comptime!(form.accesses_of_piece()) {
                let step = comptime!(chunk_in_stage * form.accesses_of_piece() + access);
                let part = comptime!(step / form.steps_of_part());
                if comptime!(step.is_multiple_of(form.steps_of_part())) && loads_next {
                    fetch::<X>(input, &mut incoming, first_input, next, inputs, part, form.parts, form);
                }
                let mut weight_pairs = Array::<Vector<F, Const<2>>>::new(comptime!(rows * ACCESS / 2));
                #[unroll]
                for row_index in 0..rows {
                    unpack_access::<F>(
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
                if comptime!(access + 1 == form.accesses_of_piece()) {
                    // The piece is consumed; its registers receive the piece of the next stage.
                    let next_chunk = chunk + comptime!(form.flight + chunk_in_stage);
                    load::<W>(
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
                for tile in 0..comptime!(form.inputs) {
                    let input_pairs = staged[from + comptime!(8 * tile * form.stride() + step * ABREAST)];
                    #[unroll]
                    for instruction in 0..2usize {
                        let mut b_fragment = Array::<Vector<F, Const<2>>>::new(2usize);
                        b_fragment[0] = pair_of::<F>(input_pairs[comptime!(2 * instruction)]);
                        b_fragment[1] = pair_of::<F>(input_pairs[comptime!(2 * instruction + 1)]);
                        #[unroll]
                        for row_index in 0..comptime!(form.rows) {
                            let mut a_fragment = Array::<Vector<F, Const<2>>>::new(4usize);
                            #[unroll]
                            for i in 0..4usize {
                                a_fragment[i] = weight_pairs
                                    [comptime!((2 * row_index + i % 2) * ACCESS / 2 + 2 * instruction + i / 2)];
                            }
                            let def = MmaDefinition::<F, F, f32>::new(16usize, 8usize, 16usize);
                            def.execute_inplace(
                                &a_fragment,
                                &b_fragment,
                                sums.index_mut(comptime!(row_index * form.inputs + tile)),
                            );
                        }
                    }
                }
                if comptime!((step + 1).is_multiple_of(form.steps_of_part())) && loads_next {
                    let next_buffer = comptime!(form.half()) - buffer;
                    put::<F, X>(&incoming, &mut staged, next_buffer, next, part, form.parts, form);
                }
            }
        }
    }
    write_tiles::<Y>(&sums, scales, y, first_row, first_input, split, inputs, outputs, form);
}

/// Dequantizes the weight values of an input access to pairs.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn unpack_access<F: Float>(
    loaded: &Array<u32>,
    scaled: &Array<u32>,
    weight_pairs: &mut Array<Vector<F, Const<2>>>,
    row: usize,
    piece: usize,
    power: u32,
    #[comptime] chunk_in_stage: usize,
    #[comptime] access: usize,
    #[comptime] row_index: usize,
    #[comptime] form: MatrixForm,
) {
    let first_word = comptime!((chunk_in_stage * 2 * form.rows + row_index) * form.words());
    let mut scale = 1.0f32.runtime();
    let mut offset = 0.0f32.runtime();
    if comptime!(!form.scale_is_last()) {
        let part = comptime!(access * ACCESS / form.part());
        let at = comptime!(2 * ((chunk_in_stage * 2 * form.rows + row_index) * form.scales_of_piece() + part));
        let group = group_of(row, piece, part, form);
        scale = decode(bits_of(scaled[at], group, comptime!(form.scale.bits())), comptime!(form.scale));
        let mut zero = 0u32.runtime();
        if comptime!(form.zero.bits() > 0) {
            zero = bits_of(scaled[comptime!(at + 1)], group, comptime!(form.zero.bits()));
        }
        offset = shift_of(zero, scale, form);
    }
    #[unroll]
    for local_pair in 0..comptime!(ACCESS / 2) {
        let pair = comptime!(access * ACCESS / 2 + local_pair);
        weight_pairs[comptime!(row_index * ACCESS / 2 + local_pair)] =
            number_pair::<F>(loaded, scale, offset, power, first_word, pair, form);
    }
}

/// Extracts a packed element from its word.
#[cube]
fn bits_of(word: u32, index: usize, #[comptime] bits: u32) -> u32 {
    let shift = (index % comptime!(32 / bits as usize)) as u32 * bits;
    (word >> shift) & comptime!(u32::MAX >> (32 - bits))
}

/// Starts loading the quantized values of a chunk, with the words of their scales and zero points. Pieces beyond the
/// end of a row are multiplied by zeros.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn load<W: Size>(
    codes: &Array<Vector<u32, W>>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    loaded: &mut Array<u32>,
    scaled: &mut Array<u32>,
    weight_rows: &Array<usize>,
    chunk: usize,
    #[comptime] chunk_in_stage: usize,
    #[comptime] form: MatrixForm,
) {
    let (rows, words, t) = (comptime!(2 * form.rows), comptime!(form.words()), UNIT_POS_X as usize % ABREAST);
    let piece = min(chunk * ABREAST + t, comptime!(form.pieces() - 1));
    #[unroll]
    for row_index in 0..rows {
        let from =
            (weight_rows[row_index] * comptime!(form.words_per_row) + piece * words) / comptime!(form.word_width);
        #[unroll]
        for access in 0..comptime!(words / form.word_width) {
            let vector = codes[from + access];
            #[unroll]
            for i in 0..comptime!(form.word_width) {
                loaded[comptime!((chunk_in_stage * rows + row_index) * words + access * form.word_width + i)] =
                    vector[i];
            }
        }
        #[unroll]
        for part in 0..comptime!(form.scales_of_piece()) {
            let group = group_of(weight_rows[row_index], piece, part, form);
            let at = comptime!(2 * ((chunk_in_stage * rows + row_index) * form.scales_of_piece() + part));
            scaled[at] = scales[group / comptime!(32 / form.scale.bits() as usize)];
            if comptime!(form.zero.bits() > 0) {
                scaled[comptime!(at + 1)] = zeros[group / comptime!(32 / form.zero.bits() as usize)];
            }
        }
    }
}

/// Starts loading a part of the next pipeline stage of the input.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn fetch<X: Size>(
    input: &Array<Vector<u32, X>>,
    incoming: &mut Array<Vector<u32, X>>,
    first_input: usize,
    chunk: usize,
    inputs: usize,
    #[comptime] part: usize,
    #[comptime] parts: usize,
    #[comptime] form: MatrixForm,
) {
    let unit = UNIT_POS as usize;
    let accesses = comptime!(form.accesses_of_part(part, parts));
    #[unroll]
    for i in 0..comptime!(accesses.len()) {
        let at = comptime!((accesses.start + i) * form.units()) + unit;
        let row = min(first_input + at / comptime!(form.accesses()), inputs - 1);
        let access = chunk * comptime!(ABREAST * form.piece() / ACCESS) + at % comptime!(form.accesses());
        // Values beyond the end are zeroed when they are stored: using a load here would wait for it.
        let last = comptime!(form.cols / ACCESS - 1);
        let access = if comptime!(form.whole()) { access } else { min(access, last) };
        incoming[i] = input[row * comptime!(form.cols / ACCESS) + access];
    }
}

/// Stores a part of a pipeline stage in shared memory, in the order of the weight values, so that adjacent units read
/// adjacent accesses.
#[cube]
fn put<F: Float, X: Size>(
    incoming: &Array<Vector<u32, X>>,
    staged: &mut SharedMemory<Vector<u32, Const<4>>>,
    buffer: usize,
    chunk: usize,
    #[comptime] part: usize,
    #[comptime] parts: usize,
    #[comptime] form: MatrixForm,
) {
    let unit = UNIT_POS as usize;
    let accesses_per_piece = comptime!(form.piece() / ACCESS);
    let accesses = comptime!(form.accesses_of_part(part, parts));
    #[unroll]
    for i in 0..comptime!(accesses.len()) {
        let at = comptime!((accesses.start + i) * form.units()) + unit;
        let (row, access) = (at / comptime!(form.accesses()), at % comptime!(form.accesses()));
        let (piece, access_in_piece) = (access / accesses_per_piece, access % accesses_per_piece);
        let slot = (piece / ABREAST * accesses_per_piece + access_in_piece) * ABREAST + piece % ABREAST;
        let total_accesses = comptime!(INSTRUCTION.1 * form.inputs * form.accesses());
        if comptime!(total_accesses.is_multiple_of(form.units())) || at < total_accesses {
            let loaded = incoming[i];
            let mut words = Array::<u32>::new(4usize);
            #[unroll]
            for pair in 0..4usize {
                words[pair] = loaded[pair];
            }
            let mut ordered = Vector::<u32, Const<4>>::empty();
            #[unroll]
            for pair in 0..4usize {
                let word = u32::reinterpret(met_pair::<F>(&words, pair, form));
                let is_past_end =
                    chunk * comptime!(ABREAST * form.piece() / ACCESS) + access >= comptime!(form.cols / ACCESS);
                ordered[pair] = if comptime!(form.whole()) { word } else { select(is_past_end, 0, word) };
            }
            staged[buffer + row * comptime!(form.stride()) + slot] = ordered;
        }
    }
}
