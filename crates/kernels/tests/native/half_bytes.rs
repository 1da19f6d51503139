//! Layers of 4-bit weights under 8-bit inputs against 64-bit arithmetic on the same codes, and their times.

use std::sync::Arc;

use calorimeter_kernels::{
    Activation, Dtype, DynamicCodes, DynamicForm, Float8Sums, Prologue, SharedScale,
    native::{DynamicLinear, LinearShape, Machine, NativeError, PackedWeight},
};

use super::{decode, encode, epsilon, gpu, micros, poisoned, round, values};

const BOTH: [DynamicCodes; 2] = [DynamicCodes::Int4, DynamicCodes::Int4InGroups];

fn form(kind: Dtype, codes: DynamicCodes) -> DynamicForm {
    let (shared, prologue) = (SharedScale::Row, Prologue::Nothing);
    DynamicForm { kind, codes, shared, sums: Float8Sums::Promoted, prologue, activation: None, added: false }
}

/// A weight on the host: the bytes of its parts, and the integers and scales that it is multiplied as.
struct Weight {
    codes: Vec<u8>,
    groups: Option<Vec<u8>>,
    scales: Vec<u8>,
    integers: Vec<f64>,
    of_rows: Vec<f64>,
}

impl Weight {
    fn new(form: DynamicForm, n: usize, k: usize) -> Self {
        let grouped = form.codes == DynamicCodes::Int4InGroups;
        let row = k.next_multiple_of(if grouped { DynamicCodes::GROUP } else { 32 });
        let per_row = row.div_ceil(DynamicCodes::GROUP);
        let mut codes: Vec<u8> =
            values(n * row / 2, 11, Dtype::F32).iter().map(|x| ((x + 1.0) * 128.0) as u8).collect();
        // A row of zeros, and nothing where rows are filled up.
        for (i, row_codes) in codes.chunks_mut(row / 2).enumerate() {
            let kept = if i % 5 == 3 { 0 } else { k };
            for (at, byte) in row_codes.iter_mut().enumerate() {
                *byte &= if 2 * at + 1 < kept {
                    0xff
                } else if 2 * at < kept {
                    0x0f
                } else {
                    0
                };
            }
        }
        // From nothing at all to more than a byte holds: 18.25 times 7 is rounded to 128.
        let of_groups: Vec<f64> = values(n * per_row, 13, form.kind)
            .iter()
            .enumerate()
            .map(|(at, x)| if at % 7 == 2 { 18.25 } else { round(9.0 * (x + 1.0), form.kind) })
            .collect();
        let of_rows: Vec<f64> = values(n, 12, Dtype::F32).iter().map(|x| round(0.01 * (x + 1.5), Dtype::F32)).collect();
        let integer = |at: usize| {
            let (i, l) = (at / k, at % k);
            let code = codes[(i * row + l) / 2] >> (l % 2 * 4) & 15;
            let code = f64::from((code << 4) as i8 >> 4);
            if grouped {
                (code * of_groups[i * per_row + l / DynamicCodes::GROUP]).round_ties_even().clamp(-128.0, 127.0)
            } else {
                code
            }
        };
        let integers = (0..n * k).map(integer).collect();
        let groups = grouped.then(|| encode(&of_groups, form.kind));
        Self { codes, groups, scales: encode(&of_rows, Dtype::F32), integers, of_rows }
    }

    fn upload(&self, machine: &Machine) -> PackedWeight {
        let upload = |bytes: &Vec<u8>| machine.upload(bytes).unwrap();
        match &self.groups {
            None => PackedWeight { codes: upload(&self.codes), scales: upload(&self.scales), zeros: None, outer: None },
            Some(groups) => PackedWeight {
                codes: upload(&self.codes),
                scales: upload(groups),
                zeros: None,
                outer: Some(upload(&self.scales)),
            },
        }
    }
}

/// The codes of a row of an input, and its scale.
fn quantized(row: &[f64], form: DynamicForm) -> (Vec<f64>, f64) {
    let largest = row.iter().fold(0.0f32, |most, &x| most.max(x.abs() as f32));
    let rounded = |x: f32| round(f64::from(x), form.kind) as f32;
    let (scale, least) = match form.codes {
        DynamicCodes::Int4 => (rounded(largest / 127.5).max(rounded(f32::EPSILON)), -128.0),
        _ => (rounded(largest / 127.0).max(rounded(1e-5)), -127.0),
    };
    let code = |&x: &f64| f64::from((x as f32 * (1.0 / scale)).round_ties_even().clamp(least, 127.0));
    (row.iter().map(code).collect(), f64::from(scale))
}

#[test]
fn products_of_half_bytes_by_bytes_are_right_at_ragged_sizes() {
    let Some((machine, _turn)) = gpu() else { return };
    // As they are: one row and few, with k over blocks and without. As bytes: more rows.
    let few = [(1, 4096, 257), (3, 17, 127), (8, 129, 1000), (17, 1000, 129), (64, 127, 3), (1, 1, 1), (33, 8192, 48)];
    let many = [(65, 1000, 17), (127, 129, 1000), (130, 256, 128), (300, 1000, 64)];
    for kind in Dtype::ALL {
        for codes in BOTH {
            for (turn, (m, k, n)) in few.into_iter().chain(many).enumerate() {
                let plain = form(kind, codes);
                check(&machine, plain, LinearShape { m, k, n });
                let activation = [Some(Activation::Relu), None][turn % 2];
                check(&machine, DynamicForm { activation, added: turn % 3 > 0, ..plain }, LinearShape { m, k, n });
            }
        }
    }
}

fn check(machine: &Arc<Machine>, form: DynamicForm, shape: LinearShape) {
    let (LinearShape { m, k, n }, kind) = (shape, form.kind);
    let mut linear = DynamicLinear::new(machine, form, shape).unwrap();
    let place = format!("{form:?} {shape}: {}", linear.algorithm());
    // Rows of zeros, quiet ones and loud ones.
    let mut x = values(m * k, 1, kind);
    for (row, numbers) in x.chunks_mut(k).enumerate() {
        let gain = [1.0, 50.0, 0.0, 0.01][row % 4];
        numbers.iter_mut().for_each(|x| *x = round(*x * gain, kind));
    }
    let (weight, added) = (Weight::new(form, n, k), values(m * n, 21, kind));
    let (device_x, device_w) = (machine.upload(&encode(&x, kind)).unwrap(), weight.upload(machine));
    let device_added = machine.upload(&encode(&added, kind)).unwrap();
    let mut launch = || {
        let mut y = poisoned(machine, linear.y_bytes());
        linear.enqueue(&device_x, &device_w, form.added.then_some(&device_added), &mut y).unwrap();
        y.download().unwrap()
    };
    let bytes = launch();
    assert!(launch() == bytes, "{place}: nothing is left over from a pass");
    let y = decode(&bytes, kind);
    for (i, row) in x.chunks(k).enumerate() {
        let (codes, scale) = quantized(row, form);
        for j in 0..n {
            let sum: f64 = codes.iter().zip(&weight.integers[j * k..][..k]).map(|(x, w)| x * w).sum();
            let product = sum * scale * weight.of_rows[j];
            let activated = if form.activation.is_some() { product.max(0.0) } else { product };
            let exact = activated + if form.added { added[i * n + j] } else { 0.0 };
            let tolerance = epsilon(kind) * exact.abs() + 4.0 * f64::from(f32::EPSILON) * product.abs() + 1e-7;
            let found = y[i * n + j];
            assert!((found - exact).abs() <= tolerance, "{place} at [{i}, {j}]: {found:e} instead of {exact:e}");
        }
    }
}

#[test]
fn weights_of_half_bytes_that_are_too_small_or_rows_that_are_too_long_are_refused() {
    let Some((machine, _turn)) = gpu() else { return };
    for codes in BOTH {
        for m in [2, 100] {
            let (form, shape) = (form(Dtype::Bf16, codes), LinearShape { m, k: 256, n: 64 });
            let mut linear = DynamicLinear::new(&machine, form, shape).unwrap();
            let (x, mut y) = (poisoned(&machine, linear.x_bytes()), poisoned(&machine, linear.y_bytes()));
            let whole = Weight::new(form, 64, 256).upload(&machine);
            let short = PackedWeight { codes: machine.allocate(64 * 128 - 1).unwrap(), ..whole };
            let error = linear.enqueue(&x, &short, None, &mut y).unwrap_err();
            assert!(matches!(error, NativeError::BufferSize { what: "codes", .. }), "{error}");
        }
        let k = codes.longest_row().unwrap() + 1;
        let error = DynamicLinear::new(&machine, form(Dtype::Bf16, codes), LinearShape { m: 1, k, n: 1 }).unwrap_err();
        assert!(error.to_string().contains("k of a product of int8"), "{error}");
    }
}

/// Prints what layers reach, for a person to judge. Weights go round through more than the L2 cache holds.
#[test]
fn times_of_layers_of_half_bytes() {
    let Some((machine, _turn)) = gpu() else { return };
    let (kind, size) = (Dtype::Bf16, 4096);
    for codes in BOTH {
        let form = form(kind, codes);
        let weight = Weight::new(form, size, size);
        let sets: Vec<PackedWeight> = (0..16).map(|_| weight.upload(&machine)).collect();
        for m in [1, 8, 16, 32, 48, 64, 65, 128, 512, 4096] {
            let shape = LinearShape { m, k: size, n: size };
            let mut linear = DynamicLinear::new(&machine, form, shape).unwrap();
            let x = machine.upload(&encode(&values(m * size, 1, kind), kind)).unwrap();
            let mut y = poisoned(&machine, linear.y_bytes());
            let time = micros(&machine, sets.len(), |set| linear.enqueue(&x, &sets[set], None, &mut y).unwrap());
            println!("{codes:?} {shape}: {time:.1} us: {}", linear.algorithm());
        }
    }
}
