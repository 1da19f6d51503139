//! The product of rows with a stored weight on matrix instructions, whose numbers are made where they are used.
//!
//! Data flow: a plane makes `16 * form.rows` columns of the output for `8 * form.inputs` rows of the input, over every
//! `form.planes`-th chunk of their numbers. In a chunk the unit `4 g + t` reads a piece, 16 or 32 codes beside each other,
//! of the rows g and g + 8 of each sixteen, with `form.flight` chunks on their way at once, and the numbers of the input
//! that meet them, which all cubes but the first find in a cache. Codes become pairs of the input's type in registers, and
//! matrix instructions multiply them: a unit gives the numbers that it has to whatever place of the instruction is its own,
//! since it has the same of the input. Sums of planes that share columns meet in shared memory, those of cubes that do
//! (`form.splits`) in memory, where another kernel adds them up; always in the same order.
//!
//! Traffic: the weight once for each `8 * form.inputs` rows of the input, the input once for each cube. Roofline: the bytes
//! of the weight over the memory's rate for few rows, as long as unpacking keeps up: 2 instructions for each code of 8 bits,
//! 4 to 6 where groups have scales. For many rows the matrix instructions.

use super::kernels::{ZeroKind, decode, unpack};
use super::product_kernel::number;
use crate::{Dtype, Element};
use cubecl::cmma::MmaDefinition;
use cubecl::prelude::*;

/// Units of a plane, and of a matrix instruction.
pub const LANES: usize = 32;

/// Rows of the weight, rows of the input and numbers along them in an instruction.
pub const INSTRUCTION: (usize, usize, usize) = (16, 8, 16);

/// Units that read pieces beside each other.
pub const ABREAST: usize = 4;

/// What is known of a product when its kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixForm {
    /// Numbers in a row of the weight, and of the input.
    pub cols: usize,
    /// Words that the codes of a row take.
    pub words_per_row: usize,
    /// Codes of a row that share a scale.
    pub group: usize,
    pub element: Element,
    /// The type of the input.
    pub dtype: Dtype,
    pub scale: Element,
    pub zero: ZeroKind,
    /// Planes of a cube that share columns.
    pub planes: usize,
    /// Planes of a cube that have rows of the weight of their own.
    pub beside: usize,
    /// Planes of a cube that have rows of the input of their own.
    pub across: usize,
    /// Times 16 rows of the weight in a plane.
    pub rows: usize,
    /// Times 8 rows of the input in a plane.
    pub inputs: usize,
    /// Cubes that share columns.
    pub splits: usize,
    /// Chunks that a unit waits for at once.
    pub flight: usize,
    /// Parts in which units of a cube bring a stage of the input into shared memory, where it goes through that.
    pub parts: usize,
    /// Numbers of the input in an access.
    pub input_width: usize,
    /// Words of the weight in an access.
    pub word_width: usize,
}

impl MatrixForm {
    /// Rows of the weight in a cube.
    pub fn rows_of_cube(&self) -> usize {
        INSTRUCTION.0 * self.rows * self.beside
    }

    /// Rows of the input in a cube.
    pub fn inputs_of_cube(&self) -> usize {
        INSTRUCTION.1 * self.inputs * self.across
    }

    /// Codes that a unit reads beside each other.
    pub fn piece(&self) -> usize {
        if self.element.bits() == 8 { 16 } else { 32 }
    }

    /// Pieces that units beside each other read together.
    pub fn chunks(&self) -> usize {
        self.pieces().div_ceil(ABREAST)
    }

    pub fn pieces(&self) -> usize {
        self.cols.div_ceil(self.piece())
    }

    /// Words of a piece.
    pub fn words(&self) -> usize {
        self.piece() * self.element.bits() as usize / 32
    }

    pub fn pairs(&self) -> usize {
        self.piece() / 2
    }

    pub fn groups(&self) -> usize {
        self.cols.div_ceil(self.group)
    }

    /// Codes of a piece that share a scale.
    pub fn part(&self) -> usize {
        if self.groups() == 1 { self.piece() } else { self.group.min(self.piece()) }
    }

    /// Whether one scale is that of a whole row, and can wait for the end.
    pub fn scale_is_last(&self) -> bool {
        self.groups() == 1 && self.zero == ZeroKind::None
    }

    /// Whether codes are made numbers of the input's type two at a time, all of them exact.
    pub fn in_pairs(&self) -> bool {
        self.scale_is_last() && matches!(self.element, Element::Signed(8) | Element::E4m3)
    }

    /// Whether codes of 4 bits become numbers under a scale and a zero two at a time: all three are numbers of the input's type.
    /// A compiler may round the product before the sum.
    fn in_scaled_pairs(&self) -> bool {
        let own = Element::Float(self.dtype);
        self.apart() == 4 && self.scale == own && self.zero == ZeroKind::InUnits(own) && !self.scale_is_last()
    }

    /// How far the two codes of a pair are apart: those are chosen that are cheapest to bring into both halves of a word.
    fn apart(&self) -> usize {
        match self.element {
            Element::Unsigned(4) => 4,
            _ if self.in_pairs() => 2,
            _ => 1,
        }
    }

    /// The bits of the power of two whose lowest bits codes become. A kernel is told them when it runs: an instruction that
    /// masks and adds bits takes one constant alone.
    pub fn power(&self) -> u32 {
        match (self.in_pairs() || self.in_scaled_pairs(), self.dtype) {
            (true, Dtype::F16) => 0x6400_6400,
            (true, _) => 0x4300_4300,
            (false, _) => 0x4300_0000,
        }
    }

    /// The first code of a pair.
    fn first_of(&self, pair: usize) -> usize {
        let apart = self.apart();
        pair / apart * 2 * apart + pair % apart
    }

    fn turns(&self) -> usize {
        self.chunks().div_ceil(self.planes * self.splits * self.flight)
    }

    /// Whether no unit comes to a number behind the end of a row.
    pub fn whole(&self) -> bool {
        self.cols == self.turns() * self.planes * self.splits * self.flight * ABREAST * self.piece()
    }
}

/// y = x wᵀ, or where cubes share columns their parts of it, by `form.splits`.
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
    let (lane, plane, own) = (UNIT_POS_X as usize, UNIT_POS_Y as usize, UNIT_POS_Z as usize);
    let (g, t) = (lane / ABREAST, lane % ABREAST);
    let split = CUBE_POS_X as usize % comptime!(form.splits);
    let block = CUBE_POS_Y as usize * (CUBE_COUNT_X as usize / comptime!(form.splits))
        + CUBE_POS_X as usize / comptime!(form.splits);
    let first_row =
        block * comptime!(form.rows_of_cube()) + own % comptime!(form.beside) * comptime!(INSTRUCTION.0 * form.rows);
    let first_input = CUBE_POS_Z as usize * comptime!(form.inputs_of_cube())
        + own / comptime!(form.beside) * comptime!(INSTRUCTION.1 * form.inputs);
    let (rows, words, pairs) = comptime!((2 * form.rows, form.words(), form.pairs()));

    let mut sums = Sequence::<Array<Vector<f32, Const<2>>>>::new();
    #[unroll]
    for _ in 0..comptime!(form.rows * form.inputs) {
        let mut of_tile = Array::<Vector<f32, Const<2>>>::new(2usize);
        of_tile[0] = Vector::new(0.0f32);
        of_tile[1] = Vector::new(0.0f32);
        sums.push(of_tile);
    }
    // Where the codes of each row begin, in accesses. Beyond the last row the last one is read again, and what comes of it
    // is not written.
    let mut read = Array::<usize>::new(rows);
    #[unroll]
    for of in 0..rows {
        read[of] = min(first_row + comptime!(8 * of) + g, outputs - 1);
    }

    let first_chunk = split * comptime!(form.planes) + plane;
    for turn in 0..comptime!(form.turns()) {
        // All loads before any use. What is behind the end meets zeros of the input.
        let mut loaded = Array::<u32>::new(comptime!(form.flight * rows * words));
        #[unroll]
        for ahead in 0..comptime!(form.flight) {
            let piece = piece_of(first_chunk, turn, ahead, t, form);
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
            }
        }
        #[unroll]
        for ahead in 0..comptime!(form.flight) {
            let piece = piece_of(first_chunk, turn, ahead, t, form);
            let mut numbers = Array::<Vector<F, Const<2>>>::new(comptime!(rows * pairs));
            #[unroll]
            for of in 0..rows {
                unpack_piece::<F>(&loaded, scales, zeros, &mut numbers, read[of], piece, power, ahead, of, form);
            }
            let behind = sought(first_chunk, turn, ahead, t, form) * comptime!(form.piece());
            #[unroll]
            for tile in 0..comptime!(form.inputs) {
                let row = min(first_input + comptime!(8 * tile) + g, inputs - 1);
                let met = input_words::<F, X>(input, row, behind, form);
                #[unroll]
                for step in 0..comptime!(pairs / 2) {
                    let mut right = Array::<Vector<F, Const<2>>>::new(2usize);
                    right[0] = met_pair::<F>(&met, comptime!(2 * step), form);
                    right[1] = met_pair::<F>(&met, comptime!(2 * step + 1), form);
                    #[unroll]
                    for of in 0..comptime!(form.rows) {
                        let mut left = Array::<Vector<F, Const<2>>>::new(4usize);
                        #[unroll]
                        for i in 0..4usize {
                            left[i] = numbers[comptime!((2 * of + i % 2) * pairs + 2 * step + i / 2)];
                        }
                        let def = MmaDefinition::<F, F, f32>::new(16usize, 8usize, 16usize);
                        let at = comptime!(of * form.inputs + tile);
                        def.execute_inplace(&left, &right, sums.index_mut(at));
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

/// Writes the sums of a plane, under the scales of its columns where they are last.
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
    for of in 0..comptime!(form.rows) {
        #[unroll]
        for half in 0..2usize {
            let row = first_row + comptime!(16 * of + 8 * half) + g;
            if row < outputs {
                let mut scale = 1.0f32.runtime();
                if comptime!(form.scale_is_last() && form.splits == 1) {
                    scale = decode(unpack(scales, 0, row, comptime!(form.scale.bits())), comptime!(form.scale));
                }
                #[unroll]
                for tile in 0..comptime!(form.inputs) {
                    #[unroll]
                    for i in 0..2usize {
                        let of_input = first_input + comptime!(8 * tile + i) + 2 * t;
                        if of_input < inputs {
                            let sum = sums.index(comptime!(of * form.inputs + tile))[half][i];
                            y[(split * inputs + of_input) * outputs + row] = Y::cast_from(sum * scale);
                        }
                    }
                }
            }
        }
    }
}

/// Adds the parts of a product up, under the scales of its columns where they are last.
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

/// The piece that a unit comes to, which may be behind the end of a row.
#[cube]
fn sought(first: usize, turn: usize, #[comptime] ahead: usize, t: usize, #[comptime] form: MatrixForm) -> usize {
    let stride = comptime!(form.planes * form.splits);
    (first + turn * comptime!(stride * form.flight) + comptime!(ahead * stride)) * ABREAST + t
}

/// The piece whose codes a unit reads.
#[cube]
fn piece_of(first: usize, turn: usize, #[comptime] ahead: usize, t: usize, #[comptime] form: MatrixForm) -> usize {
    let piece = sought(first, turn, ahead, t, form);
    if comptime!(form.whole()) { piece } else { min(piece, comptime!(form.pieces() - 1)) }
}

/// The numbers of a row's piece, two by two.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn unpack_piece<F: Float>(
    loaded: &Array<u32>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    numbers: &mut Array<Vector<F, Const<2>>>,
    row: usize,
    piece: usize,
    power: u32,
    #[comptime] ahead: usize,
    #[comptime] of: usize,
    #[comptime] form: MatrixForm,
) {
    let (words, pairs) = comptime!((form.words(), form.pairs()));
    let first_word = comptime!((ahead * 2 * form.rows + of) * words);
    #[unroll]
    for part in 0..comptime!(form.piece() / form.part()) {
        let mut scale = 1.0f32.runtime();
        let mut shift = 0.0f32.runtime();
        if comptime!(!form.scale_is_last()) {
            let group = group_of(row, piece, part, form);
            scale = decode(unpack(scales, 0, group, comptime!(form.scale.bits())), comptime!(form.scale));
            let mut zero = 0u32.runtime();
            if comptime!(form.zero.bits() > 0) {
                zero = unpack(zeros, 0, group, comptime!(form.zero.bits()));
            }
            shift = shift_of(zero, scale, form);
        }
        #[unroll]
        for own in 0..comptime!(form.part() / 2) {
            let pair = comptime!(part * form.part() / 2 + own);
            numbers[comptime!(of * pairs + pair)] =
                number_pair::<F>(loaded, scale, shift, power, first_word, pair, form);
        }
    }
}

/// Which scale is that of a part of a piece. The last piece of a row may be longer than its groups.
#[cube]
pub fn group_of(row: usize, piece: usize, #[comptime] part: usize, #[comptime] form: MatrixForm) -> usize {
    let own = (piece * comptime!(form.piece()) + comptime!(part * form.part())) / comptime!(form.group);
    row * comptime!(form.groups()) + min(own, comptime!(form.groups() - 1))
}

/// What is added to codes under a scale.
#[cube]
pub fn shift_of(zero: u32, scale: f32, #[comptime] form: MatrixForm) -> f32 {
    let mut shift = match comptime!(form.zero) {
        ZeroKind::InSteps(element) => -decode(zero, element) * scale,
        ZeroKind::InUnits(element) => {
            let middle =
                comptime!(if form.in_scaled_pairs() { 0.0 } else { (1u32 << (form.element.bits() - 1)) as f32 });
            decode(zero, element) - middle * scale
        }
        _ => 0.0f32.runtime(),
    };
    if comptime!(form.apart() == 4 && !form.in_scaled_pairs()) {
        shift -= 128.0 * scale;
    }
    shift
}

/// The numbers of a pair of codes.
#[cube]
pub fn number_pair<F: Float>(
    loaded: &Array<u32>,
    scale: f32,
    shift: f32,
    power: u32,
    #[comptime] first_word: usize,
    #[comptime] pair: usize,
    #[comptime] form: MatrixForm,
) -> Vector<F, Const<2>> {
    if comptime!(form.in_pairs()) {
        exact_pair::<F>(loaded[comptime!(first_word + pair / 2)], power, comptime!(pair % 2), form)
    } else if comptime!(form.in_scaled_pairs()) {
        // The lowest bits of a power of two whose steps are 1; less that and the middle of the codes it is exact.
        let both = (loaded[comptime!(first_word + pair / 4)] >> comptime!(4 * (pair % 4) as u32)) & 0x000F_000F;
        let above = comptime!(if form.dtype == Dtype::F16 { 1032.0 } else { 136.0 });
        let code = pair_of::<F>(both | power) - Vector::new(F::new(above));
        code * Vector::new(F::cast_from(scale)) + Vector::new(F::cast_from(shift))
    } else {
        scaled_pair::<F>(loaded, scale, shift, power, first_word, pair, form)
    }
}

/// The numbers of the codes `at` and `at + 2` of a word, without scales. An integer becomes the lowest bits of a power of
/// two whose steps are 1, which is then taken away: 2^7 in bf16, 2^10 in f16.
#[cube]
fn exact_pair<F: Float>(
    word: u32,
    power: u32,
    #[comptime] at: usize,
    #[comptime] form: MatrixForm,
) -> Vector<F, Const<2>> {
    let wide = comptime!(form.dtype == Dtype::Bf16);
    if comptime!(form.element == Element::E4m3) {
        // In the upper bytes; then the exponent's bias is made that of the wider type.
        let upper = if comptime!(at == 0) { word << 8 } else { word };
        let sign = upper & 0x8000_8000u32;
        if comptime!(wide) {
            pair_of::<F>(sign | ((upper >> 4) & 0x07F0_07F0)) * Vector::new(F::new(comptime!(2f32.powi(120))))
        } else {
            pair_of::<F>(sign | ((upper >> 1) & 0x3F80_3F80)) * Vector::new(F::new(256.0))
        }
    } else {
        let lower = if comptime!(at == 0) { word } else { word >> 8 };
        if comptime!(wide) {
            // Only seven bits fit: the sign chooses whether 128 or 256 is taken away.
            pair_of::<F>((lower & 0x007F_007F) | power) - pair_of::<F>((lower & 0x0080_0080) | power)
        } else {
            pair_of::<F>(((lower ^ 0x0080_0080) & 0x00FF_00FF) | power) - Vector::new(F::new(1152.0))
        }
    }
}

/// Two numbers out of their bits.
#[cube]
pub fn pair_of<F: Float>(bits: u32) -> Vector<F, Const<2>> {
    Vector::<F, Const<2>>::reinterpret(bits)
}

/// The numbers of a pair of codes under a scale, rounded once.
#[cube]
fn scaled_pair<F: Float>(
    loaded: &Array<u32>,
    scale: f32,
    shift: f32,
    power: u32,
    #[comptime] first_word: usize,
    #[comptime] pair: usize,
    #[comptime] form: MatrixForm,
) -> Vector<F, Const<2>> {
    let mut both = Vector::<f32, Const<2>>::empty();
    #[unroll]
    for i in 0..2usize {
        let code = comptime!(form.first_of(pair) + i * form.apart());
        let bits = comptime!(form.element.bits());
        let (word, at) = comptime!((first_word + code * bits as usize / 32, (code * bits as usize % 32) as u32));
        let plain = if comptime!(form.apart() == 4) {
            // In the lowest bits of 2^7 as a bf16, so that neither a shift nor a mask is needed for itself.
            let placed = if comptime!(at < 16) {
                loaded[word] << comptime!(16 - at)
            } else {
                loaded[word] >> comptime!(at - 16)
            };
            f32::from_bits((placed & 0x000F_0000) | power)
        } else {
            let mut found = loaded[word] >> at;
            if comptime!(at + bits > 32) {
                found |= loaded[comptime!(word + 1)] << comptime!(32 - at);
            }
            number(found & comptime!(u32::MAX >> (32 - bits)), form.element)
        };
        both[i] = if comptime!(form.scale_is_last()) {
            if comptime!(form.apart() == 4) { plain - 128.0 } else { plain }
        } else {
            fma(plain, scale, shift)
        };
    }
    Vector::cast_from(both)
}

/// The numbers of a row of the input that meet a piece, two in a word; zero behind the end.
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
            let mut read = Vector::<F, X>::new(F::new(0.0));
            if comptime!(form.whole()) {
                read = input[(row * comptime!(form.cols) + col) / 8];
            } else if col < comptime!(form.cols) {
                read = input[(row * comptime!(form.cols) + col) / 8];
            }
            let four = Vector::<u32, Const<4>>::reinterpret(read);
            #[unroll]
            for i in 0..4usize {
                words[comptime!(4 * access + i)] = four[i];
            }
        }
    } else {
        #[unroll]
        for pair in 0..comptime!(form.pairs()) {
            let mut both = Vector::<F, Const<2>>::new(F::new(0.0));
            #[unroll]
            for i in 0..2usize {
                let col = first + comptime!(2 * pair + i);
                if col < comptime!(form.cols) {
                    both[i] = input[row * comptime!(form.cols) + col][0];
                }
            }
            words[pair] = u32::reinterpret(both);
        }
    }
    words
}

/// Two numbers of the input in the order of a pair of codes.
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

/// Adds the sums of `planes` that share columns up, into those of the first: the upper half to the lower, again and again.
/// `teams` of such planes are in a cube.
#[cube]
pub fn add_planes<A: Numeric>(
    sums: &mut Sequence<Array<Vector<A, Const<2>>>>,
    #[comptime] tiles: usize,
    #[comptime] planes: usize,
    #[comptime] teams: usize,
) {
    let (lane, plane, own) = (UNIT_POS_X as usize, UNIT_POS_Y as usize, UNIT_POS_Z as usize);
    let each = comptime!(4 * tiles * LANES);
    let mut shared = SharedMemory::<A>::new(comptime!(planes / 2 * teams * each));
    #[unroll]
    for level in 0..comptime!(planes.ilog2()) {
        let width = comptime!(planes >> (level + 1));
        let slot = ((plane % width) * teams + own) * each + lane;
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
                let of_tile = sums.index_mut(tile);
                #[unroll]
                for half in 0..2usize {
                    let mut other = Vector::<A, Const<2>>::empty();
                    other[0] = shared[slot + comptime!((4 * tile + 2 * half) * LANES)];
                    other[1] = shared[slot + comptime!((4 * tile + 2 * half + 1) * LANES)];
                    of_tile[half] = of_tile[half] + other;
                }
            }
        }
        sync_cube();
    }
}
