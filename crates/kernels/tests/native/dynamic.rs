//! Layers of codes by codes against 64-bit arithmetic on the codes that their inputs should have, and their times.

use std::sync::Arc;

use calorimeter_kernels::{
    Activation, Dtype, DynamicCodes, DynamicForm, Float8Sums, Prologue, SharedScale,
    native::{DynamicLinear, LinearShape, Machine, NativeError, PackedWeight, ShortAttention},
    rowwise,
};

use super::{decode, encode, epsilon, gpu, mean_micros, micros, poisoned, round, values};

/// A weight on the host: its codes and scales as they are stored, and the numbers that they stand for.
struct Weight {
    codes: Vec<u8>,
    scales: Vec<u8>,
    numbers: Vec<f64>,
}

impl Weight {
    fn new(form: DynamicForm, n: usize, k: usize) -> Self {
        let stride = DynamicLinear::filled_k(k);
        let mut codes = vec![0; DynamicLinear::filled_n(n) * stride];
        for (at, x) in values(n * k, 11, Dtype::F32).into_iter().enumerate() {
            let code = ((x + 1.0) * 128.0) as u8;
            let nan = form.codes == DynamicCodes::E4m3 && code & 0x7f == 0x7f;
            codes[at / k * stride + at % k] = if nan { code ^ 1 } else { code };
        }
        let kind = if form.codes == DynamicCodes::Int8 { form.kind } else { Dtype::F32 };
        let count = if form.shared == SharedScale::Row { n } else { 1 };
        let scales: Vec<f64> = values(count, 12, kind).iter().map(|x| 0.01 * (x + 1.5)).collect();
        let scales = encode(&scales, kind);
        let of = decode(&scales, kind);
        let number = |at: usize| {
            let code = codes[at / k * stride + at % k];
            let number = match form.codes {
                DynamicCodes::Int8 => f64::from(code as i8),
                _ => f64::from(rowwise::value(code)),
            };
            number * of[if count == 1 { 0 } else { at / k }]
        };
        let numbers = (0..n * k).map(number).collect();
        Self { codes, scales, numbers }
    }

    fn upload(&self, machine: &Machine) -> PackedWeight {
        let upload = |bytes: &Vec<u8>| machine.upload(bytes).unwrap();
        PackedWeight { codes: upload(&self.codes), scales: upload(&self.scales), zeros: None, outer: None }
    }
}

/// The numbers that the codes of an input stand for.
fn quantized(x: &[f64], k: usize, form: DynamicForm) -> Vec<f64> {
    let kind = form.kind;
    let rounded = |x: f32| round(f64::from(x), kind) as f32;
    let largest = |x: &[f64]| x.iter().fold(0.0f32, |most, &x| most.max(x.abs() as f32));
    let of_all = largest(x);
    let row = |row: &[f64]| -> Vec<f64> {
        let top = if form.shared == SharedScale::Row { largest(row) } else { of_all };
        let number = |&x: &f64| {
            let x = x as f32;
            match form.codes {
                DynamicCodes::Int8 => {
                    // f16 keeps the inverse and the product in f32.
                    let step = |x: f32| if kind == Dtype::F16 { x } else { rounded(x) };
                    let scale = rounded(top / 127.0).max(rounded(1e-5));
                    let code = step(x * step(1.0 / scale)).round_ties_even().clamp(-127.0, 127.0);
                    f64::from(code) * f64::from(scale)
                }
                _ => {
                    let scale = rounded(top / 448.0);
                    let quotient = x / scale;
                    let code = if quotient.is_nan() { 0 } else { rowwise::e4m3(quotient) };
                    f64::from(rowwise::value(code)) * f64::from(scale)
                }
            }
        };
        row.iter().map(number).collect()
    };
    x.chunks(k).flat_map(row).collect()
}

/// A row behind a prologue in double precision, rounded as kernels do.
fn prepared(x: &[f64], prologue: Prologue, kind: Dtype) -> Vec<f64> {
    let count = x.len() as f64;
    let around = |mean: f64| {
        let square = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        x.iter().map(|x| round((x - mean) / (square + 1e-5).sqrt(), kind)).collect()
    };
    match prologue {
        Prologue::Nothing => x.to_vec(),
        Prologue::LayerNorm => around(x.iter().sum::<f64>() / count),
        Prologue::RmsNorm => around(0.0),
        Prologue::Activation(function) => x.iter().map(|&x| round(activated(x, Some(function)), kind)).collect(),
        other => panic!("{other:?} is not among those tried here"),
    }
}

fn activated(x: f64, activation: Option<Activation>) -> f64 {
    match activation {
        Some(Activation::Relu) => x.max(0.0),
        Some(Activation::Gelu) => 0.5 * x * (1.0 + libm::erf(x / std::f64::consts::SQRT_2)),
        Some(Activation::Silu) => x / (1.0 + (-x).exp()),
        Some(other) => panic!("{other} is not among those tried here"),
        None => x,
    }
}

const WAYS: [(DynamicCodes, SharedScale); 3] = [
    (DynamicCodes::Int8, SharedScale::Row),
    (DynamicCodes::E4m3, SharedScale::Row),
    (DynamicCodes::E4m3, SharedScale::Tensor),
];

#[test]
fn products_of_codes_found_as_they_come_are_right_at_ragged_sizes() {
    let Some((machine, _turn)) = gpu() else { return };
    let ragged = [(1, 4096, 256), (3, 17, 127), (17, 1000, 129), (127, 129, 17), (129, 127, 1000), (1, 1, 1)];
    let whole = [(64, 512, 128), (1000, 1024, 64), (33, 40000, 32), (129, 1000, 256)];
    let functions = [None, Some(Activation::Relu), Some(Activation::Gelu), Some(Activation::Silu)];
    let before = [Prologue::LayerNorm, Prologue::RmsNorm, Prologue::Activation(Activation::Gelu)];
    for kind in Dtype::ALL {
        for (codes, shared) in WAYS {
            for (at, (m, k, n)) in ragged.into_iter().chain(whole).enumerate() {
                let plain = plain(kind, codes, shared);
                check(&machine, plain, LinearShape { m, k, n });
                // A row of one number is nothing once it is normalized.
                if k > 1 {
                    let prologue = before[at % before.len()];
                    let layer = DynamicForm { prologue, activation: functions[at % functions.len()], ..plain };
                    check(&machine, DynamicForm { added: at % 3 == 0, ..layer }, LinearShape { m, k, n });
                }
                check(&machine, DynamicForm { added: true, ..plain }, LinearShape { m, k, n });
            }
        }
    }
}

#[test]
fn fast_sums_are_those_of_the_same_codes() {
    let Some((machine, _turn)) = gpu() else { return };
    for (kind, shared) in [(Dtype::Bf16, SharedScale::Row), (Dtype::F16, SharedScale::Tensor)] {
        let form = DynamicForm { sums: Float8Sums::Fast, ..plain(kind, DynamicCodes::E4m3, shared) };
        for (m, k, n) in [(64, 512, 128), (129, 1000, 127), (1000, 4096, 64)] {
            check(&machine, form, LinearShape { m, k, n });
            check(&machine, DynamicForm { activation: Some(Activation::Relu), ..form }, LinearShape { m, k, n });
        }
    }
}

/// Several turns of rows in a block, the last of which is not full, and a block that has fewer of them.
#[test]
fn inputs_that_multiprocessors_hold_are_right_in_every_turn() {
    let Some((machine, _turn)) = gpu() else { return };
    let before = [Prologue::Nothing, Prologue::LayerNorm, Prologue::RmsNorm, Prologue::Activation(Activation::Gelu)];
    for kind in Dtype::ALL {
        for prologue in before {
            let form = DynamicForm { prologue, ..plain(kind, DynamicCodes::E4m3, SharedScale::Tensor) };
            for (m, k, n) in [(1061, 4096, 16), (3000, 1000, 16)] {
                check(&machine, form, LinearShape { m, k, n });
            }
        }
    }
}

/// More rows than all blocks take at a time, and some for few of them.
#[test]
fn long_rows_that_are_taken_in_turn_are_right_to_the_last() {
    let Some((machine, _turn)) = gpu() else { return };
    for (kind, (codes, shared)) in [Dtype::Bf16, Dtype::F16, Dtype::Bf16].into_iter().zip(WAYS) {
        let form = DynamicForm { prologue: Prologue::Activation(Activation::Gelu), ..plain(kind, codes, shared) };
        check(&machine, form, LinearShape { m: 3175, k: 8192, n: 16 });
    }
}

/// More pairs of tiles than blocks at a time, in bands, the last of which is narrow; a row beyond a pair, and half a pair.
#[test]
fn products_that_are_finished_at_once_are_right_in_every_wave() {
    let Some((machine, _turn)) = gpu() else { return };
    for (kind, codes, shared) in [
        (Dtype::Bf16, DynamicCodes::Int8, SharedScale::Row),
        (Dtype::F16, DynamicCodes::E4m3, SharedScale::Row),
        (Dtype::Bf16, DynamicCodes::E4m3, SharedScale::Tensor),
    ] {
        let plain = DynamicForm { sums: Float8Sums::Fast, ..plain(kind, codes, shared) };
        for (activation, added) in [(None, false), (Some(Activation::Silu), false), (Some(Activation::Gelu), true)] {
            for (m, k, n) in [(2100, 800, 2312), (257, 1000, 6000), (129, 33, 11272)] {
                check(&machine, DynamicForm { activation, added, ..plain }, LinearShape { m, k, n });
            }
        }
    }
}

/// By one kernel or by two: sequences of zeros and of quiet numbers, heads that no kernel of tensor cores takes, and too many.
#[test]
fn codes_of_attention_are_those_of_what_it_makes() {
    let Some((machine, _turn)) = gpu() else { return };
    let kinds = Dtype::ALL.into_iter().flat_map(|kind| WAYS.map(|way| (kind, way)));
    for (kind, (codes, shared)) in kinds {
        for (sequences, heads, head) in [(1, 8, 512), (300, 8, 128), (3, 2, 32), (5, 3, 17), (70, 16, 64)] {
            let (m, k, n) = (ShortAttention::TOKENS * sequences, heads * head, 32);
            let form = plain(kind, codes, shared);
            let attended = DynamicForm { prologue: Prologue::ShortAttention { heads }, ..form };
            let [mut at_once, mut behind] =
                [attended, form].map(|form| DynamicLinear::new(&machine, form, LinearShape { m, k, n }).unwrap());
            let attention = ShortAttention::new(&machine, kind, sequences, heads, head).unwrap();
            println!("{sequences} {heads} {head} {form:?}: {}", at_once.algorithm());
            let mut x = values(3 * m * k, 1, kind);
            for (sequence, numbers) in x.chunks_mut(3 * ShortAttention::TOKENS * k).enumerate() {
                let gain = [3.0, 0.0, 1e-3][sequence % 3];
                numbers.iter_mut().for_each(|x| *x = round(*x * gain, kind));
            }
            let (x, weight) = (machine.upload(&encode(&x, kind)).unwrap(), Weight::new(form, n, k).upload(&machine));
            assert_eq!(x.len(), at_once.x_bytes());
            let mut mixed = poisoned(&machine, behind.x_bytes());
            let [mut found, mut expected] = [(); 2].map(|()| poisoned(&machine, behind.y_bytes()));
            attention.enqueue(&x, &mut mixed).unwrap();
            behind.enqueue(&mixed, &weight, None, &mut expected).unwrap();
            for _ in 0..2 {
                at_once.enqueue(&x, &weight, None, &mut found).unwrap();
                let right = found.download().unwrap() == expected.download().unwrap();
                assert!(right, "{form:?} {sequences} {heads} {head}");
            }
        }
    }
    let form = plain(Dtype::Bf16, DynamicCodes::E4m3, SharedScale::Row);
    for (m, heads) in [(17, 8), (16, 3), (16, 0)] {
        let form = DynamicForm { prologue: Prologue::ShortAttention { heads }, ..form };
        let error = DynamicLinear::new(&machine, form, LinearShape { m, k: 256, n: 32 }).unwrap_err();
        assert_eq!(error, NativeError::NotInSequences { rows: m, columns: 256, heads });
    }
}

/// Rows whose scale no float is the inverse of, or nearly so, and halves between two codes, which go to the even one.
#[test]
fn codes_under_any_scale_are_those_of_a_division() {
    let Some((machine, _turn)) = gpu() else { return };
    let k = 128;
    for (kind, gains, of_weight) in [
        (Dtype::Bf16, [1e-36, 3e-38, 1e-39], 2f64.powi(100)),
        (Dtype::Bf16, [1e33, 1e35, 3e36], 2f64.powi(-100)),
        (Dtype::Bf16, [1.0, 0.37, 448.0], 1.0),
        (Dtype::F16, [1.0, 1e-4, 448.0], 1.0),
        (Dtype::F16, [1e-6, 1e-7, 0.0], 2f64.powi(10)),
    ] {
        let mut x = values(3 * 64 * k, 5, kind);
        for (row, numbers) in x.chunks_mut(k).enumerate() {
            for (at, x) in numbers.iter_mut().enumerate() {
                // Every half between two codes under the scale that the row's first number gives it.
                let half = 448.0 / 512.0 * f64::from(at as u32) / 128.0;
                *x = round(gains[row % 3] * if row % 2 == 0 { half } else { *x }, kind);
            }
            numbers[0] = round(gains[row % 3] * 448.0 / 512.0, kind);
        }
        check_codes(&machine, kind, &x, of_weight);
    }
}

#[test]
fn the_scale_of_all_behind_gelu_is_right_whatever_is_largest() {
    let Some((machine, _turn)) = gpu() else { return };
    let n = 16;
    for kind in Dtype::ALL {
        // In registers, held and not, and too long for them.
        for (m, k) in [(20_000, 1024), (600, 1024), (3, 70_000)] {
            let prologue = Prologue::Activation(Activation::Gelu);
            let form = DynamicForm { prologue, ..plain(kind, DynamicCodes::E4m3, SharedScale::Tensor) };
            let mut linear = DynamicLinear::new(&machine, form, LinearShape { m, k, n }).unwrap();
            let stride = DynamicLinear::filled_k(k);
            let mut codes = vec![0u8; stride * n];
            (0..n).for_each(|at| codes[at * stride + at] = 0x38);
            let upload = |bytes: &[u8]| machine.upload(bytes).unwrap();
            let scales = upload(&encode(&[1.0], Dtype::F32));
            let w = PackedWeight { codes: upload(&codes), scales, zeros: None, outer: None };
            let (nan, infinity) = (f64::NAN, f64::INFINITY);
            for pair in [
                [-0.75, 0.0],
                [0.2, -0.75],
                [0.3, -0.75],
                [3.0, -2.0],
                [-2.0, 0.005],
                [-infinity, 1.0],
                [1.0, infinity],
                [nan, 1.0],
            ] {
                let pair = pair.map(|x| round(x, kind));
                let places = [(m - 1) * k, m / 2 * k + 1];
                let mut x = vec![0.0; m * k];
                places.iter().zip(pair).for_each(|(&place, number)| x[place] = number);
                let mut y = poisoned(&machine, linear.y_bytes());
                linear.enqueue(&upload(&encode(&x, kind)), &w, None, &mut y).unwrap();
                let y = decode(&y.download().unwrap(), kind);
                let made = pair.map(|x| round(activated(x, Some(Activation::Gelu)), kind));
                for (place, exact) in places.iter().zip(quantized(&made, 2, form)) {
                    let found = y[place / k * n + place % k];
                    let right = if pair.iter().all(|x| x.is_finite()) {
                        (found - exact).abs() <= 0.01 * exact.abs()
                    } else {
                        found.is_nan()
                    };
                    assert!(right, "{}: {found} instead of {exact} of {pair:?}", linear.algorithm());
                }
            }
        }
    }
}

/// Where a product with a scale's inverse will not do is told by the scale's digits.
#[test]
fn halves_between_codes_go_to_the_even_one_under_every_scale() {
    let Some((machine, _turn)) = gpu() else { return };
    for (kind, scales) in [(Dtype::Bf16, 128), (Dtype::F16, 1024)] {
        let row = |row: u32| {
            let top = round(448.0 * (1.0 + f64::from(row) / f64::from(scales)), kind);
            let scale = round(top / 448.0, kind);
            // Half a code is an odd number of halves of the smallest, or has a digit more than codes have.
            let of_smallest = (1..16).step_by(2).map(|half| f64::from(half) * 2f64.powi(-10));
            let others = (17..32).step_by(2).flat_map(|half| (-10..4).map(move |by| f64::from(half) * 2f64.powi(by)));
            let halves = of_smallest.chain(others).map(move |half| round(half * scale, kind));
            let numbers = [top].into_iter().chain(halves).chain([0.0; 7]);
            numbers.enumerate().map(|(at, x)| if at % 3 == 1 { -x } else { x })
        };
        let x: Vec<f64> = (0..scales).flat_map(row).collect();
        check_codes(&machine, kind, &x, 1.0);
    }
}

/// Codes of rows of 128 numbers, by a layer whose weight is 1, or `of_weight`, where an input meets its own output.
fn check_codes(machine: &Arc<Machine>, kind: Dtype, x: &[f64], of_weight: f64) {
    let (k, n) = (128, 128);
    let form = plain(kind, DynamicCodes::E4m3, SharedScale::Row);
    let mut linear = DynamicLinear::new(machine, form, LinearShape { m: x.len() / k, k, n }).unwrap();
    let mut codes = vec![0u8; k * n];
    (0..n).for_each(|at| codes[at * k + at] = 0x38);
    let upload = |bytes: &[u8]| machine.upload(bytes).unwrap();
    let w = PackedWeight {
        codes: upload(&codes),
        scales: upload(&encode(&vec![of_weight; n], Dtype::F32)),
        zeros: None,
        outer: None,
    };
    let mut y = poisoned(machine, linear.y_bytes());
    linear.enqueue(&upload(&encode(x, kind)), &w, None, &mut y).unwrap();
    for (at, (found, exact)) in decode(&y.download().unwrap(), kind).into_iter().zip(quantized(x, k, form)).enumerate()
    {
        let exact = exact * of_weight;
        // A neighboring code is off by 1/16 at least; the smallest numbers of f16 are multiples of 2^-24.
        let tolerance = 0.01 * exact.abs() + if kind == Dtype::F16 { 2f64.powi(-25) } else { 0.0 };
        assert!((found - exact).abs() <= tolerance, "{kind} at {at}: {found:e} instead of {exact:e} of {:e}", x[at]);
    }
}

fn plain(kind: Dtype, codes: DynamicCodes, shared: SharedScale) -> DynamicForm {
    let (sums, prologue) = (Float8Sums::Promoted, Prologue::Nothing);
    DynamicForm { kind, codes, shared, sums, prologue, activation: None, added: false }
}

fn check(machine: &Arc<Machine>, form: DynamicForm, shape: LinearShape) {
    let (LinearShape { m, k, n }, kind) = (shape, form.kind);
    let mut linear = DynamicLinear::new(machine, form, shape).unwrap();
    let place = format!("{form:?} {shape}: {}", linear.algorithm());
    println!("{place}");
    // Rows of zeros, quiet ones and loud ones.
    let mut x = values(m * k, 1, kind);
    for (row, numbers) in x.chunks_mut(k).enumerate() {
        let gain = [1.0, 50.0, 0.0, 0.01][row % 4];
        numbers.iter_mut().for_each(|x| *x = round(*x * gain, kind));
    }
    let weight = Weight::new(form, n, k);
    let (device_x, device_w) = (machine.upload(&encode(&x, kind)).unwrap(), weight.upload(machine));
    let added = values(m * n, 21, kind);
    let device_added = machine.upload(&encode(&added, kind)).unwrap();
    let mut launch = || {
        let mut y = poisoned(machine, linear.y_bytes());
        let added = form.added.then_some(&device_added);
        linear.enqueue(&device_x, &device_w, added, &mut y).unwrap();
        y.download().unwrap()
    };
    let bytes = launch();
    assert!(launch() == bytes, "{place}: nothing is left over from a pass");
    let operand: Vec<f64> = x.chunks(k).flat_map(|row| prepared(row, form.prologue, kind)).collect();
    let operand = quantized(&operand, k, form);
    let (mut worst, mut off, mut all) = (0f64, 0f64, 0f64);
    let step = (m * n / 20_000).max(1) | 1;
    for (at, found) in decode(&bytes, kind).into_iter().enumerate().step_by(step) {
        let (i, j) = (at / n, at % n);
        let terms = operand[i * k..][..k].iter().zip(&weight.numbers[j * k..][..k]).map(|(x, w)| x * w);
        let (sum, squares) = terms.fold((0.0, 0.0), |(sum, squares), term| (sum + term, squares + term * term));
        let exact = activated(sum, form.activation) + if form.added { added[at] } else { 0.0 };
        // Sums of integers are exact. Of e4m3 each step of 32 along k cuts every product off below 13 bits of the largest term
        // or of the sum so far, always toward the same side: by half a unit each, 16 units a step.
        let of_sums = match form.codes {
            DynamicCodes::Int8 => 4.0 * f64::from(f32::EPSILON) * sum.abs(),
            _ => {
                let steps = (k as f64 / 32.0).max(1.0);
                // What is never promoted errs one way at each of them.
                let steps = if form.sums == Float8Sums::Fast { steps } else { steps.sqrt() };
                16.0 * steps * 2f64.powi(-13) * squares.sqrt().max(sum.abs())
            }
        };
        // GELU is off by so much, which an addend can leave alone.
        let of_activation = if form.activation.is_some() { 1e-6 } else { 1e-7 };
        let tolerance = epsilon(kind) * exact.abs() + of_sums + of_activation;
        let error = (found - exact).abs();
        worst = worst.max(error / squares.sqrt().max(1e-30));
        (off, all) = (off + error * error, all + exact * exact);
        // What is prepared in f32 may fall to the other side of a rounding: then it is the error of all that counts.
        assert!(
            form.prologue != Prologue::Nothing || error <= tolerance,
            "{place} at [{i}, {j}]: {found:e} instead of {exact:e}"
        );
        assert!(found.is_finite(), "{place} at [{i}, {j}]: {found}");
    }
    let whole = (off / all.max(1e-30)).sqrt();
    println!("off by {worst:.1e} of the length of the terms at most, by {whole:.1e} on the whole");
    let steps = if form.codes == DynamicCodes::Int8 { 0.03 } else { 0.125 };
    assert!(
        whole <= (epsilon(kind) * steps).sqrt() + 2.0 * epsilon(kind) + steps / (k as f64).sqrt(),
        "{place}: {whole}"
    );
}

#[test]
fn what_is_no_number_stays_in_its_row_and_what_cannot_be_is_refused() {
    let Some((machine, _turn)) = gpu() else { return };
    let (m, k, n) = (5, 64, 32);
    for (codes, shared) in WAYS {
        let form = plain(Dtype::Bf16, codes, shared);
        let mut linear = DynamicLinear::new(&machine, form, LinearShape { m, k, n }).unwrap();
        let mut x = values(m * k, 1, Dtype::Bf16);
        (x[k + 3], x[3 * k]) = (f64::INFINITY, f64::NAN);
        let (x, w) = (machine.upload(&encode(&x, Dtype::Bf16)).unwrap(), Weight::new(form, n, k).upload(&machine));
        let mut y = poisoned(&machine, linear.y_bytes());
        linear.enqueue(&x, &w, None, &mut y).unwrap();
        for (at, found) in decode(&y.download().unwrap(), Dtype::Bf16).into_iter().enumerate() {
            let number = shared == SharedScale::Row && ![1, 3].contains(&(at / n));
            assert_eq!(found.is_finite(), number, "{form:?} in row {}: {found}", at / n);
        }
        let mut short = poisoned(&machine, linear.y_bytes() - 1);
        let error = linear.enqueue(&x, &w, None, &mut short).unwrap_err();
        assert!(matches!(error, NativeError::BufferSize { what: "y", .. }), "{error}");
        let fewer = PackedWeight { codes: machine.allocate(n * k - 1).unwrap(), ..w };
        let error = linear.enqueue(&x, &fewer, None, &mut y).unwrap_err();
        assert_eq!(error, NativeError::BufferSize { what: "w", needed: n * k, found: n * k - 1 });
    }
    let k = DynamicCodes::MOST_INT8 + 1;
    let form = plain(Dtype::Bf16, DynamicCodes::Int8, SharedScale::Row);
    let error = DynamicLinear::new(&machine, form, LinearShape { m: 1, k, n: 1 }).unwrap_err();
    assert!(error.to_string().contains("k of a product of int8"), "{error}");
}

/// Prints what layers reach, for a person to judge: of their parts and of the whole.
#[test]
fn times_of_layers_of_codes() {
    let Some((machine, _turn)) = gpu() else { return };
    let kind = Dtype::Bf16;
    let promoted = WAYS.map(|(codes, shared)| (codes, shared, Float8Sums::Promoted));
    let fast = [SharedScale::Row, SharedScale::Tensor].map(|shared| (DynamicCodes::E4m3, shared, Float8Sums::Fast));
    for (codes, shared, sums) in promoted.into_iter().chain(fast) {
        for (m, size) in [(1, 4096), (32, 4096), (512, 4096), (1024, 4096), (4096, 4096), (8192, 8192)] {
            let norm = Prologue::LayerNorm;
            let normalized =
                [Activation::Gelu, Activation::Relu, Activation::Silu].map(|function| (norm, Some(function)));
            for (prologue, activation) in [(Prologue::Nothing, None)].into_iter().chain(normalized) {
                let form = DynamicForm { prologue, activation, sums, ..plain(kind, codes, shared) };
                let shape = LinearShape { m, k: size, n: size };
                let mut linear = DynamicLinear::new(&machine, form, shape).unwrap();
                let x = machine.upload(&encode(&values(m * size, 1, kind), kind)).unwrap();
                let codes = Weight::codes_alone(&machine, form, size);
                let mut y = poisoned(&machine, linear.y_bytes());
                let mut launches = |many: u32| {
                    1e-3 * mean_micros(&machine, many as usize, |_| linear.enqueue(&x, &codes, None, &mut y).unwrap())
                };
                let least = (0..8).map(|_| launches(20)).fold(f64::INFINITY, f64::min);
                // 0.6 s of its own load, and the mean of as long.
                let many = (600.0 / least) as u32;
                let under_load = if (1024..=4096).contains(&m) {
                    launches(many);
                    format!(", {:.4} under load", launches(many))
                } else {
                    String::new()
                };
                let rate = 2.0 * (m * size * size) as f64 / least / 1e9;
                println!("{form:?} {shape}: {least:.4} ms{under_load}, {rate:.0} TFLOP/s: {}", linear.algorithm());
            }
        }
    }
}

/// Prints what codes of inputs take, alone and behind products, which leave them a lower clock; and what products of 8192 cubed take
/// under their own load, without codes and with them.
#[test]
fn times_of_codes() {
    let Some((machine, _turn)) = gpu() else { return };
    let kind = Dtype::Bf16;
    let filled = |count: usize| {
        let some = encode(&values(1 << 20, 1, kind), kind);
        machine.upload(&some.into_iter().cycle().take(count * kind.width()).collect::<Vec<_>>()).unwrap()
    };
    let [int8, rows, tensor] = WAYS.map(|(codes, shared)| {
        let sums = if codes == DynamicCodes::E4m3 { Float8Sums::Fast } else { Float8Sums::Promoted };
        DynamicForm { sums, ..plain(kind, codes, shared) }
    });
    let side = 8192;
    let (x, mut y) = (filled(side * side), poisoned(&machine, side * side * kind.width()));
    let product = |form| {
        let linear = DynamicLinear::new(&machine, form, LinearShape { m: side, k: side, n: side }).unwrap();
        (linear, Weight::codes_alone(&machine, form, side))
    };
    for form in [int8, rows, tensor] {
        let (mut linear, w) = product(form);
        linear.quantize(&x).unwrap();
        // A second of its own load, and the mean of as long.
        let mut alone = || mean_micros(&machine, 1200, |_| linear.multiply(&w, None, &mut y).unwrap());
        let [_, alone] = [(); 2].map(|()| alone());
        let mut whole = || mean_micros(&machine, 1100, |_| linear.enqueue(&x, &w, None, &mut y).unwrap());
        let [_, whole] = [(); 2].map(|()| whole());
        println!("{form:?} {side}: product {alone:.0} us, with codes {whole:.0}: {}", linear.algorithm());
    }
    let (mut busy, w) = product(rows);
    let (gelu, heads) = (Prologue::Activation(Activation::Gelu), 8);
    for (prologue, m, k) in [
        (Prologue::Nothing, 8192, 8192),
        (Prologue::LayerNorm, 1024, 4096),
        (Prologue::RmsNorm, 16384, 4096),
        (gelu, 16384, 16384),
        (Prologue::ShortAttention { heads }, 16384, 4096),
    ] {
        for form in [int8, rows, tensor] {
            let shape = LinearShape { m, k, n: 16 };
            let mut linear = DynamicLinear::new(&machine, DynamicForm { prologue, ..form }, shape).unwrap();
            // As many inputs as the cache does not hold.
            let count = linear.x_bytes() / kind.width();
            let inputs: Vec<_> = (0..(1 << 27) / count + 1).map(|_| filled(count)).collect();
            let mut quantize = |at: usize| linear.quantize(&inputs[at % inputs.len()]).unwrap();
            let alone = micros(&machine, inputs.len(), &mut quantize);
            let mut behind = || {
                (0..12).for_each(|_| busy.enqueue(&x, &w, None, &mut y).unwrap());
                mean_micros(&machine, 4, &mut quantize)
            };
            for _ in 0..12 {
                behind();
            }
            let behind = (0..25).map(|_| behind()).sum::<f64>() / 25.0;
            println!(
                "{form:?} {prologue:?} {m}x{k}: {alone:.1} us alone, {behind:.1} behind products: {}",
                linear.algorithm()
            );
        }
    }
}

impl Weight {
    /// Any codes of n = k = `size`, without what they stand for, which takes the host long.
    fn codes_alone(machine: &Machine, form: DynamicForm, size: usize) -> PackedWeight {
        let code = |at: usize| (at as u32).wrapping_mul(0x9E37_79B9).to_le_bytes()[3] & 0xbf;
        let codes: Vec<u8> = (0..size * size).map(code).collect();
        let kind = if form.codes == DynamicCodes::Int8 { form.kind } else { Dtype::F32 };
        let scales = encode(&vec![0.01; size], kind);
        PackedWeight {
            codes: machine.upload(&codes).unwrap(),
            scales: machine.upload(&scales).unwrap(),
            zeros: None,
            outer: None,
        }
    }
}
