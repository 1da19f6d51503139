//! Layers with weights of which two of every four numbers are kept, against 64-bit arithmetic on the same numbers, and their times.

use std::sync::Arc;

use calorimeter_kernels::{
    Activation, Dtype, DynamicCodes, KeptCodes, Prologue, SharedScale, SparseForm,
    native::{LinearShape, Machine, NativeError, SparseLinear, SparseWeight},
    rowwise,
};

use super::{decode, encode, epsilon, gpu, micros, poisoned, round, values};

const EVERY: [KeptCodes; 5] = [
    KeptCodes::Numbers,
    KeptCodes::Int4,
    KeptCodes::Dynamic(DynamicCodes::Int8, SharedScale::Row),
    KeptCodes::Dynamic(DynamicCodes::E4m3, SharedScale::Row),
    KeptCodes::Dynamic(DynamicCodes::E4m3, SharedScale::Tensor),
];

fn form(kind: Dtype, codes: KeptCodes) -> SparseForm {
    SparseForm { kind, codes, prologue: Prologue::Nothing, activation: None, added: false }
}

/// A weight on the host: the bytes of its parts, and the numbers that they stand for.
struct Weight {
    codes: Vec<u8>,
    scales: Option<Vec<u8>>,
    places: Vec<u8>,
    numbers: Vec<f64>,
}

/// The pairs of places of four, in ascending order.
const PAIRS: [[usize; 2]; 6] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];

impl Weight {
    fn new(form: SparseForm, n: usize, k: usize) -> Self {
        let (kind, bits) = (form.kind, form.bits());
        let row = if bits == 4 { k.next_multiple_of(128) / 2 } else { (k / 2).next_multiple_of(32) };
        let row_bytes = row * bits / 8;
        let mut codes = match form.codes {
            KeptCodes::Numbers => encode(&values(n * row, 11, kind), kind),
            _ => values(n * row_bytes, 11, Dtype::F32).iter().map(|x| ((x + 1.0) * 128.0) as u8).collect(),
        };
        if matches!(form.codes, KeptCodes::Dynamic(DynamicCodes::E4m3, _)) {
            codes.iter_mut().filter(|code| **code & 0x7f == 0x7f).for_each(|code| *code ^= 1);
        }
        // A row of zeros.
        codes.chunks_mut(row_bytes).skip(3).step_by(5).for_each(|row| row.fill(0));
        let (count, scale) = match form.codes {
            KeptCodes::Numbers => (0, kind),
            KeptCodes::Int4 => (n * k.div_ceil(128), kind),
            KeptCodes::Dynamic(codes, shared) => {
                let scale = if codes == DynamicCodes::Int8 { kind } else { Dtype::F32 };
                (if shared == SharedScale::Row { n } else { 1 }, scale)
            }
        };
        let of_scales: Vec<f64> =
            values(count.max(1), 12, scale).iter().map(|x| round(0.01 * (x + 1.5), scale)).collect();
        let pair = |i: usize, four: usize| PAIRS[(i * 7 + four * 5 + (i * four) % 11) % 6];
        let words = k.div_ceil(32);
        let mut places = vec![0u8; n * words * 4];
        let mut numbers = vec![0.0; n * k];
        let plain = decode(&codes, kind);
        for i in 0..n {
            for four in 0..k / 4 {
                let [first, second] = pair(i, four);
                places[i * words * 4 + four / 2] |= ((first | second << 2) << (4 * (four % 2))) as u8;
                for (at, place) in [first, second].into_iter().enumerate() {
                    let kept = i * row + 2 * four + at;
                    numbers[i * k + 4 * four + place] = match form.codes {
                        KeptCodes::Numbers => plain[kept],
                        KeptCodes::Int4 => {
                            let code = codes[kept / 2] >> (kept % 2 * 4) & 15;
                            let code = f64::from((code << 4) as i8 >> 4);
                            // Rounded to the type of x, as it is multiplied.
                            round(code * of_scales[i * k.div_ceil(128) + four / 32], kind)
                        }
                        KeptCodes::Dynamic(what, shared) => {
                            let number = match what {
                                DynamicCodes::Int8 => f64::from(codes[kept] as i8),
                                _ => f64::from(rowwise::value(codes[kept])),
                            };
                            number * of_scales[if shared == SharedScale::Row { i } else { 0 }]
                        }
                    };
                }
            }
        }
        let scales = (count > 0).then(|| encode(&of_scales, scale));
        Self { codes, scales, places, numbers }
    }

    fn upload(&self, machine: &Machine) -> SparseWeight {
        let upload = |bytes: &Vec<u8>| machine.upload(bytes).unwrap();
        SparseWeight {
            codes: upload(&self.codes),
            scales: self.scales.as_ref().map(upload),
            places: upload(&self.places),
        }
    }
}

/// The numbers that an input is multiplied as.
fn quantized(x: &[f64], k: usize, form: SparseForm) -> Vec<f64> {
    let KeptCodes::Dynamic(codes, shared) = form.codes else { return x.to_vec() };
    let kind = form.kind;
    let rounded = |x: f32| round(f64::from(x), kind) as f32;
    let largest = |x: &[f64]| x.iter().fold(0.0f32, |most, &x| most.max(x.abs() as f32));
    let of_all = largest(x);
    let row = |row: &[f64]| -> Vec<f64> {
        let top = if shared == SharedScale::Row { largest(row) } else { of_all };
        let number = |&x: &f64| {
            let x = x as f32;
            if codes == DynamicCodes::Int8 {
                let step = |x: f32| if kind == Dtype::F16 { x } else { rounded(x) };
                let scale = rounded(top / 127.0).max(rounded(1e-5));
                let code = step(x * step(1.0 / scale)).round_ties_even().clamp(-127.0, 127.0);
                f64::from(code) * f64::from(scale)
            } else {
                let scale = rounded(top / 448.0);
                let quotient = x / scale;
                let code = if quotient.is_nan() { 0 } else { rowwise::e4m3(quotient) };
                f64::from(rowwise::value(code)) * f64::from(scale)
            }
        };
        row.iter().map(number).collect()
    };
    x.chunks(k).flat_map(row).collect()
}

#[test]
fn products_with_two_of_four_are_right_at_ragged_sizes() {
    let Some((machine, _turn)) = gpu() else { return };
    let few = [(1, 4096, 257), (3, 20, 127), (8, 132, 1000), (17, 1000, 129), (64, 128, 3), (1, 4, 1), (33, 8192, 48)];
    let many = [(65, 1000, 17), (127, 132, 1000), (130, 256, 128), (300, 1000, 300)];
    for kind in Dtype::ALL {
        for codes in EVERY {
            for (turn, (m, k, n)) in few.into_iter().chain(many).enumerate() {
                let plain = form(kind, codes);
                let dynamic = plain.dynamic().is_some();
                let activation = Some(Activation::Relu).filter(|_| dynamic && turn % 2 == 0);
                check(&machine, SparseForm { activation, added: turn % 3 > 0, ..plain }, LinearShape { m, k, n });
            }
        }
    }
}

fn check(machine: &Arc<Machine>, form: SparseForm, shape: LinearShape) {
    let (LinearShape { m, k, n }, kind) = (shape, form.kind);
    let mut linear = SparseLinear::new(machine, form, shape).unwrap();
    let place = format!("{form:?} {shape}: {}", linear.algorithm());
    println!("{place}");
    let mut x = values(m * k, 1, kind);
    for (row, numbers) in x.chunks_mut(k).enumerate() {
        let gain = [1.0, 50.0, 0.0, 0.01][row % 4];
        numbers.iter_mut().for_each(|x| *x = round(*x * gain, kind));
    }
    let (weight, added) = (Weight::new(form, n, k), values(m * n, 21, kind));
    let device_x = machine.upload(&encode(&x, kind)).unwrap();
    let device_w = linear.ready(weight.upload(machine)).unwrap();
    let device_added = machine.upload(&encode(&added, kind)).unwrap();
    let mut launch = || {
        let mut y = poisoned(machine, linear.y_bytes());
        linear.enqueue(&device_x, &device_w, form.added.then_some(&device_added), &mut y).unwrap();
        y.download().unwrap()
    };
    let bytes = launch();
    assert!(launch() == bytes, "{place}: nothing is left over from a pass");
    let (y, operand) = (decode(&bytes, kind), quantized(&x, k, form));
    let step = (m * n / 20_000).max(1) | 1;
    for at in (0..m * n).step_by(step) {
        let (i, j) = (at / n, at % n);
        let terms = operand[i * k..][..k].iter().zip(&weight.numbers[j * k..][..k]).map(|(x, w)| x * w);
        let (sum, squares) = terms.fold((0.0, 0.0), |(sum, squares), term| (sum + term, squares + term * term));
        let activated = if form.activation.is_some() { sum.max(0.0) } else { sum };
        let exact = activated + if form.added { added[at] } else { 0.0 };
        let of_sums = match form.codes {
            KeptCodes::Dynamic(DynamicCodes::Int8, _) => 4.0 * f64::from(f32::EPSILON) * sum.abs(),
            KeptCodes::Dynamic(..) => {
                16.0 * (k as f64 / 32.0).max(1.0).sqrt() * 2f64.powi(-13) * squares.sqrt().max(sum.abs())
            }
            // Tensor cores cut partial sums off instead of rounding them.
            _ => 16.0 * f64::from(f32::EPSILON) * (k as f64).sqrt() * squares.sqrt(),
        };
        let tolerance = epsilon(kind) * exact.abs() + of_sums + 1e-7;
        let found = y[at];
        assert!((found - exact).abs() <= tolerance, "{place} at [{i}, {j}]: {found:e} instead of {exact:e}");
    }
}

#[test]
fn rows_that_are_no_fours_and_weights_of_another_plan_are_refused() {
    let Some((machine, _turn)) = gpu() else { return };
    let of = |k, kind| SparseLinear::new(&machine, form(kind, KeptCodes::Numbers), LinearShape { m: 8, k, n: 64 });
    assert_eq!(of(66, Dtype::Bf16).unwrap_err(), NativeError::NotInFours { k: 66 });
    let (mut sparse, dense) = (of(64, Dtype::Bf16).unwrap(), of(64, Dtype::F32).unwrap());
    assert!(sparse.skips_zeros() && !dense.skips_zeros());
    let whole = || Weight::new(form(Dtype::F32, KeptCodes::Numbers), 64, 64).upload(&machine);
    let (x, mut y) = (poisoned(&machine, sparse.x_bytes()), poisoned(&machine, sparse.y_bytes()));
    let other = dense.ready(whole()).unwrap();
    assert_eq!(sparse.enqueue(&x, &other, None, &mut y).unwrap_err(), NativeError::OtherPlan);
    let short = SparseWeight { places: machine.allocate(64 * 2 * 4 - 1).unwrap(), ..whole() };
    let error = sparse.ready(short).unwrap_err();
    assert!(matches!(error, NativeError::BufferSize { what: "places", .. }), "{error}");
}

/// Prints what layers reach, for a person to judge. Weights go round through more than the L2 cache holds.
#[test]
fn times_of_layers_of_two_of_four() {
    let Some((machine, _turn)) = gpu() else { return };
    let (kind, size) = (Dtype::Bf16, 4096);
    for codes in EVERY {
        let form = form(kind, codes);
        let weight = Weight::new(form, size, size);
        for m in [1, 8, 16, 32, 64, 128, 256, 512, 1024, 4096] {
            let mut linear = SparseLinear::new(&machine, form, LinearShape { m, k: size, n: size }).unwrap();
            let sets: Vec<_> = (0..8).map(|_| linear.ready(weight.upload(&machine)).unwrap()).collect();
            let x = machine.upload(&encode(&values(m * size, 1, kind), kind)).unwrap();
            let mut y = poisoned(&machine, linear.y_bytes());
            let time = micros(&machine, sets.len(), |set| linear.enqueue(&x, &sets[set], None, &mut y).unwrap());
            println!("{codes:?} m={m}: {time:.1} us: {}", linear.algorithm());
        }
    }
}
