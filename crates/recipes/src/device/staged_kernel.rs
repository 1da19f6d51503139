//! The product of many rows with a stored weight on matrix instructions: rows of the input come through shared memory.
//!
//! Data flow: a plane makes `16 * form.rows` columns of the output for `8 * form.inputs` rows of the input, the same rows as
//! every plane of its cube, over the chunks of its split. While a cube multiplies one stage, `form.flight` chunks, the codes
//! of the next are on their way into registers, and its numbers, part by part, through registers into the other of two halves
//! of shared memory, where units find what meets their codes. Codes become numbers, and meet, as in `matrix_kernel`.
//!
//! Traffic: the weight once for each `8 * form.inputs` rows of the input, the input once for each cube. Roofline: the matrix
//! instructions, or for fewer rows the bytes of the weight over the memory's rate.

use super::kernels::decode;
use super::matrix_kernel::{
    ABREAST, INSTRUCTION, LANES, MatrixForm, group_of, met_pair, number_pair, pair_of, shift_of, write_tiles,
};
use cubecl::cmma::MmaDefinition;
use cubecl::prelude::*;

/// Numbers of the input in an access.
pub const ACCESS: usize = 8;

impl MatrixForm {
    /// Accesses in a row of the input in a stage.
    fn accesses(&self) -> usize {
        self.flight * ABREAST * self.piece() / ACCESS
    }

    /// What lies between one row in shared memory and the next, in accesses: eight units beside each other, which read of two
    /// rows, then do so from different banks.
    fn stride(&self) -> usize {
        self.accesses() + 4
    }

    /// A half of the shared memory, in accesses.
    fn half(&self) -> usize {
        INSTRUCTION.1 * self.inputs * self.stride()
    }

    /// Whether a word has whole scales and zeros, and an access of the input meets codes of one scale.
    pub fn can_be_staged(&self) -> bool {
        let whole = |bits: u32| bits == 0 || 32 % bits == 0;
        self.scale_is_last()
            || self.part().is_multiple_of(ACCESS) && whole(self.scale.bits()) && whole(self.zero.bits())
    }

    /// Bytes of shared memory that it takes.
    pub fn staged_bytes(&self) -> usize {
        2 * self.half() * 2 * ACCESS
    }

    /// Units of a cube.
    fn units(&self) -> usize {
        LANES * self.beside
    }

    /// Accesses of a stage for each unit.
    fn share(&self) -> usize {
        (INSTRUCTION.1 * self.inputs * self.accesses()).div_ceil(self.units())
    }

    /// Steps of a stage, in each of which units multiply what meets an access of theirs.
    pub fn steps(&self) -> usize {
        self.flight * self.accesses_of_piece()
    }

    /// Steps while one of the parts of the next stage comes.
    fn steps_of_part(&self) -> usize {
        self.steps() / self.parts
    }

    /// Whether the next stage comes behind the last one too, where nobody reads it: a branch would part what is in flight.
    /// With few stages it would cost more.
    fn comes_again(&self) -> bool {
        self.rows > 1
    }

    /// Accesses of one of so many parts of a unit's share.
    fn accesses_of_part(&self, part: usize, parts: usize) -> std::ops::Range<usize> {
        let each = self.share().div_ceil(parts);
        (each * part).min(self.share())..(each * (part + 1)).min(self.share())
    }

    /// Accesses of the input that meet a piece.
    fn accesses_of_piece(&self) -> usize {
        self.piece() / ACCESS
    }

    /// Scales of a piece.
    fn scales_of_piece(&self) -> usize {
        if self.scale_is_last() { 0 } else { self.piece() / self.part() }
    }

    fn stages(&self) -> usize {
        self.chunks().div_ceil(self.splits * self.flight)
    }
}

/// y = x wᵀ, or where cubes share columns their parts of it, by `form.splits`.
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
    let (lane, own) = (UNIT_POS_X as usize, UNIT_POS_Z as usize);
    let (g, t) = (lane / ABREAST, lane % ABREAST);
    let split = CUBE_POS_X as usize % comptime!(form.splits);
    let block = CUBE_POS_X as usize / comptime!(form.splits);
    let first_row = block * comptime!(form.rows_of_cube()) + own * comptime!(INSTRUCTION.0 * form.rows);
    let first_input = CUBE_POS_Z as usize * comptime!(form.inputs_of_cube());
    let first_chunk = split * comptime!(form.stages() * form.flight);
    let (rows, words) = comptime!((2 * form.rows, form.words()));

    let mut sums = Sequence::<Array<Vector<f32, Const<2>>>>::new();
    #[unroll]
    for _ in 0..comptime!(form.rows * form.inputs) {
        let mut of_tile = Array::<Vector<f32, Const<2>>>::new(2usize);
        of_tile[0] = Vector::new(0.0f32);
        of_tile[1] = Vector::new(0.0f32);
        sums.push(of_tile);
    }
    // Beyond the last row the last one is read again, and what comes of it is not written.
    let mut read = Array::<usize>::new(rows);
    #[unroll]
    for of in 0..rows {
        read[of] = min(first_row + comptime!(8 * of) + g, outputs - 1);
    }

    let mut staged = SharedMemory::<Vector<u32, Const<4>>>::new(comptime!(2 * form.half()));
    let mut loaded = Array::<u32>::new(comptime!(form.flight * rows * words));
    let mut scaled = Array::<u32>::new(comptime!(2 * (form.flight * rows * form.scales_of_piece()).max(1)));
    let mut first = Array::<Vector<u32, X>>::new(comptime!(form.share()));
    fetch::<X>(input, &mut first, first_input, first_chunk, inputs, 0usize, 1usize, form);
    #[unroll]
    for ahead in 0..comptime!(form.flight) {
        load::<W>(codes, scales, zeros, &mut loaded, &mut scaled, &read, first_chunk + ahead, ahead, form);
    }
    put::<F, X>(&first, &mut staged, 0usize, first_chunk, 0usize, 1usize, form);
    let last_chunk = first_chunk + comptime!((form.stages() - 1) * form.flight);
    let mut coming = Array::<Vector<u32, X>>::new(comptime!(form.accesses_of_part(0, form.parts).len()));
    for stage in 0..comptime!(form.stages()) {
        let half = stage % 2 * comptime!(form.half());
        let chunk = first_chunk + stage * comptime!(form.flight);
        let brings = comptime!(form.comes_again()) || stage + 1 < comptime!(form.stages());
        let next = min(chunk + comptime!(form.flight), last_chunk);
        // Who writes the other half has been here since everybody read it.
        sync_cube();
        let from = half + g * comptime!(form.stride()) + t;
        #[unroll]
        for ahead in 0..comptime!(form.flight) {
            let piece = min((chunk + ahead) * ABREAST + t, comptime!(form.pieces() - 1));
            #[unroll]
            for access in 0..comptime!(form.accesses_of_piece()) {
                let step = comptime!(ahead * form.accesses_of_piece() + access);
                let part = comptime!(step / form.steps_of_part());
                if comptime!(step.is_multiple_of(form.steps_of_part())) && brings {
                    fetch::<X>(input, &mut coming, first_input, next, inputs, part, form.parts, form);
                }
                let mut numbers = Array::<Vector<F, Const<2>>>::new(comptime!(rows * ACCESS / 2));
                #[unroll]
                for of in 0..rows {
                    unpack_access::<F>(&loaded, &scaled, &mut numbers, read[of], piece, power, ahead, access, of, form);
                }
                if comptime!(access + 1 == form.accesses_of_piece()) {
                    // All of the piece is in use: the same registers wait for that of the next stage.
                    let of_codes = chunk + comptime!(form.flight + ahead);
                    load::<W>(codes, scales, zeros, &mut loaded, &mut scaled, &read, of_codes, ahead, form);
                }
                #[unroll]
                for tile in 0..comptime!(form.inputs) {
                    let met = staged[from + comptime!(8 * tile * form.stride() + step * ABREAST)];
                    #[unroll]
                    for instruction in 0..2usize {
                        let mut right = Array::<Vector<F, Const<2>>>::new(2usize);
                        right[0] = pair_of::<F>(met[comptime!(2 * instruction)]);
                        right[1] = pair_of::<F>(met[comptime!(2 * instruction + 1)]);
                        #[unroll]
                        for of in 0..comptime!(form.rows) {
                            let mut left = Array::<Vector<F, Const<2>>>::new(4usize);
                            #[unroll]
                            for i in 0..4usize {
                                left[i] = numbers[comptime!((2 * of + i % 2) * ACCESS / 2 + 2 * instruction + i / 2)];
                            }
                            let def = MmaDefinition::<F, F, f32>::new(16usize, 8usize, 16usize);
                            def.execute_inplace(&left, &right, sums.index_mut(comptime!(of * form.inputs + tile)));
                        }
                    }
                }
                if comptime!((step + 1).is_multiple_of(form.steps_of_part())) && brings {
                    let other = comptime!(form.half()) - half;
                    put::<F, X>(&coming, &mut staged, other, next, part, form.parts, form);
                }
            }
        }
    }
    write_tiles::<Y>(&sums, scales, y, first_row, first_input, split, inputs, outputs, form);
}

/// The numbers of a row that meet an access of the input, two by two.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn unpack_access<F: Float>(
    loaded: &Array<u32>,
    scaled: &Array<u32>,
    numbers: &mut Array<Vector<F, Const<2>>>,
    row: usize,
    piece: usize,
    power: u32,
    #[comptime] ahead: usize,
    #[comptime] access: usize,
    #[comptime] of: usize,
    #[comptime] form: MatrixForm,
) {
    let first_word = comptime!((ahead * 2 * form.rows + of) * form.words());
    let mut scale = 1.0f32.runtime();
    let mut shift = 0.0f32.runtime();
    if comptime!(!form.scale_is_last()) {
        let part = comptime!(access * ACCESS / form.part());
        let at = comptime!(2 * ((ahead * 2 * form.rows + of) * form.scales_of_piece() + part));
        let group = group_of(row, piece, part, form);
        scale = decode(bits_of(scaled[at], group, comptime!(form.scale.bits())), comptime!(form.scale));
        let mut zero = 0u32.runtime();
        if comptime!(form.zero.bits() > 0) {
            zero = bits_of(scaled[comptime!(at + 1)], group, comptime!(form.zero.bits()));
        }
        shift = shift_of(zero, scale, form);
    }
    #[unroll]
    for own in 0..comptime!(ACCESS / 2) {
        let pair = comptime!(access * ACCESS / 2 + own);
        numbers[comptime!(of * ACCESS / 2 + own)] =
            number_pair::<F>(loaded, scale, shift, power, first_word, pair, form);
    }
}

/// The bits of a number out of the word that has them.
#[cube]
fn bits_of(word: u32, index: usize, #[comptime] bits: u32) -> u32 {
    let shift = (index % comptime!(32 / bits as usize)) as u32 * bits;
    (word >> shift) & comptime!(u32::MAX >> (32 - bits))
}

/// Sets out to read the codes of a chunk, with the words of their scales and zeros. Those behind the end meet zeros.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn load<W: Size>(
    codes: &Array<Vector<u32, W>>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    loaded: &mut Array<u32>,
    scaled: &mut Array<u32>,
    read: &Array<usize>,
    chunk: usize,
    #[comptime] ahead: usize,
    #[comptime] form: MatrixForm,
) {
    let (rows, words, t) = (comptime!(2 * form.rows), comptime!(form.words()), UNIT_POS_X as usize % ABREAST);
    let piece = min(chunk * ABREAST + t, comptime!(form.pieces() - 1));
    #[unroll]
    for of in 0..rows {
        let from = (read[of] * comptime!(form.words_per_row) + piece * words) / comptime!(form.word_width);
        #[unroll]
        for access in 0..comptime!(words / form.word_width) {
            let vector = codes[from + access];
            #[unroll]
            for i in 0..comptime!(form.word_width) {
                loaded[comptime!((ahead * rows + of) * words + access * form.word_width + i)] = vector[i];
            }
        }
        #[unroll]
        for part in 0..comptime!(form.scales_of_piece()) {
            let group = group_of(read[of], piece, part, form);
            let at = comptime!(2 * ((ahead * rows + of) * form.scales_of_piece() + part));
            scaled[at] = scales[group / comptime!(32 / form.scale.bits() as usize)];
            if comptime!(form.zero.bits() > 0) {
                scaled[comptime!(at + 1)] = zeros[group / comptime!(32 / form.zero.bits() as usize)];
            }
        }
    }
}

/// Sets out to read a part of a unit's share of the input in a stage.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn fetch<X: Size>(
    input: &Array<Vector<u32, X>>,
    coming: &mut Array<Vector<u32, X>>,
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
        // What is behind the end becomes zero when it is put down: a load that is looked at is waited for.
        let last = comptime!(form.cols / ACCESS - 1);
        let access = if comptime!(form.whole()) { access } else { min(access, last) };
        coming[i] = input[row * comptime!(form.cols / ACCESS) + access];
    }
}

/// Puts it where all units of the cube find it, in the order of codes: what units beside each other read at once lies beside
/// each other.
#[cube]
fn put<F: Float, X: Size>(
    coming: &Array<Vector<u32, X>>,
    staged: &mut SharedMemory<Vector<u32, Const<4>>>,
    half: usize,
    chunk: usize,
    #[comptime] part: usize,
    #[comptime] parts: usize,
    #[comptime] form: MatrixForm,
) {
    let unit = UNIT_POS as usize;
    let of_piece = comptime!(form.piece() / ACCESS);
    let accesses = comptime!(form.accesses_of_part(part, parts));
    #[unroll]
    for i in 0..comptime!(accesses.len()) {
        let at = comptime!((accesses.start + i) * form.units()) + unit;
        let (row, access) = (at / comptime!(form.accesses()), at % comptime!(form.accesses()));
        let (piece, own) = (access / of_piece, access % of_piece);
        let place = (piece / ABREAST * of_piece + own) * ABREAST + piece % ABREAST;
        let all = comptime!(INSTRUCTION.1 * form.inputs * form.accesses());
        if comptime!(all.is_multiple_of(form.units())) || at < all {
            let read = coming[i];
            let mut words = Array::<u32>::new(4usize);
            #[unroll]
            for pair in 0..4usize {
                words[pair] = read[pair];
            }
            let mut ordered = Vector::<u32, Const<4>>::empty();
            #[unroll]
            for pair in 0..4usize {
                let word = u32::reinterpret(met_pair::<F>(&words, pair, form));
                let is_behind =
                    chunk * comptime!(ABREAST * form.piece() / ACCESS) + access >= comptime!(form.cols / ACCESS);
                ordered[pair] = if comptime!(form.whole()) { word } else { select(is_behind, 0, word) };
            }
            staged[half + row * comptime!(form.stride()) + place] = ordered;
        }
    }
}
