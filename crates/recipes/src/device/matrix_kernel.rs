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

use super::kernels::{ZeroKind, decode, unpack};
use super::product_kernel::number;
use crate::{Dtype, Element};
use cubecl::cmma::MmaDefinition;
use cubecl::prelude::*;

/// Units of a plane, as matrix instructions require.
pub const LANES: usize = 32;

/// Weight rows, input rows and values along k of a matrix instruction.
pub const INSTRUCTION: (usize, usize, usize) = (16, 8, 16);

/// Units that share a row of a chunk.
pub const ABREAST: usize = 4;

/// Compile-time parameters of the GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixForm {
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
    pub zero: ZeroKind,
    /// Planes of a cube that split k.
    pub planes: usize,
    /// Planes of a cube along n (weight rows).
    pub beside: usize,
    /// Planes of a cube along m (input rows).
    pub across: usize,
    /// Instruction tiles of a plane along n, 16 weight rows each.
    pub rows: usize,
    /// Instruction tiles of a plane along m, 8 input rows each.
    pub inputs: usize,
    /// Cubes that split k.
    pub splits: usize,
    /// Chunks that a unit loads before it computes; in the staged kernel, chunks of a pipeline stage.
    pub flight: usize,
    /// Parts in which the staged kernel loads the next pipeline stage of the input.
    pub parts: usize,
    /// Input values per access.
    pub input_width: usize,
    /// Weight words per access.
    pub word_width: usize,
}

impl MatrixForm {
    /// Weight rows per cube.
    pub fn rows_of_cube(&self) -> usize {
        INSTRUCTION.0 * self.rows * self.beside
    }

    /// Input rows per cube.
    pub fn inputs_of_cube(&self) -> usize {
        INSTRUCTION.1 * self.inputs * self.across
    }

    /// Consecutive values that a unit loads (a piece).
    pub fn piece(&self) -> usize {
        if self.element.bits() == 8 { 16 } else { 32 }
    }

    /// Chunks per row; a chunk is one piece for each of [`ABREAST`] units.
    pub fn chunks(&self) -> usize {
        self.pieces().div_ceil(ABREAST)
    }

    pub fn pieces(&self) -> usize {
        self.cols.div_ceil(self.piece())
    }

    /// Words per piece.
    pub fn words(&self) -> usize {
        self.piece() * self.element.bits() as usize / 32
    }

    pub fn pairs(&self) -> usize {
        self.piece() / 2
    }

    pub fn groups(&self) -> usize {
        self.cols.div_ceil(self.group)
    }

    /// Values of a piece that share a scale.
    pub fn part(&self) -> usize {
        if self.groups() == 1 { self.piece() } else { self.group.min(self.piece()) }
    }

    /// True if each row has a single scale without zero point, which is applied in the epilogue.
    pub fn scale_is_last(&self) -> bool {
        self.groups() == 1 && self.zero == ZeroKind::None
    }

    /// True if values are converted to the input dtype in pairs, exactly.
    pub fn in_pairs(&self) -> bool {
        self.scale_is_last() && matches!(self.element, Element::Signed(8) | Element::E4m3)
    }

    /// True if 4-bit values are dequantized in pairs in the input dtype, with scale and zero point in this dtype. The
    /// compiler may round the product before the addition.
    fn in_scaled_pairs(&self) -> bool {
        let own = Element::Float(self.dtype);
        self.apart() == 4 && self.scale == own && self.zero == ZeroKind::InUnits(own) && !self.scale_is_last()
    }

    /// Distance of the two values of a pair: the one that is cheapest to move into both halves of a word.
    fn apart(&self) -> usize {
        match self.element {
            Element::Unsigned(4) => 4,
            _ if self.in_pairs() => 2,
            _ => 1,
        }
    }

    /// Bit pattern of the power of two into whose low mantissa bits values are inserted. Passed at run time, because an
    /// instruction that masks and ORs accepts a single immediate.
    pub fn power(&self) -> u32 {
        match (self.in_pairs() || self.in_scaled_pairs(), self.dtype) {
            (true, Dtype::F16) => 0x6400_6400,
            (true, _) => 0x4300_4300,
            (false, _) => 0x4300_0000,
        }
    }

    /// Index of the first value of a pair.
    fn first_of(&self, pair: usize) -> usize {
        let apart = self.apart();
        pair / apart * 2 * apart + pair % apart
    }

    fn turns(&self) -> usize {
        self.chunks().div_ceil(self.planes * self.splits * self.flight)
    }

    /// True if no unit reads beyond the end of a row.
    pub fn whole(&self) -> bool {
        self.cols == self.turns() * self.planes * self.splits * self.flight * ABREAST * self.piece()
    }
}

/// Computes y = x wᵀ, or partial sums of it with `form.k_splits`.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn matrix_product<F: Float, Y: Float, X: Size, W: Size>(
    input: &Array<Vector<F, X>>,
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
    let (lane, plane, team) = (UNIT_POS_X as usize, UNIT_POS_Y as usize, UNIT_POS_Z as usize);
    let (g, t) = (lane / ABREAST, lane % ABREAST);
    let split = CUBE_POS_X as usize % comptime!(form.splits);
    let block = CUBE_POS_Y as usize * (CUBE_COUNT_X as usize / comptime!(form.splits))
        + CUBE_POS_X as usize / comptime!(form.splits);
    let first_row =
        block * comptime!(form.rows_of_cube()) + team % comptime!(form.beside) * comptime!(INSTRUCTION.0 * form.rows);
    let first_input = CUBE_POS_Z as usize * comptime!(form.inputs_of_cube())
        + team / comptime!(form.beside) * comptime!(INSTRUCTION.1 * form.inputs);
    let (rows, words, pairs) = comptime!((2 * form.rows, form.words(), form.pairs()));

    let mut sums = Sequence::<Array<Vector<f32, Const<2>>>>::new();
    #[unroll]
    for _ in 0..comptime!(form.rows * form.inputs) {
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

    let first_chunk = split * comptime!(form.planes) + plane;
    for iteration in 0..comptime!(form.turns()) {
        // All loads precede their use. Pieces beyond the end of a row are multiplied by zeros of the input.
        let mut loaded = Array::<u32>::new(comptime!(form.flight * rows * words));
        #[unroll]
        for chunk in 0..comptime!(form.flight) {
            let piece = piece_of(first_chunk, iteration, chunk, t, form);
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
        for chunk in 0..comptime!(form.flight) {
            let piece = piece_of(first_chunk, iteration, chunk, t, form);
            let mut weight_pairs = Array::<Vector<F, Const<2>>>::new(comptime!(rows * pairs));
            #[unroll]
            for row_index in 0..rows {
                unpack_piece::<F>(
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
            let first_col = sought(first_chunk, iteration, chunk, t, form) * comptime!(form.piece());
            #[unroll]
            for tile in 0..comptime!(form.inputs) {
                let row = min(first_input + comptime!(8 * tile) + g, inputs - 1);
                let input_pairs = input_words::<F, X>(input, row, first_col, form);
                #[unroll]
                for step in 0..comptime!(pairs / 2) {
                    let mut b_fragment = Array::<Vector<F, Const<2>>>::new(2usize);
                    b_fragment[0] = met_pair::<F>(&input_pairs, comptime!(2 * step), form);
                    b_fragment[1] = met_pair::<F>(&input_pairs, comptime!(2 * step + 1), form);
                    #[unroll]
                    for row_index in 0..comptime!(form.rows) {
                        let mut a_fragment = Array::<Vector<F, Const<2>>>::new(4usize);
                        #[unroll]
                        for i in 0..4usize {
                            a_fragment[i] = weight_pairs[comptime!((2 * row_index + i % 2) * pairs + 2 * step + i / 2)];
                        }
                        let def = MmaDefinition::<F, F, f32>::new(16usize, 8usize, 16usize);
                        let at = comptime!(row_index * form.inputs + tile);
                        def.execute_inplace(&a_fragment, &b_fragment, sums.index_mut(at));
                    }
                }
            }
        }
    }

    if comptime!(form.planes > 1) {
        add_planes::<f32>(
            &mut sums,
            comptime!(form.rows * form.inputs),
            form.planes,
            comptime!(form.beside * form.across),
        );
    }
    if plane == 0 {
        write_tiles::<Y>(&sums, scales, y, first_row, first_input, split, inputs, outputs, form);
    }
}

/// Stores the accumulators of a plane, with the scales of the epilogue.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn write_tiles<Y: Float>(
    sums: &Sequence<Array<Vector<f32, Const<2>>>>,
    scales: &Array<u32>,
    y: &mut Array<Y>,
    first_row: usize,
    first_input: usize,
    split: usize,
    inputs: usize,
    outputs: usize,
    #[comptime] form: MatrixForm,
) {
    let lane = UNIT_POS_X as usize;
    let (g, t) = (lane / ABREAST, lane % ABREAST);
    #[unroll]
    for row_tile in 0..comptime!(form.rows) {
        #[unroll]
        for half in 0..2usize {
            let row = first_row + comptime!(16 * row_tile + 8 * half) + g;
            if row < outputs {
                let mut scale = 1.0f32.runtime();
                if comptime!(form.scale_is_last() && form.splits == 1) {
                    scale = decode(unpack(scales, 0, row, comptime!(form.scale.bits())), comptime!(form.scale));
                }
                #[unroll]
                for tile in 0..comptime!(form.inputs) {
                    #[unroll]
                    for i in 0..2usize {
                        let input_row = first_input + comptime!(8 * tile + i) + 2 * t;
                        if input_row < inputs {
                            let sum = sums.index(comptime!(row_tile * form.inputs + tile))[half][i];
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
pub fn add_splits<F: Float>(
    parts: &Array<f32>,
    scales: &Array<u32>,
    y: &mut Array<F>,
    count: usize,
    outputs: usize,
    #[comptime] form: MatrixForm,
    #[define(F)] _dtype: StorageType,
) {
    if ABSOLUTE_POS < count {
        let mut sum = 0.0f32.runtime();
        #[unroll]
        for split in 0..comptime!(form.splits) {
            sum += parts[split * count + ABSOLUTE_POS];
        }
        if comptime!(form.scale_is_last()) {
            let row = ABSOLUTE_POS % outputs;
            sum *= decode(unpack(scales, 0, row, comptime!(form.scale.bits())), comptime!(form.scale));
        }
        y[ABSOLUTE_POS] = F::cast_from(sum);
    }
}

/// Index of the piece of a unit; may lie beyond the end of a row.
#[cube]
fn sought(first: usize, iteration: usize, #[comptime] chunk: usize, t: usize, #[comptime] form: MatrixForm) -> usize {
    let stride = comptime!(form.planes * form.splits);
    (first + iteration * comptime!(stride * form.flight) + comptime!(chunk * stride)) * ABREAST + t
}

/// Index of the piece that a unit loads.
#[cube]
fn piece_of(first: usize, iteration: usize, #[comptime] chunk: usize, t: usize, #[comptime] form: MatrixForm) -> usize {
    let piece = sought(first, iteration, chunk, t, form);
    if comptime!(form.whole()) { piece } else { min(piece, comptime!(form.pieces() - 1)) }
}

/// Dequantizes a piece of a row to pairs.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn unpack_piece<F: Float>(
    loaded: &Array<u32>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    weight_pairs: &mut Array<Vector<F, Const<2>>>,
    row: usize,
    piece: usize,
    power: u32,
    #[comptime] chunk: usize,
    #[comptime] row_index: usize,
    #[comptime] form: MatrixForm,
) {
    let (words, pairs) = comptime!((form.words(), form.pairs()));
    let first_word = comptime!((chunk * 2 * form.rows + row_index) * words);
    #[unroll]
    for part in 0..comptime!(form.piece() / form.part()) {
        let mut scale = 1.0f32.runtime();
        let mut offset = 0.0f32.runtime();
        if comptime!(!form.scale_is_last()) {
            let group = group_of(row, piece, part, form);
            scale = decode(unpack(scales, 0, group, comptime!(form.scale.bits())), comptime!(form.scale));
            let mut zero = 0u32.runtime();
            if comptime!(form.zero.bits() > 0) {
                zero = unpack(zeros, 0, group, comptime!(form.zero.bits()));
            }
            offset = shift_of(zero, scale, form);
        }
        #[unroll]
        for local_pair in 0..comptime!(form.part() / 2) {
            let pair = comptime!(part * form.part() / 2 + local_pair);
            weight_pairs[comptime!(row_index * pairs + pair)] =
                number_pair::<F>(loaded, scale, offset, power, first_word, pair, form);
        }
    }
}

/// Index of the scale of a part of a piece. The last piece of a row may extend beyond its groups.
#[cube]
pub fn group_of(row: usize, piece: usize, #[comptime] part: usize, #[comptime] form: MatrixForm) -> usize {
    let group = (piece * comptime!(form.piece()) + comptime!(part * form.part())) / comptime!(form.group);
    row * comptime!(form.groups()) + min(group, comptime!(form.groups() - 1))
}

/// Offset added to scaled values.
#[cube]
pub fn shift_of(zero: u32, scale: f32, #[comptime] form: MatrixForm) -> f32 {
    let mut offset = match comptime!(form.zero) {
        ZeroKind::InSteps(element) => -decode(zero, element) * scale,
        ZeroKind::InUnits(element) => {
            let midpoint =
                comptime!(if form.in_scaled_pairs() { 0.0 } else { (1u32 << (form.element.bits() - 1)) as f32 });
            decode(zero, element) - midpoint * scale
        }
        _ => 0.0f32.runtime(),
    };
    if comptime!(form.apart() == 4 && !form.in_scaled_pairs()) {
        offset -= 128.0 * scale;
    }
    offset
}

/// Dequantizes a pair of values.
#[cube]
pub fn number_pair<F: Float>(
    loaded: &Array<u32>,
    scale: f32,
    offset: f32,
    power: u32,
    #[comptime] first_word: usize,
    #[comptime] pair: usize,
    #[comptime] form: MatrixForm,
) -> Vector<F, Const<2>> {
    if comptime!(form.in_pairs()) {
        exact_pair::<F>(loaded[comptime!(first_word + pair / 2)], power, comptime!(pair % 2), form)
    } else if comptime!(form.in_scaled_pairs()) {
        // Inserted into the low bits of a power of two with spacing 1; subtracting that and the midpoint is exact.
        let inserted = (loaded[comptime!(first_word + pair / 4)] >> comptime!(4 * (pair % 4) as u32)) & 0x000F_000F;
        let bias = comptime!(if form.dtype == Dtype::F16 { 1032.0 } else { 136.0 });
        let code = pair_of::<F>(inserted | power) - Vector::new(F::new(bias));
        code * Vector::new(F::cast_from(scale)) + Vector::new(F::cast_from(offset))
    } else {
        scaled_pair::<F>(loaded, scale, offset, power, first_word, pair, form)
    }
}

/// Converts the values `at` and `at + 2` of a word, without scales. An integer is inserted into the low bits of a power
/// of two with spacing 1, which is then subtracted: 2^7 in bf16, 2^10 in f16.
#[cube]
fn exact_pair<F: Float>(
    word: u32,
    power: u32,
    #[comptime] at: usize,
    #[comptime] form: MatrixForm,
) -> Vector<F, Const<2>> {
    let is_bf16 = comptime!(form.dtype == Dtype::Bf16);
    if comptime!(form.element == Element::E4m3) {
        // Moved to the upper bytes, then multiplied to correct the exponent bias for the wider dtype.
        let upper = if comptime!(at == 0) { word << 8 } else { word };
        let sign = upper & 0x8000_8000u32;
        if comptime!(is_bf16) {
            pair_of::<F>(sign | ((upper >> 4) & 0x07F0_07F0)) * Vector::new(F::new(comptime!(2f32.powi(120))))
        } else {
            pair_of::<F>(sign | ((upper >> 1) & 0x3F80_3F80)) * Vector::new(F::new(256.0))
        }
    } else {
        let lower = if comptime!(at == 0) { word } else { word >> 8 };
        if comptime!(is_bf16) {
            // Only seven bits fit: the sign bit selects whether 128 or 256 is subtracted.
            pair_of::<F>((lower & 0x007F_007F) | power) - pair_of::<F>((lower & 0x0080_0080) | power)
        } else {
            pair_of::<F>(((lower ^ 0x0080_0080) & 0x00FF_00FF) | power) - Vector::new(F::new(1152.0))
        }
    }
}

/// Reinterprets a word as a pair of values.
#[cube]
pub fn pair_of<F: Float>(bits: u32) -> Vector<F, Const<2>> {
    Vector::<F, Const<2>>::reinterpret(bits)
}

/// Dequantizes a pair of values in f32 and rounds once.
#[cube]
fn scaled_pair<F: Float>(
    loaded: &Array<u32>,
    scale: f32,
    offset: f32,
    power: u32,
    #[comptime] first_word: usize,
    #[comptime] pair: usize,
    #[comptime] form: MatrixForm,
) -> Vector<F, Const<2>> {
    let mut values = Vector::<f32, Const<2>>::empty();
    #[unroll]
    for i in 0..2usize {
        let code = comptime!(form.first_of(pair) + i * form.apart());
        let bits = comptime!(form.element.bits());
        let (word, at) = comptime!((first_word + code * bits as usize / 32, (code * bits as usize % 32) as u32));
        let decoded = if comptime!(form.apart() == 4) {
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
            number(extracted & comptime!(u32::MAX >> (32 - bits)), form.element)
        };
        values[i] = if comptime!(form.scale_is_last()) {
            if comptime!(form.apart() == 4) { decoded - 128.0 } else { decoded }
        } else {
            fma(decoded, scale, offset)
        };
    }
    Vector::cast_from(values)
}

/// Loads the input values that are multiplied with a piece, two per word; zero beyond the end of a row.
#[cube]
fn input_words<F: Float, X: Size>(
    input: &Array<Vector<F, X>>,
    row: usize,
    first: usize,
    #[comptime] form: MatrixForm,
) -> Array<u32> {
    let mut words = Array::<u32>::new(comptime!(form.pairs()));
    if comptime!(form.input_width == 8) {
        #[unroll]
        for access in 0..comptime!(form.piece() / 8) {
            let col = first + comptime!(8 * access);
            let mut loaded = Vector::<F, X>::new(F::new(0.0));
            if comptime!(form.whole()) {
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
        for pair in 0..comptime!(form.pairs()) {
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
pub fn met_pair<F: Float>(
    words: &Array<u32>,
    #[comptime] pair: usize,
    #[comptime] form: MatrixForm,
) -> Vector<F, Const<2>> {
    if comptime!(form.apart() == 1) {
        pair_of::<F>(words[pair])
    } else {
        let first = comptime!(form.first_of(pair));
        let (near, far) = (words[comptime!(first / 2)], words[comptime!((first + form.apart()) / 2)]);
        if comptime!(first.is_multiple_of(2)) {
            pair_of::<F>((near & 0xFFFF) | (far << 16))
        } else {
            pair_of::<F>((near >> 16) | (far & 0xFFFF_0000u32))
        }
    }
}

/// Tree reduction of the accumulators of `planes` planes that split k, into those of the first plane; a cube holds
/// `teams` groups of such planes.
#[cube]
pub fn add_planes<A: Numeric>(
    sums: &mut Sequence<Array<Vector<A, Const<2>>>>,
    #[comptime] tiles: usize,
    #[comptime] planes: usize,
    #[comptime] teams: usize,
) {
    let (lane, plane, team) = (UNIT_POS_X as usize, UNIT_POS_Y as usize, UNIT_POS_Z as usize);
    let values_per_plane = comptime!(4 * tiles * LANES);
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
                    shared[slot + comptime!((4 * tile + i) * LANES)] =
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
                    partner[0] = shared[slot + comptime!((4 * tile + 2 * half) * LANES)];
                    partner[1] = shared[slot + comptime!((4 * tile + 2 * half + 1) * LANES)];
                    tile_sums[half] = tile_sums[half] + partner;
                }
            }
        }
        sync_cube();
    }
}
