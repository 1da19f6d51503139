//! int4 weights with int8 inputs against 64-bit arithmetic on the quantized values, and their times.

use std::sync::Arc;

use calorimeter_kernels::{
    Activation, Dtype, DynamicFormat, DynamicLinearSpec, Float8Accumulation, Prologue, ScaleGranularity,
    native::{CudaDevice, DynamicLinearPlan, LinearShape, NativeError, PackedWeight},
};

use super::{decode, encode, epsilon, gpu, micros, poisoned, round, values};

const FORMATS: [DynamicFormat; 2] = [DynamicFormat::Int4, DynamicFormat::Int4Grouped];

fn form(kind: Dtype, codes: DynamicFormat) -> DynamicLinearSpec {
    let (shared, prologue) = (ScaleGranularity::Row, Prologue::None);
    DynamicLinearSpec {
        kind,
        format: codes,
        granularity: shared,
        accumulation: Float8Accumulation::Promoted,
        prologue,
        activation: None,
        has_addend: false,
    }
}

/// Weight on the host: bytes of its parts, and the integers and row scales that it is multiplied as.
struct Weight {
    codes: Vec<u8>,
    group_scales: Option<Vec<u8>>,
    scales: Vec<u8>,
    integers: Vec<f64>,
    row_scales: Vec<f64>,
}

impl Weight {
    fn new(spec: DynamicLinearSpec, n: usize, k: usize) -> Self {
        let grouped = spec.format == DynamicFormat::Int4Grouped;
        let row = k.next_multiple_of(if grouped { DynamicFormat::GROUP_SIZE } else { 32 });
        let per_row = row.div_ceil(DynamicFormat::GROUP_SIZE);
        let mut codes: Vec<u8> =
            values(n * row / 2, 11, Dtype::F32).iter().map(|x| ((x + 1.0) * 128.0) as u8).collect();
        // Some rows are zero, and the padding is zero.
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
        // From 0 to beyond the range of int8: 18.25 times 7 rounds to 128.
        let of_groups: Vec<f64> = values(n * per_row, 13, spec.kind)
            .iter()
            .enumerate()
            .map(|(at, x)| if at % 7 == 2 { 18.25 } else { round(9.0 * (x + 1.0), spec.kind) })
            .collect();
        let row_scales: Vec<f64> =
            values(n, 12, Dtype::F32).iter().map(|x| round(0.01 * (x + 1.5), Dtype::F32)).collect();
        let integer = |at: usize| {
            let (i, l) = (at / k, at % k);
            let code = codes[(i * row + l) / 2] >> (l % 2 * 4) & 15;
            let code = f64::from((code << 4) as i8 >> 4);
            if grouped {
                (code * of_groups[i * per_row + l / DynamicFormat::GROUP_SIZE]).round_ties_even().clamp(-128.0, 127.0)
            } else {
                code
            }
        };
        let integers = (0..n * k).map(integer).collect();
        let group_scales = grouped.then(|| encode(&of_groups, spec.kind));
        Self { codes, group_scales, scales: encode(&row_scales, Dtype::F32), integers, row_scales }
    }

    fn upload(&self, device: &CudaDevice) -> PackedWeight {
        let upload = |bytes: &Vec<u8>| device.upload(bytes).unwrap();
        match &self.group_scales {
            None => PackedWeight {
                codes: upload(&self.codes),
                scales: upload(&self.scales),
                zeros: None,
                tensor_scale: None,
            },
            Some(groups) => PackedWeight {
                codes: upload(&self.codes),
                scales: upload(groups),
                zeros: None,
                tensor_scale: Some(upload(&self.scales)),
            },
        }
    }
}

/// Quantizes a row of an input; returns values and scale.
fn quantized(row: &[f64], spec: DynamicLinearSpec) -> (Vec<f64>, f64) {
    let largest = row.iter().fold(0.0f32, |most, &x| most.max(x.abs() as f32));
    let rounded = |x: f32| round(f64::from(x), spec.kind) as f32;
    let (scale, least) = match spec.format {
        DynamicFormat::Int4 => (rounded(largest / 127.5).max(rounded(f32::EPSILON)), -128.0),
        _ => (rounded(largest / 127.0).max(rounded(1e-5)), -127.0),
    };
    let code = |&x: &f64| f64::from((x as f32 * (1.0 / scale)).round_ties_even().clamp(least, 127.0));
    (row.iter().map(code).collect(), f64::from(scale))
}

#[test]
#[ignore = "needs CUDA"]
fn int4_by_int8_gemm_matches_at_ragged_sizes() {
    let (device, _guard) = gpu();
    // The fused kernel with one row and few, with and without split-K; then the widening kernel with more rows.
    let few = [(1, 4096, 257), (3, 17, 127), (8, 129, 1000), (17, 1000, 129), (64, 127, 3), (1, 1, 1), (33, 8192, 48)];
    let many = [(65, 1000, 17), (127, 129, 1000), (130, 256, 128), (300, 1000, 64)];
    for kind in Dtype::ALL {
        for codes in FORMATS {
            for (turn, (m, k, n)) in few.into_iter().chain(many).enumerate() {
                let plain = form(kind, codes);
                check(&device, plain, LinearShape { m, k, n });
                let activation = [Some(Activation::Relu), None][turn % 2];
                check(
                    &device,
                    DynamicLinearSpec { activation, has_addend: turn % 3 > 0, ..plain },
                    LinearShape { m, k, n },
                );
            }
        }
    }
}

fn check(device: &Arc<CudaDevice>, spec: DynamicLinearSpec, shape: LinearShape) {
    let (LinearShape { m, k, n }, kind) = (shape, spec.kind);
    let mut linear = DynamicLinearPlan::new(device, spec, shape).unwrap();
    let place = format!("{spec:?} {shape}: {}", linear.algorithm());
    // Rows of zeros, of small and of large values.
    let mut x = values(m * k, 1, kind);
    for (row, numbers) in x.chunks_mut(k).enumerate() {
        let gain = [1.0, 50.0, 0.0, 0.01][row % 4];
        numbers.iter_mut().for_each(|x| *x = round(*x * gain, kind));
    }
    let (weight, added) = (Weight::new(spec, n, k), values(m * n, 21, kind));
    let (device_x, device_w) = (device.upload(&encode(&x, kind)).unwrap(), weight.upload(device));
    let device_added = device.upload(&encode(&added, kind)).unwrap();
    let mut launch = || {
        let mut y = poisoned(device, linear.y_bytes());
        linear.enqueue(&device_x, &device_w, spec.has_addend.then_some(&device_added), &mut y).unwrap();
        y.download().unwrap()
    };
    let bytes = launch();
    assert!(launch() == bytes, "{place}: repeated launches are identical");
    let y = decode(&bytes, kind);
    for (i, row) in x.chunks(k).enumerate() {
        let (codes, scale) = quantized(row, spec);
        for j in 0..n {
            let sum: f64 = codes.iter().zip(&weight.integers[j * k..][..k]).map(|(x, w)| x * w).sum();
            let product = sum * scale * weight.row_scales[j];
            let activated = if spec.activation.is_some() { product.max(0.0) } else { product };
            let exact = activated + if spec.has_addend { added[i * n + j] } else { 0.0 };
            let tolerance = epsilon(kind) * exact.abs() + 4.0 * f64::from(f32::EPSILON) * product.abs() + 1e-7;
            let found = y[i * n + j];
            assert!((found - exact).abs() <= tolerance, "{place} at [{i}, {j}]: {found:e} instead of {exact:e}");
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn bad_int4_weight_sizes_are_rejected() {
    let (device, _guard) = gpu();
    for codes in FORMATS {
        for m in [2, 100] {
            let (spec, shape) = (form(Dtype::Bf16, codes), LinearShape { m, k: 256, n: 64 });
            let mut linear = DynamicLinearPlan::new(&device, spec, shape).unwrap();
            let (x, mut y) = (poisoned(&device, linear.x_bytes()), poisoned(&device, linear.y_bytes()));
            let whole = Weight::new(spec, 64, 256).upload(&device);
            let short = PackedWeight { codes: device.allocate(64 * 128 - 1).unwrap(), ..whole };
            let error = linear.enqueue(&x, &short, None, &mut y).unwrap_err();
            assert!(matches!(error, NativeError::BufferSize { what: "quantized values", .. }), "{error}");
        }
        let k = codes.max_exact_k().unwrap() + 1;
        let error =
            DynamicLinearPlan::new(&device, form(Dtype::Bf16, codes), LinearShape { m: 1, k, n: 1 }).unwrap_err();
        assert!(matches!(error, NativeError::InvalidSize { value, .. } if value == k), "{error}");
    }
}

/// Prints layer times, for manual inspection. Rotating weights exceed the L2 cache.
#[test]
#[ignore = "needs CUDA"]
fn times_of_int4_layers() {
    let (device, _guard) = gpu();
    let (kind, size) = (Dtype::Bf16, 4096);
    for codes in FORMATS {
        let spec = form(kind, codes);
        let weight = Weight::new(spec, size, size);
        let sets: Vec<PackedWeight> = (0..16).map(|_| weight.upload(&device)).collect();
        for m in [1, 8, 16, 32, 48, 64, 65, 128, 512, 4096] {
            let shape = LinearShape { m, k: size, n: size };
            let mut linear = DynamicLinearPlan::new(&device, spec, shape).unwrap();
            let x = device.upload(&encode(&values(m * size, 1, kind), kind)).unwrap();
            let mut y = poisoned(&device, linear.y_bytes());
            let time = micros(&device, sets.len(), |set| linear.enqueue(&x, &sets[set], None, &mut y).unwrap());
            println!("{codes:?} {shape}: {time:.1} us: {}", linear.algorithm());
        }
    }
}
