//! Products with packed weights against 64-bit arithmetic on the same codes, and their times.

use std::sync::Arc;

use calorimeter_kernels::{
    CodeZero, Dtype, Element, InputNumbers, PackedForm, WeightCodes,
    native::{LinearShape, Machine, NativeError, PackedLinear, PackedWeight, ReadyWeight},
};

use super::{assert_close, decode, encode, epsilon, gpu, micros, poisoned, values};

/// A weight on the host: the bytes of its parts, and what those of scales and zeros stand for.
struct Weight {
    form: PackedForm,
    k: usize,
    codes: Vec<u8>,
    scales: (Vec<u8>, Vec<f64>),
    zeros: Option<(Vec<u8>, Vec<f64>)>,
    /// The scale of all, if there is one.
    outer: Option<f32>,
}

/// What the code of an element type stands for, from the definition. e4m3 has no NaN here.
fn number(element: Element, code: u32) -> f64 {
    let float = |mantissa: u32, bits: u32, bias: i32| {
        let (exponent, fraction) = ((code & ((1 << (bits - 1)) - 1)) >> mantissa, code & ((1 << mantissa) - 1));
        let fraction = f64::from(fraction) / f64::from(1 << mantissa);
        let magnitude = match exponent {
            0 => fraction * 2f64.powi(1 - bias),
            exponent => (1.0 + fraction) * 2f64.powi(exponent as i32 - bias),
        };
        if code >> (bits - 1) & 1 == 1 { -magnitude } else { magnitude }
    };
    match element {
        Element::Signed(bits) => f64::from((code << (32 - bits)) as i32 >> (32 - bits)),
        Element::Unsigned(_) => f64::from(code),
        Element::E4m3 => float(3, 8, 7),
        Element::E3m2 => float(2, 6, 3),
        Element::E2m1 => float(1, 4, 1),
        Element::E8m0 => 2f64.powi(code as i32 - 127),
        other => panic!("{other} is no code"),
    }
}

/// The so many bits from one on.
fn field(bytes: &[u8], index: usize, bits: usize) -> u32 {
    (0..bits)
        .map(|bit| index * bits + bit)
        .enumerate()
        .fold(0, |word, (to, from)| word | u32::from(bytes[from / 8] >> (from % 8) & 1) << to)
}

/// Bytes from the generator of [`values`].
fn noise(count: usize, mut seed: u64) -> Vec<u8> {
    let mut next = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((seed >> 32) as u32).to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..count.div_ceil(4)).flat_map(|_| next()).collect();
    bytes.truncate(count);
    bytes
}

/// Scales or zeros of an element type as bytes, and their numbers: around a middle, not far from a hundredth.
fn some_of(element: Element, count: usize, seed: u64, middle: f64) -> (Vec<u8>, Vec<f64>) {
    match element {
        Element::Float(kind) => {
            let some: Vec<f64> = values(count, seed, kind).iter().map(|x| 0.01 * (x + middle)).collect();
            let bytes = encode(&some, kind);
            let numbers = decode(&bytes, kind);
            (bytes, numbers)
        }
        _ => {
            let mut bytes = noise((count * element.bits() as usize).div_ceil(32) * 4, seed);
            for byte in &mut bytes {
                match element {
                    // Powers of two not far from a hundredth.
                    Element::E8m0 => *byte = 117 + *byte % 8,
                    // Scales are normal numbers and positive.
                    Element::E4m3 => *byte = 8 + *byte % 112,
                    _ => {}
                }
            }
            let numbers = (0..count).map(|at| number(element, field(&bytes, at, element.bits() as usize))).collect();
            (bytes, numbers)
        }
    }
}

impl Weight {
    /// Codes from a generator, what fills rows up among them, so that nobody may count on zeros there.
    fn new(form: PackedForm, n: usize, k: usize) -> Self {
        let WeightCodes { number: element, group, scale, zero } = form.codes;
        let bits = element.bits() as usize;
        let (per_row, row) = match group {
            Some(group) => (k.div_ceil(group), k.next_multiple_of(group).next_multiple_of(32)),
            None => (1, k.next_multiple_of(32)),
        };
        let mut codes = noise(n * row * bits / 8, 11);
        if element == Element::E4m3 {
            codes.iter_mut().filter(|code| **code & 0x7f == 0x7f).for_each(|code| *code ^= 1);
        }
        let scales = some_of(scale, n * per_row, 12, 1.5);
        let zeros = match zero {
            CodeZero::Nothing => None,
            // Anywhere among the codes.
            CodeZero::InSteps(Element::Float(kind)) => {
                let middle = f64::from(1u32 << (bits - 1));
                let some: Vec<f64> = values(n * per_row, 13, kind).iter().map(|x| middle * (x + 1.0)).collect();
                let bytes = encode(&some, kind);
                let numbers = decode(&bytes, kind);
                Some((bytes, numbers))
            }
            CodeZero::InSteps(element) | CodeZero::InUnits(element) => Some(some_of(element, n * per_row, 13, 0.0)),
        };
        let outer = (form.input == InputNumbers::Nvfp4).then_some(0.0037f32);
        Self { form, k, codes, scales, zeros, outer }
    }

    /// The numbers of a row.
    fn row(&self, i: usize) -> Vec<f64> {
        let WeightCodes { number: element, group, zero, .. } = self.form.codes;
        let bits = element.bits() as usize;
        let group = group.unwrap_or(self.k);
        let per_row = self.k.div_ceil(group);
        let rows = self.scales.1.len() / per_row;
        let codes = &self.codes[i * (self.codes.len() / rows)..];
        let middle = f64::from(1u32 << (bits - 1));
        let number_at = |l: usize| {
            let of_group = i * per_row + l / group;
            let (code, scale) = (number(element, field(codes, l, bits)), self.scales.1[of_group]);
            let zero_at = || self.zeros.as_ref().map_or(0.0, |(_, zeros)| zeros[of_group]);
            let scaled = match zero {
                CodeZero::Nothing => code * scale,
                CodeZero::InSteps(_) => (code - zero_at()) * scale,
                CodeZero::InUnits(_) => (code - middle) * scale + zero_at(),
            };
            scaled * self.outer.map_or(1.0, f64::from)
        };
        (0..self.k).map(number_at).collect()
    }

    fn upload(&self, machine: &Machine) -> PackedWeight {
        let upload = |bytes: &Vec<u8>| machine.upload(bytes).unwrap();
        PackedWeight {
            codes: upload(&self.codes),
            scales: upload(&self.scales.0),
            zeros: self.zeros.as_ref().map(|(bytes, _)| upload(bytes)),
            outer: self.outer.map(|scale| machine.upload(&scale.to_le_bytes()).unwrap()),
        }
    }
}

/// The nearest number of a small float's type, ties to the even code.
fn nearest(element: Element, x: f64) -> f64 {
    let codes = match element {
        Element::E4m3 => 0..0x7f,
        _ => 0..1 << (element.bits() - 1),
    };
    let distance = |code: &u32| (number(element, *code) - x.abs()).abs();
    let better = |best: u32, code: u32| {
        let (one, other) = (distance(&best), distance(&code));
        if other < one || (other == one && code.is_multiple_of(2)) { code } else { best }
    };
    number(element, codes.reduce(better).unwrap()).copysign(x)
}

/// The numbers that an input is rounded to, row by row.
fn rounded(input: InputNumbers, x: &[f64], k: usize) -> Vec<f64> {
    let largest = |some: &[f64]| some.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    // Nothing over nothing is nothing.
    let over = |x: f32, by: f32| if (x / by).is_nan() { 0.0 } else { x / by };
    match input {
        InputNumbers::Mx(element) => {
            let most = if element == Element::E4m3 { 448.0 } else { 6.0 };
            let of_block = |block: &[f64]| -> Vec<f64> {
                let scale = match largest(block) {
                    0.0 => 2f64.powi(-127),
                    largest => 2f64.powi((f64::from(largest as f32 / most).log2().ceil() as i32).max(-127)),
                };
                // Under the smallest scale numbers are taken as they are.
                let divisor = if scale == 2f64.powi(-127) { 1.0 } else { scale };
                block.iter().map(|x| nearest(element, x / divisor) * scale).collect()
            };
            x.chunks(k).flat_map(|row| row.chunks(32).flat_map(of_block).collect::<Vec<_>>()).collect()
        }
        InputNumbers::Nvfp4 => {
            let of_all = largest(x) as f32 / 2688.0;
            let of_block = |block: &[f64]| -> Vec<f64> {
                let wanted = over(largest(block) as f32 / 6.0, of_all).max(1.0 / 64.0);
                let scale = nearest(Element::E4m3, f64::from(wanted)) as f32;
                let round = |x: &f64| nearest(Element::E2m1, f64::from(over(*x as f32, of_all * scale)));
                block.iter().map(|x| round(x) * f64::from(scale) * f64::from(of_all)).collect()
            };
            x.chunks(k).flat_map(|row| row.chunks(16).flat_map(of_block).collect::<Vec<_>>()).collect()
        }
        _ => x.to_vec(),
    }
}

/// The forms that recipes have had for longest, first of each number: bytes, small floats, halves.
fn forms(kind: Dtype) -> Vec<PackedForm> {
    let int4 = |group| WeightCodes::int4(group, kind);
    let codes = [
        WeightCodes::int8(kind),
        WeightCodes::e4m3(),
        int4(32),
        int4(64),
        int4(128),
        WeightCodes::int4(256, Dtype::Bf16),
    ];
    codes.map(|codes| PackedForm::weight_only(kind, codes)).to_vec()
}

/// Those of few bits, with zeros in steps and in units, and fp6's.
fn forms_of_few_bits(kind: Dtype) -> Vec<PackedForm> {
    let float = Element::Float(kind);
    let group = |number, group, zero| WeightCodes { number, group: Some(group), scale: float, zero };
    let steps = |bits, size| group(Element::Unsigned(bits), size, CodeZero::InSteps(Element::Unsigned(bits)));
    let mut codes: Vec<_> = (1..=8).map(|bits| steps(bits, 64)).collect();
    codes.extend((1..=8).map(|bits| group(Element::Unsigned(bits), 32, CodeZero::InUnits(float))));
    // Groups that end within what a thread takes at once.
    codes.extend([steps(8, 20), steps(8, 4), steps(4, 8), steps(4, 40), steps(6, 16), steps(2, 48), steps(5, 96)]);
    codes.extend([64, 16].map(|size| group(Element::Unsigned(4), size, CodeZero::InSteps(float))));
    codes.push(WeightCodes { number: Element::E3m2, ..WeightCodes::int8(kind) });
    codes.push(group(Element::Signed(4), 128, CodeZero::Nothing));
    codes.into_iter().map(|codes| PackedForm::weight_only(kind, codes)).collect()
}

/// Where the input is rounded to a format as well.
fn microscaling(kind: Dtype) -> Vec<PackedForm> {
    let mx = |number| PackedForm { kind, codes: WeightCodes::mx(number), input: InputNumbers::Mx(number) };
    let nvfp4 = PackedForm { kind, codes: WeightCodes::nvfp4(), input: InputNumbers::Nvfp4 };
    vec![mx(Element::E4m3), mx(Element::E2m1), nvfp4]
}

#[test]
fn products_with_packed_weights_are_right_at_ragged_sizes() {
    let Some((machine, _turn)) = gpu() else { return };
    // One row and few, with k over blocks and without, several tiles of x, unpacked for cuBLASLt, and refused by it.
    let ragged =
        [(1, 4096, 257), (3, 17, 127), (8, 129, 1000), (17, 1000, 129), (64, 127, 3), (127, 129, 17), (1, 1, 1)];
    // Codes in tiles, where there are such: with k over blocks and without, all widths, and parts of tiles.
    let shared = [
        (33, 8192, 48),
        (65, 1000, 17),
        (130, 256, 128),
        (9, 1032, 129),
        (20, 64, 1000),
        (100, 8, 136),
        (300, 1096, 384),
    ];
    for kind in Dtype::ALL {
        for (at, form) in forms(kind).into_iter().enumerate() {
            for (turn, (m, k, n)) in ragged.into_iter().chain(shared).enumerate() {
                // Every size with the usual codes of bf16, a quarter of them with others: each compiles.
                if kind == Dtype::Bf16 && [0, 1, 4].contains(&at) || (at + turn) % 4 == 0 {
                    check(&machine, form, LinearShape { m, k, n }, turn % 2 == 1);
                }
            }
        }
    }
}

#[test]
fn products_with_weights_of_few_bits_are_right_at_ragged_sizes() {
    let Some((machine, _turn)) = gpu() else { return };
    let shapes = [
        (1, 4096, 257),
        (3, 17, 127),
        (8, 129, 1000),
        (17, 1000, 129),
        (64, 127, 3),
        (127, 129, 17),
        (1, 1, 1),
        (2, 3, 17),
        (33, 1096, 48),
        (130, 256, 128),
    ];
    for kind in Dtype::ALL {
        for (at, form) in forms_of_few_bits(kind).into_iter().enumerate() {
            for (turn, (m, k, n)) in shapes.into_iter().enumerate() {
                // Two sizes for each form of bf16, one of the others: each compiles.
                if (at + turn) % if kind == Dtype::Bf16 { 5 } else { 10 } == 0 {
                    check(&machine, form, LinearShape { m, k, n }, turn % 2 == 1);
                }
            }
        }
    }
}

#[test]
fn products_of_microscaling_formats_are_right_at_ragged_sizes() {
    let Some((machine, _turn)) = gpu() else { return };
    let shapes = [
        (1, 4096, 257),
        (3, 17, 127),
        (8, 129, 1000),
        (17, 1000, 129),
        (64, 127, 3),
        (1, 1, 1),
        (33, 1096, 48),
        (130, 256, 128),
        (1030, 64, 72),
    ];
    for kind in Dtype::ALL {
        for form in microscaling(kind) {
            for (turn, (m, k, n)) in shapes.into_iter().enumerate() {
                check(&machine, form, LinearShape { m, k, n }, turn % 2 == 1);
            }
        }
    }
}

/// Weights that come through the memory of blocks, where there is such a kernel: all numbers of its warps, one block at once and
/// two, tiles that do not divide among blocks, one part of a tile and several, and rows of x that are no multiple of anything.
#[test]
fn few_rows_by_many_half_bytes_are_right() {
    let Some((machine, _turn)) = gpu() else { return };
    let shapes = [(1, 512 * 4, 2112), (1, 512 * 5, 4336), (1, 512 * 6, 2128), (1, 512 * 7, 2112), (1, 28672, 2128)];
    for kind in [Dtype::F16, Dtype::Bf16] {
        for form in forms(kind).into_iter().chain(forms_of_few_bits(kind)) {
            if form.codes.group == Some(128) {
                for (turn, (m, k, n)) in shapes.into_iter().enumerate() {
                    check_some(&machine, form, LinearShape { m, k, n }, turn % 2 == 1, 31);
                }
            }
        }
        let form = PackedForm::weight_only(kind, WeightCodes::int4(128, kind));
        check_some(&machine, form, LinearShape { m: 3, k: 8192, n: 8192 }, true, 31);
        check_some(&machine, form, LinearShape { m: 8, k: 4096, n: 16400 }, false, 31);
    }
}

fn check(machine: &Arc<Machine>, form: PackedForm, shape: LinearShape, with_added: bool) {
    check_some(machine, form, shape, with_added, 1);
}

/// Every so manieth row of the weight.
fn check_some(machine: &Arc<Machine>, form: PackedForm, shape: LinearShape, with_added: bool, every: usize) {
    let (LinearShape { m, k, n }, kind) = (shape, form.kind);
    let plan = if with_added { PackedLinear::with_added } else { PackedLinear::new };
    let mut linear = plan(machine, form, shape).unwrap();
    println!("{form:?} {shape}: {}", linear.algorithm());
    // Rows and columns far apart in size, and a row of nothing, so that each block's scale is its own.
    let loud = |at: usize| match (form.input, at / k % 7) {
        (InputNumbers::AsTheyAre, _) => 1.0,
        (_, 6) => 0.0,
        (_, row) => 2f64.powi(row as i32 - at as i32 % k as i32 / 16 % 5),
    };
    let x: Vec<f64> = values(m * k, 1, kind).iter().enumerate().map(|(at, x)| x * loud(at)).collect();
    let weight = Weight::new(form, n, k);
    let bytes = encode(&x, kind);
    let device_x = machine.upload(&bytes).unwrap();
    let x = rounded(form.input, &decode(&bytes, kind), k);
    let device_w = linear.ready(weight.upload(machine)).unwrap();
    let added = values(m * n, 3, kind);
    let device_added = machine.upload(&encode(&added, kind)).unwrap();
    let mut launch = || {
        let mut y = poisoned(machine, linear.y_bytes());
        let added = with_added.then_some(&device_added);
        linear.enqueue(&device_x, &device_w, added, &mut y).unwrap();
        y.download().unwrap()
    };
    let bytes = launch();
    assert!(launch() == bytes, "{form:?} {shape}: sums that blocks share have an order");
    let rows: Vec<Vec<f64>> = (0..n).step_by(every).map(|row| weight.row(row)).collect();
    for (at, found) in decode(&bytes, kind).into_iter().enumerate().filter(|(at, _)| (at % n).is_multiple_of(every)) {
        let (i, j) = (at / n, at % n);
        let terms = x[i * k..][..k].iter().zip(&rows[j / every]).map(|(x, w)| x * w);
        let (exact, squares) = terms.fold((0.0, 0.0), |(sum, squares), term| (sum + term, squares + term * term));
        let exact = if with_added { exact + added[at] } else { exact };
        // Numbers may be rounded to the type of x before they are multiplied; errors of terms add in quadrature.
        let of_terms = 3.0 * epsilon(kind) + 16.0 * f64::from(f32::EPSILON) * (k as f64).sqrt();
        let tolerance = epsilon(kind) * exact.abs() + of_terms * squares.sqrt() + 1e-7;
        assert_close(found, exact, tolerance, || format!("{form:?} {shape} at [{i}, {j}]"));
    }
}

#[test]
fn a_weight_that_was_made_ready_for_another_plan_is_refused() {
    let Some((machine, _turn)) = gpu() else { return };
    let (kind, k, n) = (Dtype::Bf16, 256, 128);
    let form = PackedForm::weight_only(kind, WeightCodes::int8(kind));
    let [one, mut some] = [1, 32].map(|m| PackedLinear::new(&machine, form, LinearShape { m, k, n }).unwrap());
    if one.algorithm().contains("tiled") == some.algorithm().contains("tiled") {
        return;
    }
    let weight = one.ready(Weight::new(form, n, k).upload(&machine)).unwrap();
    let (x, mut y) = (poisoned(&machine, some.x_bytes()), poisoned(&machine, some.y_bytes()));
    assert_eq!(some.enqueue(&x, &weight, None, &mut y), Err(NativeError::OtherPlan));
}

/// Prints what products of one row and few with a large weight reach.
#[test]
fn times_of_products_with_large_packed_weights() {
    let Some((machine, _turn)) = gpu() else { return };
    const SETS: usize = 2;
    let (k, n, kind) = (8192, 28672, Dtype::Bf16);
    for form in [0, 1, 4].map(|at| forms(kind)[at]) {
        let weight = Weight::new(form, n, k);
        for m in [1, 2, 4, 8] {
            let mut linear = PackedLinear::new(&machine, form, LinearShape { m, k, n }).unwrap();
            let weights = [(); SETS].map(|()| linear.ready(weight.upload(&machine)).unwrap());
            let x = machine.upload(&encode(&values(m * k, 1, kind), kind)).unwrap();
            let mut y = poisoned(&machine, linear.y_bytes());
            let micros = micros(&machine, SETS, |set| linear.enqueue(&x, &weights[set], None, &mut y).unwrap());
            let rate = weights[0].bytes() as f64 / micros / 1e3;
            println!("{:?} m={m}: {micros:.2} us, {rate:.0} GB/s: {}", form.codes, linear.algorithm());
        }
    }
}

/// Prints what products reach, for a person to judge, on both sides of where weights are unpacked first.
#[test]
fn times_of_products_with_packed_weights() {
    let Some((machine, _turn)) = gpu() else { return };
    const SETS: usize = 9;
    let (k, n, kind) = (4096, 4096, Dtype::Bf16);
    for form in [0, 1, 4].map(|at| forms(kind)[at]) {
        let weight = Weight::new(form, n, k);
        for m in [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096] {
            let mut linear = PackedLinear::new(&machine, form, LinearShape { m, k, n }).unwrap();
            let weights: Vec<ReadyWeight> = (0..SETS).map(|_| linear.ready(weight.upload(&machine)).unwrap()).collect();
            let x = machine.upload(&encode(&values(m * k, 1, kind), kind)).unwrap();
            let mut y = poisoned(&machine, linear.y_bytes());
            let micros = micros(&machine, SETS, |set| linear.enqueue(&x, &weights[set], None, &mut y).unwrap());
            let rate = weights[0].bytes() as f64 / micros / 1e3;
            println!("{:?} m={m}: {micros:.2} us, {rate:.0} GB/s of codes: {}", form.codes, linear.algorithm());
        }
    }
}

/// Prints the same of the other forms, whether their codes are in tiles, and of three of those above beside them.
#[test]
fn times_of_products_with_few_bits_and_microscaling() {
    let Some((machine, _turn)) = gpu() else { return };
    const SETS: usize = 9;
    let (k, n, kind) = (4096, 4096, Dtype::Bf16);
    let usual = |form: &PackedForm| form.codes.group.is_none_or(|group| group >= 64);
    for form in microscaling(kind)
        .into_iter()
        .chain(forms_of_few_bits(kind).into_iter().filter(usual))
        .chain([0, 1, 4].map(|at| forms(kind)[at]))
    {
        let weight = Weight::new(form, n, k);
        let times: Vec<String> = [1, 16, 32, 64, 128, 512, 1024]
            .into_iter()
            .map(|m| {
                let mut linear = PackedLinear::new(&machine, form, LinearShape { m, k, n }).unwrap();
                let weights: Vec<ReadyWeight> =
                    (0..SETS).map(|_| linear.ready(weight.upload(&machine)).unwrap()).collect();
                let x = machine.upload(&encode(&values(m * k, 1, kind), kind)).unwrap();
                let mut y = poisoned(&machine, linear.y_bytes());
                let micros = micros(&machine, SETS, |set| linear.enqueue(&x, &weights[set], None, &mut y).unwrap());
                let algorithm = linear.algorithm();
                let tiled = if algorithm.contains("tiled") { " (tiled)" } else { "" };
                format!("m={m}: {micros:.2} us{tiled}")
            })
            .collect();
        println!("{:?}: {}", form.codes, times.join(", "));
    }
}
