//! Products with packed weights against 64-bit arithmetic on the same codes, and their times.

use std::sync::Arc;

use calorimeter_kernels::{
    Dtype, PackedForm, WeightCodes,
    native::{LinearShape, Machine, NativeError, PackedLinear, PackedWeight, ReadyWeight},
    rowwise,
};

use super::{assert_close, decode, encode, epsilon, gpu, micros, poisoned, values};

/// A weight on the host: the bytes of its parts, and the numbers that they stand for.
struct Weight {
    codes: Vec<u8>,
    scales: Vec<u8>,
    zeros: Option<Vec<u8>>,
    numbers: Vec<f64>,
}

impl Weight {
    /// Codes from a generator, what fills rows up among them, so that nobody may count on zeros there.
    fn new(form: PackedForm, n: usize, k: usize) -> Self {
        let PackedForm { codes: what, scale, .. } = form;
        let group = match what {
            WeightCodes::Int4 { group } => group,
            _ => k.next_multiple_of(32),
        };
        let (per_row, row) = (k.div_ceil(group), k.next_multiple_of(group));
        let bits = if matches!(what, WeightCodes::Int4 { .. }) { 4 } else { 8 };
        let mut codes: Vec<u8> =
            values(n * row * bits / 8, 11, Dtype::F32).iter().map(|x| ((x + 1.0) * 128.0) as u8).collect();
        if what == WeightCodes::E4m3 {
            codes.iter_mut().filter(|code| **code & 0x7f == 0x7f).for_each(|code| *code ^= 1);
        }
        let some = |seed, middle: f64| -> Vec<u8> {
            let numbers: Vec<f64> = values(n * per_row, seed, scale).iter().map(|x| 0.01 * (x + middle)).collect();
            encode(&numbers, scale)
        };
        let (scales, zeros) = (some(12, 1.5), some(13, 0.0));
        let (of_scales, of_zeros) = (decode(&scales, scale), decode(&zeros, scale));
        let number = |at: usize| {
            let (i, l) = (at / k, at % k);
            let of_group = i * per_row + l / group;
            let byte = codes[(i * row + l) * bits / 8];
            match what {
                WeightCodes::Int8 => f64::from(byte as i8) * of_scales[of_group],
                WeightCodes::E4m3 => f64::from(rowwise::value(byte)) * of_scales[of_group],
                _ => f64::from((byte >> (l % 2 * 4) & 15) as i8 - 8) * of_scales[of_group] + of_zeros[of_group],
            }
        };
        let numbers = (0..n * k).map(number).collect();
        Self { codes, scales, zeros: (bits == 4).then_some(zeros), numbers }
    }

    fn upload(&self, machine: &Machine) -> PackedWeight {
        let upload = |bytes: &Vec<u8>| machine.upload(bytes).unwrap();
        PackedWeight {
            codes: upload(&self.codes),
            scales: upload(&self.scales),
            zeros: self.zeros.as_ref().map(upload),
            outer: None,
        }
    }
}

fn forms(kind: Dtype) -> [PackedForm; 6] {
    let form = |codes, scale| PackedForm { kind, codes, scale };
    let int4 = |group| WeightCodes::Int4 { group };
    [
        form(WeightCodes::Int8, kind),
        form(WeightCodes::E4m3, Dtype::F32),
        form(int4(32), kind),
        form(int4(64), kind),
        form(int4(128), kind),
        form(int4(256), Dtype::Bf16),
    ]
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

fn check(machine: &Arc<Machine>, form: PackedForm, shape: LinearShape, with_added: bool) {
    let (LinearShape { m, k, n }, kind) = (shape, form.kind);
    let plan = if with_added { PackedLinear::with_added } else { PackedLinear::new };
    let mut linear = plan(machine, form, shape).unwrap();
    println!("{form:?} {shape}: {}", linear.algorithm());
    let (x, weight) = (values(m * k, 1, kind), Weight::new(form, n, k));
    let device_x = machine.upload(&encode(&x, kind)).unwrap();
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
    for (at, found) in decode(&bytes, kind).into_iter().enumerate() {
        let (i, j) = (at / n, at % n);
        let terms = x[i * k..][..k].iter().zip(&weight.numbers[j * k..][..k]).map(|(x, w)| x * w);
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
    let form = PackedForm { kind, codes: WeightCodes::Int8, scale: kind };
    let [one, mut some] = [1, 32].map(|m| PackedLinear::new(&machine, form, LinearShape { m, k, n }).unwrap());
    if one.algorithm().contains("tiled") == some.algorithm().contains("tiled") {
        return;
    }
    let weight = one.ready(Weight::new(form, n, k).upload(&machine)).unwrap();
    let (x, mut y) = (poisoned(&machine, some.x_bytes()), poisoned(&machine, some.y_bytes()));
    assert_eq!(some.enqueue(&x, &weight, None, &mut y), Err(NativeError::OtherPlan));
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
