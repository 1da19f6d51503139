//! The product of a few rows with a stored weight, whose numbers are made where they are used.
//!
//! Data flow: a cube makes a few columns of the output, one for each of `form.rows` rows of the weight, and for up to
//! `form.inputs` rows of the input. Its units go along the rows, a block of 32 codes each: they load the block's words and
//! the numbers of the input that meet them, turn codes into numbers in registers, add up, and apply the scale and the zero
//! of the block's group to the sum. Parts of units are added up by planes where the device has them, and in shared memory.
//!
//! Traffic: the weight once for each `form.inputs` rows of the input, which comes from a cache for all cubes but the first.
//! Roofline: the bytes of the weight over the memory's rate, as long as some four instructions for each code keep up.

use super::kernels::{ZeroKind, decode, unpack};
use crate::Element;
use crate::packing::BLOCK;
use cubecl::prelude::*;

/// Units of a cube.
pub const UNITS: usize = 128;

/// What is known of a product when its kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProductForm {
    /// Numbers in a row of the weight, and of the input.
    pub cols: usize,
    /// Words that the codes of a row take.
    pub words_per_row: usize,
    /// Codes of a row that share a scale.
    pub group: usize,
    pub element: Element,
    pub scale: Element,
    pub zero: ZeroKind,
    /// Rows of the weight in a cube.
    pub rows: usize,
    /// Rows of the input in a cube.
    pub inputs: usize,
    /// Units that add up without shared memory; 1 where they cannot.
    pub plane: usize,
    /// Numbers of the input in an access.
    pub input_width: usize,
    /// Words of the weight in an access.
    pub word_width: usize,
}

impl ProductForm {
    fn groups(&self) -> usize {
        self.cols.div_ceil(self.group)
    }

    /// Codes of a block that share a scale.
    fn part(&self) -> usize {
        if self.groups() == 1 { BLOCK } else { self.group.min(BLOCK) }
    }

    fn blocks(&self) -> usize {
        self.cols.div_ceil(BLOCK)
    }

    /// Whether one scale is that of a whole row, and can wait for the end.
    fn scale_is_last(&self) -> bool {
        self.groups() == 1 && self.zero == ZeroKind::None
    }

    /// Parts of a sum that meet in shared memory.
    fn shares(&self) -> usize {
        UNITS / self.plane
    }
}

/// What an integer code of at most 8 bits stands for: it becomes the lowest bits of 2^23, which is then taken away, since
/// conversions run at a fraction of the rate of additions.
#[cube]
pub fn number(code: u32, #[comptime] element: Element) -> f32 {
    match comptime!(element) {
        Element::Signed(bits) => {
            let sign = comptime!(1u32 << (u32::from(bits) - 1));
            f32::from_bits((code ^ sign) | 0x4B00_0000) - comptime!((0x0080_0000 + sign) as f32)
        }
        Element::Unsigned(_) => f32::from_bits(code | 0x4B00_0000) - 8_388_608.0,
        _ => decode(code, element),
    }
}

/// y = x wᵀ.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn product<F: Float, X: Size, W: Size>(
    input: &Array<Vector<F, X>>,
    codes: &Array<Vector<u32, W>>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    y: &mut Array<F>,
    inputs: usize,
    outputs: usize,
    #[comptime] form: ProductForm,
    #[define(F)] _dtype: StorageType,
) {
    let unit = UNIT_POS_X as usize;
    let first_row = (CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize * comptime!(form.rows);
    let first_input = CUBE_POS_Z as usize * comptime!(form.inputs);
    let mut sums = Array::<f32>::new(comptime!(form.rows * form.inputs));
    #[unroll]
    for at in 0..comptime!(form.rows * form.inputs) {
        sums[at] = 0.0f32.runtime();
    }
    for turn in 0..comptime!(form.blocks().div_ceil(UNITS)) {
        let block = turn * UNITS + unit;
        if block < comptime!(form.blocks()) {
            add_block::<F, X, W>(
                input,
                codes,
                scales,
                zeros,
                &mut sums,
                block,
                first_row,
                first_input,
                inputs,
                outputs,
                form,
            );
        }
    }
    let mut shared = SharedMemory::<f32>::new(comptime!(form.rows * form.inputs * form.shares()));
    #[unroll]
    for at in 0..comptime!(form.rows * form.inputs) {
        let own = if comptime!(form.plane > 1) { plane_sum(sums[at]) } else { sums[at] };
        if unit.is_multiple_of(comptime!(form.plane)) {
            shared[at * comptime!(form.shares()) + unit / comptime!(form.plane)] = own;
        }
    }
    sync_cube();
    if unit < comptime!(form.rows * form.inputs) {
        let (row, of) = (first_row + unit / comptime!(form.inputs), first_input + unit % comptime!(form.inputs));
        if row < outputs && of < inputs {
            let mut sum = 0.0f32.runtime();
            for share in 0..comptime!(form.shares()) {
                sum += shared[unit * comptime!(form.shares()) + share];
            }
            if comptime!(form.scale_is_last()) {
                sum *= decode(unpack(scales, 0, row, comptime!(form.scale.bits())), comptime!(form.scale));
            }
            y[of * outputs + row] = F::cast_from(sum);
        }
    }
}

/// Adds what a block of codes of each row of the weight gives with the same numbers of each row of the input. Beyond the
/// last row the last one is read again, and what comes of it is not written.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn add_block<F: Float, X: Size, W: Size>(
    input: &Array<Vector<F, X>>,
    codes: &Array<Vector<u32, W>>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    sums: &mut Array<f32>,
    block: usize,
    first_row: usize,
    first_input: usize,
    inputs: usize,
    outputs: usize,
    #[comptime] form: ProductForm,
) {
    let bits = comptime!(form.element.bits() as usize);
    let (rows, own_inputs, width) = comptime!((form.rows, form.inputs, form.input_width));
    let mut words = Array::<u32>::new(comptime!(rows * bits));
    #[unroll]
    for of in 0..rows {
        let row = min(first_row + of, outputs - 1);
        #[unroll]
        for access in 0..comptime!(bits / form.word_width) {
            let at = row * comptime!(form.words_per_row) + block * bits + comptime!(access * form.word_width);
            let read = codes[at / comptime!(form.word_width)];
            #[unroll]
            for i in 0..comptime!(form.word_width) {
                words[comptime!(of * bits + access * form.word_width + i)] = read[i];
            }
        }
    }
    #[unroll]
    for part in 0..comptime!(BLOCK / form.part()) {
        let mut partial = Array::<f32>::new(comptime!(rows * own_inputs));
        #[unroll]
        for at in 0..comptime!(rows * own_inputs) {
            partial[at] = 0.0f32.runtime();
        }
        // What a zero is multiplied with.
        let mut totals = Array::<f32>::new(own_inputs);
        #[unroll]
        for own in 0..own_inputs {
            totals[own] = 0.0f32.runtime();
        }
        #[unroll]
        for access in 0..comptime!(form.part() / width) {
            let first = comptime!(part * form.part() + access * width);
            let col = block * BLOCK + first;
            let mut numbers = Array::<f32>::new(comptime!(own_inputs * width));
            #[unroll]
            for own in 0..own_inputs {
                let at = (min(first_input + own, inputs - 1) * comptime!(form.cols) + col) / width;
                let mut read = Vector::<f32, X>::new(0.0);
                if comptime!(form.cols.is_multiple_of(BLOCK)) {
                    read = Vector::cast_from(input[at]);
                } else if col < comptime!(form.cols) {
                    read = Vector::cast_from(input[at]);
                }
                #[unroll]
                for i in 0..width {
                    numbers[comptime!(own * width + i)] = read[i];
                    if comptime!(form.zero != ZeroKind::None) {
                        totals[own] += read[i];
                    }
                }
            }
            #[unroll]
            for of in 0..rows {
                #[unroll]
                for i in 0..width {
                    let at = comptime!((first + i) * bits);
                    let (word, shift) = comptime!((of * bits + at / 32, (at % 32) as u32));
                    let mut code = words[word] >> shift;
                    if comptime!(shift + bits as u32 > 32) {
                        code |= words[comptime!(word + 1)] << comptime!(32 - shift);
                    }
                    let number = number(code & comptime!(u32::MAX >> (32 - bits as u32)), form.element);
                    #[unroll]
                    for own in 0..own_inputs {
                        let sum = comptime!(of * own_inputs + own);
                        partial[sum] = fma(number, numbers[comptime!(own * width + i)], partial[sum]);
                    }
                }
            }
        }
        #[unroll]
        for of in 0..rows {
            let row = min(first_row + of, outputs - 1);
            // The last block of a row may be longer than its groups.
            let own_group = (block * BLOCK + comptime!(part * form.part())) / comptime!(form.group);
            let group = row * comptime!(form.groups()) + min(own_group, comptime!(form.groups() - 1));
            let mut scale = 1.0f32.runtime();
            if comptime!(!form.scale_is_last()) {
                scale = decode(unpack(scales, 0, group, comptime!(form.scale.bits())), comptime!(form.scale));
            }
            #[unroll]
            for own in 0..own_inputs {
                let sum = comptime!(of * own_inputs + own);
                let scaled = match comptime!(form.zero) {
                    ZeroKind::InSteps(element) => {
                        let zero = decode(unpack(zeros, 0, group, comptime!(element.bits())), element);
                        (partial[sum] - zero * totals[own]) * scale
                    }
                    ZeroKind::InUnits(element) => {
                        let zero = decode(unpack(zeros, 0, group, comptime!(element.bits())), element);
                        let middle = comptime!((1u32 << (bits - 1)) as f32);
                        (partial[sum] - middle * totals[own]) * scale + zero * totals[own]
                    }
                    _ => partial[sum] * scale,
                };
                sums[sum] += scaled;
            }
        }
    }
}
