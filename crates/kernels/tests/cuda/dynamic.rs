//! Dynamically quantized layers against 64-bit arithmetic on the expected quantized inputs, and their times.

use std::sync::Arc;

use calorimeter_kernels::{
    Activation, Dtype, DynamicFormat, DynamicLinearSpec, Float8Accumulation, Prologue, ScaleGranularity,
    native::{
        CudaDevice, CudaKernel, DynamicLinearPlan, LinearShape, NativeError, PackedWeight, SHORT_ATTENTION_TOKENS,
    },
    rowwise,
};

use super::{decode, encode, epsilon, gpu, mean_micros, micros, poisoned, round, values};

/// Weight on the host: quantized values and scales as stored, and dequantized values.
struct Weight {
    codes: Vec<u8>,
    scales: Vec<u8>,
    numbers: Vec<f64>,
}

impl Weight {
    fn new(spec: DynamicLinearSpec, n: usize, k: usize) -> Self {
        let stride = DynamicLinearPlan::padded_k(k);
        let mut codes = vec![0; DynamicLinearPlan::padded_n(n) * stride];
        for (at, x) in values(n * k, 11, Dtype::F32).into_iter().enumerate() {
            let code = ((x + 1.0) * 128.0) as u8;
            let nan = spec.format == DynamicFormat::E4m3 && code & 0x7f == 0x7f;
            codes[at / k * stride + at % k] = if nan { code ^ 1 } else { code };
        }
        let kind = if spec.format == DynamicFormat::Int8 { spec.kind } else { Dtype::F32 };
        let count = if spec.granularity == ScaleGranularity::Row { n } else { 1 };
        let scales: Vec<f64> = values(count, 12, kind).iter().map(|x| 0.01 * (x + 1.5)).collect();
        let scales = encode(&scales, kind);
        let of = decode(&scales, kind);
        let number = |at: usize| {
            let code = codes[at / k * stride + at % k];
            let number = match spec.format {
                DynamicFormat::Int8 => f64::from(code as i8),
                _ => f64::from(rowwise::e4m3_to_f32(code)),
            };
            number * of[if count == 1 { 0 } else { at / k }]
        };
        let numbers = (0..n * k).map(number).collect();
        Self { codes, scales, numbers }
    }

    fn upload(&self, device: &CudaDevice) -> PackedWeight {
        let upload = |bytes: &Vec<u8>| device.upload(bytes).unwrap();
        PackedWeight { codes: upload(&self.codes), scales: upload(&self.scales), zeros: None, tensor_scale: None }
    }
}

/// Fake-quantizes an input.
fn quantized(x: &[f64], k: usize, spec: DynamicLinearSpec) -> Vec<f64> {
    let kind = spec.kind;
    let rounded = |x: f32| round(f64::from(x), kind) as f32;
    let largest = |x: &[f64]| x.iter().fold(0.0f32, |most, &x| most.max(x.abs() as f32));
    let of_all = largest(x);
    let row = |row: &[f64]| -> Vec<f64> {
        let top = if spec.granularity == ScaleGranularity::Row { largest(row) } else { of_all };
        let number = |&x: &f64| {
            let x = x as f32;
            match spec.format {
                DynamicFormat::Int8 => {
                    // In f16, inverse and product stay in f32.
                    let step = |x: f32| if kind == Dtype::F16 { x } else { rounded(x) };
                    let scale = rounded(top / 127.0).max(rounded(1e-5));
                    let code = step(x * step(1.0 / scale)).round_ties_even().clamp(-127.0, 127.0);
                    f64::from(code) * f64::from(scale)
                }
                _ => {
                    let scale = rounded(top / 448.0);
                    let quotient = x / scale;
                    let code = if quotient.is_nan() { 0 } else { rowwise::to_e4m3(quotient) };
                    f64::from(rowwise::e4m3_to_f32(code)) * f64::from(scale)
                }
            }
        };
        row.iter().map(number).collect()
    };
    x.chunks(k).flat_map(row).collect()
}

/// Applies a prologue to a row in double precision, rounded like the kernels.
fn apply_prologue(x: &[f64], prologue: Prologue, kind: Dtype) -> Vec<f64> {
    let count = x.len() as f64;
    let around = |mean: f64| {
        let square = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        x.iter().map(|x| round((x - mean) / (square + 1e-5).sqrt(), kind)).collect()
    };
    match prologue {
        Prologue::None => x.to_vec(),
        Prologue::LayerNorm => around(x.iter().sum::<f64>() / count),
        Prologue::RmsNorm => around(0.0),
        Prologue::Activation(function) => x.iter().map(|&x| round(activate(x, Some(function)), kind)).collect(),
        other => panic!("{other:?} is not tested here"),
    }
}

fn activate(x: f64, activation: Option<Activation>) -> f64 {
    match activation {
        Some(Activation::Relu) => x.max(0.0),
        Some(Activation::Gelu) => 0.5 * x * (1.0 + libm::erf(x / std::f64::consts::SQRT_2)),
        Some(Activation::Silu) => x / (1.0 + (-x).exp()),
        Some(other) => panic!("{other} is not tested here"),
        None => x,
    }
}

const FORMATS: [(DynamicFormat, ScaleGranularity); 3] = [
    (DynamicFormat::Int8, ScaleGranularity::Row),
    (DynamicFormat::E4m3, ScaleGranularity::Row),
    (DynamicFormat::E4m3, ScaleGranularity::Tensor),
];

#[test]
#[ignore = "needs CUDA"]
fn dynamic_gemm_matches_at_ragged_sizes() {
    let (device, _guard) = gpu();
    let ragged = [(1, 4096, 256), (3, 17, 127), (17, 1000, 129), (127, 129, 17), (129, 127, 1000), (1, 1, 1)];
    let whole = [(64, 512, 128), (1000, 1024, 64), (33, 40000, 32), (129, 1000, 256)];
    let functions = [None, Some(Activation::Relu), Some(Activation::Gelu), Some(Activation::Silu)];
    let before = [Prologue::LayerNorm, Prologue::RmsNorm, Prologue::Activation(Activation::Gelu)];
    for kind in Dtype::ALL {
        for (codes, shared) in FORMATS {
            for (at, (m, k, n)) in ragged.into_iter().chain(whole).enumerate() {
                let plain = plain_spec(kind, codes, shared);
                check(&device, plain, LinearShape { m, k, n });
                // A normalized row of one element is always zero.
                if k > 1 {
                    let prologue = before[at % before.len()];
                    let layer = DynamicLinearSpec { prologue, activation: functions[at % functions.len()], ..plain };
                    check(&device, DynamicLinearSpec { has_addend: at % 3 == 0, ..layer }, LinearShape { m, k, n });
                }
                check(&device, DynamicLinearSpec { has_addend: true, ..plain }, LinearShape { m, k, n });
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn fast_accumulation_matches() {
    let (device, _guard) = gpu();
    for (kind, shared) in [(Dtype::Bf16, ScaleGranularity::Row), (Dtype::F16, ScaleGranularity::Tensor)] {
        let spec = DynamicLinearSpec {
            accumulation: Float8Accumulation::Fast,
            ..plain_spec(kind, DynamicFormat::E4m3, shared)
        };
        for (m, k, n) in [(64, 512, 128), (129, 1000, 127), (1000, 4096, 64)] {
            check(&device, spec, LinearShape { m, k, n });
            check(&device, DynamicLinearSpec { activation: Some(Activation::Relu), ..spec }, LinearShape { m, k, n });
        }
    }
}

/// Several iterations per block, with an incomplete last one, and a block with fewer rows.
#[test]
#[ignore = "needs CUDA"]
fn smem_resident_rows_match() {
    let (device, _guard) = gpu();
    let before = [Prologue::None, Prologue::LayerNorm, Prologue::RmsNorm, Prologue::Activation(Activation::Gelu)];
    for kind in Dtype::ALL {
        for prologue in before {
            let spec =
                DynamicLinearSpec { prologue, ..plain_spec(kind, DynamicFormat::E4m3, ScaleGranularity::Tensor) };
            for (m, k, n) in [(1061, 4096, 16), (3000, 1000, 16)] {
                check(&device, spec, LinearShape { m, k, n });
            }
        }
    }
}

/// More rows than all blocks process in one iteration, with a remainder.
#[test]
#[ignore = "needs CUDA"]
fn persistent_rows_match() {
    let (device, _guard) = gpu();
    for (kind, (codes, shared)) in [Dtype::Bf16, Dtype::F16, Dtype::Bf16].into_iter().zip(FORMATS) {
        let spec =
            DynamicLinearSpec { prologue: Prologue::Activation(Activation::Gelu), ..plain_spec(kind, codes, shared) };
        check(&device, spec, LinearShape { m: 3175, k: 8192, n: 16 });
    }
}

/// More tile pairs than resident clusters, in swizzle bands with a narrow last one; one row beyond a pair, and half a
/// pair.
#[test]
#[ignore = "needs CUDA"]
fn fused_epilogue_gemm_matches_in_every_wave() {
    let (device, _guard) = gpu();
    for (kind, codes, shared) in [
        (Dtype::Bf16, DynamicFormat::Int8, ScaleGranularity::Row),
        (Dtype::F16, DynamicFormat::E4m3, ScaleGranularity::Row),
        (Dtype::Bf16, DynamicFormat::E4m3, ScaleGranularity::Tensor),
    ] {
        let plain = DynamicLinearSpec { accumulation: Float8Accumulation::Fast, ..plain_spec(kind, codes, shared) };
        for (activation, added) in [(None, false), (Some(Activation::Silu), false), (Some(Activation::Gelu), true)] {
            for (m, k, n) in [(2100, 800, 2312), (257, 1000, 6000), (129, 33, 11272)] {
                check(&device, DynamicLinearSpec { activation, has_addend: added, ..plain }, LinearShape { m, k, n });
            }
        }
    }
}

/// Fused and separate kernels: sequences of zeros and of small values, head widths without a tensor-core kernel, and
/// too many heads.
#[test]
#[ignore = "needs CUDA"]
fn fused_attention_quantization_matches_separate_kernels() {
    let (device, _guard) = gpu();
    let kinds = Dtype::ALL.into_iter().flat_map(|kind| FORMATS.map(|config| (kind, config)));
    for (kind, (codes, shared)) in kinds {
        for (sequences, heads, head) in [(1, 8, 512), (300, 8, 128), (3, 2, 32), (5, 3, 17), (70, 16, 64)] {
            let (m, k, n) = (SHORT_ATTENTION_TOKENS * sequences, heads * head, 32);
            let spec = plain_spec(kind, codes, shared);
            let attended = DynamicLinearSpec { prologue: Prologue::ShortAttention { heads }, ..spec };
            let [mut fused, mut behind] =
                [attended, spec].map(|spec| DynamicLinearPlan::new(&device, spec, LinearShape { m, k, n }).unwrap());
            let attention = CudaKernel::short_attention(&device, kind, sequences, heads, head).unwrap();
            println!("{sequences} {heads} {head} {spec:?}: {}", fused.algorithm());
            let mut x = values(3 * m * k, 1, kind);
            for (sequence, numbers) in x.chunks_mut(3 * SHORT_ATTENTION_TOKENS * k).enumerate() {
                let gain = [3.0, 0.0, 1e-3][sequence % 3];
                numbers.iter_mut().for_each(|x| *x = round(*x * gain, kind));
            }
            let (x, weight) = (device.upload(&encode(&x, kind)).unwrap(), Weight::new(spec, n, k).upload(&device));
            assert_eq!(x.len(), fused.x_bytes());
            let mut mixed = poisoned(&device, behind.x_bytes());
            let [mut found, mut expected] = [(); 2].map(|()| poisoned(&device, behind.y_bytes()));
            attention.enqueue([&x], [&mut mixed]).unwrap();
            behind.enqueue(&mixed, &weight, None, &mut expected).unwrap();
            for _ in 0..2 {
                fused.enqueue(&x, &weight, None, &mut found).unwrap();
                let right = found.download().unwrap() == expected.download().unwrap();
                assert!(right, "{spec:?} {sequences} {heads} {head}");
            }
        }
    }
    let spec = plain_spec(Dtype::Bf16, DynamicFormat::E4m3, ScaleGranularity::Row);
    for (m, heads) in [(17, 8), (16, 3), (16, 0)] {
        let spec = DynamicLinearSpec { prologue: Prologue::ShortAttention { heads }, ..spec };
        let error = DynamicLinearPlan::new(&device, spec, LinearShape { m, k: 256, n: 32 }).unwrap_err();
        assert_eq!(error, NativeError::AttentionRows { rows: m, columns: 256, heads });
    }
}

/// Scales without an exact float inverse, and ties between two e4m3 values, which round to even.
#[test]
#[ignore = "needs CUDA"]
fn quantized_values_equal_division_at_extreme_scales() {
    let (device, _guard) = gpu();
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
                // Every tie between two e4m3 values under the scale that follows from the first element of the row.
                let half = 448.0 / 512.0 * f64::from(at as u32) / 128.0;
                *x = round(gains[row % 3] * if row % 2 == 0 { half } else { *x }, kind);
            }
            numbers[0] = round(gains[row % 3] * 448.0 / 512.0, kind);
        }
        check_codes(&device, kind, &x, of_weight);
    }
}

#[test]
#[ignore = "needs CUDA"]
fn tensor_scale_after_gelu_uses_the_largest_magnitude() {
    let (device, _guard) = gpu();
    let n = 16;
    for kind in Dtype::ALL {
        // Rows in registers, resident and not, and rows too long for registers.
        for (m, k) in [(20_000, 1024), (600, 1024), (3, 70_000)] {
            let prologue = Prologue::Activation(Activation::Gelu);
            let spec =
                DynamicLinearSpec { prologue, ..plain_spec(kind, DynamicFormat::E4m3, ScaleGranularity::Tensor) };
            let mut linear = DynamicLinearPlan::new(&device, spec, LinearShape { m, k, n }).unwrap();
            let stride = DynamicLinearPlan::padded_k(k);
            let mut codes = vec![0u8; stride * n];
            (0..n).for_each(|at| codes[at * stride + at] = 0x38);
            let upload = |bytes: &[u8]| device.upload(bytes).unwrap();
            let scales = upload(&encode(&[1.0], Dtype::F32));
            let w = PackedWeight { codes: upload(&codes), scales, zeros: None, tensor_scale: None };
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
                let mut y = poisoned(&device, linear.y_bytes());
                linear.enqueue(&upload(&encode(&x, kind)), &w, None, &mut y).unwrap();
                let y = decode(&y.download().unwrap(), kind);
                let made = pair.map(|x| round(activate(x, Some(Activation::Gelu)), kind));
                for (place, exact) in places.iter().zip(quantized(&made, 2, spec)) {
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

/// The significand of the scale determines when multiplication by the inverse is inexact.
#[test]
#[ignore = "needs CUDA"]
fn ties_round_to_even_under_every_scale() {
    let (device, _guard) = gpu();
    for (kind, scales) in [(Dtype::Bf16, 128), (Dtype::F16, 1024)] {
        let row = |row: u32| {
            let top = round(448.0 * (1.0 + f64::from(row) / f64::from(scales)), kind);
            let scale = round(top / 448.0, kind);
            // Ties: odd multiples of half the smallest subnormal, and values with one more significant bit than e4m3.
            let of_smallest = (1..16).step_by(2).map(|half| f64::from(half) * 2f64.powi(-10));
            let others = (17..32).step_by(2).flat_map(|half| (-10..4).map(move |by| f64::from(half) * 2f64.powi(by)));
            let halves = of_smallest.chain(others).map(move |half| round(half * scale, kind));
            let numbers = [top].into_iter().chain(halves).chain([0.0; 7]);
            numbers.enumerate().map(|(at, x)| if at % 3 == 1 { -x } else { x })
        };
        let x: Vec<f64> = (0..scales).flat_map(row).collect();
        check_codes(&device, kind, &x, 1.0);
    }
}

/// Checks the quantization of rows of 128 elements through a layer whose weight is the identity times `of_weight`.
fn check_codes(device: &Arc<CudaDevice>, kind: Dtype, x: &[f64], of_weight: f64) {
    let (k, n) = (128, 128);
    let spec = plain_spec(kind, DynamicFormat::E4m3, ScaleGranularity::Row);
    let mut linear = DynamicLinearPlan::new(device, spec, LinearShape { m: x.len() / k, k, n }).unwrap();
    let mut codes = vec![0u8; k * n];
    (0..n).for_each(|at| codes[at * k + at] = 0x38);
    let upload = |bytes: &[u8]| device.upload(bytes).unwrap();
    let w = PackedWeight {
        codes: upload(&codes),
        scales: upload(&encode(&vec![of_weight; n], Dtype::F32)),
        zeros: None,
        tensor_scale: None,
    };
    let mut y = poisoned(device, linear.y_bytes());
    linear.enqueue(&upload(&encode(x, kind)), &w, None, &mut y).unwrap();
    for (at, (found, exact)) in decode(&y.download().unwrap(), kind).into_iter().zip(quantized(x, k, spec)).enumerate()
    {
        let exact = exact * of_weight;
        // An adjacent e4m3 value differs by at least 1/16; f16 subnormals are multiples of 2^-24.
        let tolerance = 0.01 * exact.abs() + if kind == Dtype::F16 { 2f64.powi(-25) } else { 0.0 };
        assert!((found - exact).abs() <= tolerance, "{kind} at {at}: {found:e} instead of {exact:e} of {:e}", x[at]);
    }
}

fn plain_spec(kind: Dtype, codes: DynamicFormat, shared: ScaleGranularity) -> DynamicLinearSpec {
    let (sums, prologue) = (Float8Accumulation::Promoted, Prologue::None);
    DynamicLinearSpec {
        kind,
        format: codes,
        granularity: shared,
        accumulation: sums,
        prologue,
        activation: None,
        has_addend: false,
    }
}

fn check(device: &Arc<CudaDevice>, spec: DynamicLinearSpec, shape: LinearShape) {
    let (LinearShape { m, k, n }, kind) = (shape, spec.kind);
    let mut linear = DynamicLinearPlan::new(device, spec, shape).unwrap();
    let place = format!("{spec:?} {shape}: {}", linear.algorithm());
    println!("{place}");
    // Rows of zeros, of small and of large values.
    let mut x = values(m * k, 1, kind);
    for (row, numbers) in x.chunks_mut(k).enumerate() {
        let gain = [1.0, 50.0, 0.0, 0.01][row % 4];
        numbers.iter_mut().for_each(|x| *x = round(*x * gain, kind));
    }
    let weight = Weight::new(spec, n, k);
    let (device_x, device_w) = (device.upload(&encode(&x, kind)).unwrap(), weight.upload(device));
    let added = values(m * n, 21, kind);
    let device_added = device.upload(&encode(&added, kind)).unwrap();
    let mut launch = || {
        let mut y = poisoned(device, linear.y_bytes());
        let added = spec.has_addend.then_some(&device_added);
        linear.enqueue(&device_x, &device_w, added, &mut y).unwrap();
        y.download().unwrap()
    };
    let bytes = launch();
    assert!(launch() == bytes, "{place}: repeated launches are identical");
    let operand: Vec<f64> = x.chunks(k).flat_map(|row| apply_prologue(row, spec.prologue, kind)).collect();
    let operand = quantized(&operand, k, spec);
    let (mut worst, mut off, mut all) = (0f64, 0f64, 0f64);
    let step = (m * n / 20_000).max(1) | 1;
    for (at, found) in decode(&bytes, kind).into_iter().enumerate().step_by(step) {
        let (i, j) = (at / n, at % n);
        let terms = operand[i * k..][..k].iter().zip(&weight.numbers[j * k..][..k]).map(|(x, w)| x * w);
        let (sum, squares) = terms.fold((0.0, 0.0), |(sum, squares), term| (sum + term, squares + term * term));
        let exact = activate(sum, spec.activation) + if spec.has_addend { added[at] } else { 0.0 };
        // Integer accumulators are exact. For e4m3, each step of 32 along k truncates every product below 13 bits of
        // the largest term or of the partial sum, always toward the same side: by half a unit each, 16 units per step.
        let of_sums = match spec.format {
            DynamicFormat::Int8 => 4.0 * f64::from(f32::EPSILON) * sum.abs(),
            _ => {
                let steps = (k as f64 / 32.0).max(1.0);
                // Without promotion the errors of all steps have the same sign.
                let steps = if spec.accumulation == Float8Accumulation::Fast { steps } else { steps.sqrt() };
                16.0 * steps * 2f64.powi(-13) * squares.sqrt().max(sum.abs())
            }
        };
        // Error of GELU, which remains if the addend dominates.
        let of_activation = if spec.activation.is_some() { 1e-6 } else { 1e-7 };
        let tolerance = epsilon(kind) * exact.abs() + of_sums + of_activation;
        let error = (found - exact).abs();
        worst = worst.max(error / squares.sqrt().max(1e-30));
        (off, all) = (off + error * error, all + exact * exact);
        // A prologue in f32 may round to another quantized value; then only the total error is checked.
        assert!(
            spec.prologue != Prologue::None || error <= tolerance,
            "{place} at [{i}, {j}]: {found:e} instead of {exact:e}"
        );
        assert!(found.is_finite(), "{place} at [{i}, {j}]: {found}");
    }
    let whole = (off / all.max(1e-30)).sqrt();
    println!("maximum error {worst:.1e} relative to the norm of the terms, total error {whole:.1e}");
    let steps = if spec.format == DynamicFormat::Int8 { 0.03 } else { 0.125 };
    assert!(
        whole <= (epsilon(kind) * steps).sqrt() + 2.0 * epsilon(kind) + steps / (k as f64).sqrt(),
        "{place}: {whole}"
    );
}

#[test]
#[ignore = "needs CUDA"]
fn nan_stays_in_row_and_bad_sizes_fail() {
    let (device, _guard) = gpu();
    let (m, k, n) = (5, 64, 32);
    for (codes, shared) in FORMATS {
        let spec = plain_spec(Dtype::Bf16, codes, shared);
        let mut linear = DynamicLinearPlan::new(&device, spec, LinearShape { m, k, n }).unwrap();
        let mut x = values(m * k, 1, Dtype::Bf16);
        (x[k + 3], x[3 * k]) = (f64::INFINITY, f64::NAN);
        let (x, w) = (device.upload(&encode(&x, Dtype::Bf16)).unwrap(), Weight::new(spec, n, k).upload(&device));
        let mut y = poisoned(&device, linear.y_bytes());
        linear.enqueue(&x, &w, None, &mut y).unwrap();
        for (at, found) in decode(&y.download().unwrap(), Dtype::Bf16).into_iter().enumerate() {
            let number = shared == ScaleGranularity::Row && ![1, 3].contains(&(at / n));
            assert_eq!(found.is_finite(), number, "{spec:?} in row {}: {found}", at / n);
        }
        let mut short = poisoned(&device, linear.y_bytes() - 1);
        let error = linear.enqueue(&x, &w, None, &mut short).unwrap_err();
        assert!(matches!(error, NativeError::BufferSize { what: "y", .. }), "{error}");
        let fewer = PackedWeight { codes: device.allocate(n * k - 1).unwrap(), ..w };
        let error = linear.enqueue(&x, &fewer, None, &mut y).unwrap_err();
        assert_eq!(error, NativeError::BufferSize { what: "w", needed: n * k, found: n * k - 1 });
    }
    let k = DynamicFormat::MAX_INT8_K + 1;
    let spec = plain_spec(Dtype::Bf16, DynamicFormat::Int8, ScaleGranularity::Row);
    let error = DynamicLinearPlan::new(&device, spec, LinearShape { m: 1, k, n: 1 }).unwrap_err();
    assert!(matches!(error, NativeError::InvalidSize { value, .. } if value == k), "{error}");
}

/// Prints the times of layers and of their parts, for manual inspection.
#[test]
#[ignore = "needs CUDA"]
fn times_of_layers_of_codes() {
    let (device, _guard) = gpu();
    let kind = Dtype::Bf16;
    let promoted = FORMATS.map(|(codes, shared)| (codes, shared, Float8Accumulation::Promoted));
    let fast = [ScaleGranularity::Row, ScaleGranularity::Tensor]
        .map(|shared| (DynamicFormat::E4m3, shared, Float8Accumulation::Fast));
    for (codes, shared, sums) in promoted.into_iter().chain(fast) {
        for (m, size) in [(1, 4096), (32, 4096), (512, 4096), (1024, 4096), (4096, 4096), (8192, 8192)] {
            let norm = Prologue::LayerNorm;
            let normalized =
                [Activation::Gelu, Activation::Relu, Activation::Silu].map(|function| (norm, Some(function)));
            for (prologue, activation) in [(Prologue::None, None)].into_iter().chain(normalized) {
                let spec =
                    DynamicLinearSpec { prologue, activation, accumulation: sums, ..plain_spec(kind, codes, shared) };
                let shape = LinearShape { m, k: size, n: size };
                let mut linear = DynamicLinearPlan::new(&device, spec, shape).unwrap();
                let x = device.upload(&encode(&values(m * size, 1, kind), kind)).unwrap();
                let codes = Weight::random(&device, spec, size);
                let mut y = poisoned(&device, linear.y_bytes());
                let mut launches = |many: u32| {
                    1e-3 * mean_micros(&device, many as usize, |_| linear.enqueue(&x, &codes, None, &mut y).unwrap())
                };
                let least = (0..8).map(|_| launches(20)).fold(f64::INFINITY, f64::min);
                // Warm up under its own load for 0.6 s, then measure as long.
                let many = (600.0 / least) as u32;
                let under_load = if (1024..=4096).contains(&m) {
                    launches(many);
                    format!(", {:.4} under load", launches(many))
                } else {
                    String::new()
                };
                let rate = 2.0 * (m * size * size) as f64 / least / 1e9;
                println!("{spec:?} {shape}: {least:.4} ms{under_load}, {rate:.0} TFLOP/s: {}", linear.algorithm());
            }
        }
    }
}

/// Prints the times of input quantization, isolated and after GEMMs, which lower the clock, and the times of 8192³
/// GEMMs under sustained load, with and without quantization.
#[test]
#[ignore = "needs CUDA"]
fn times_of_codes() {
    let (device, _guard) = gpu();
    let kind = Dtype::Bf16;
    let filled = |count: usize| {
        let some = encode(&values(1 << 20, 1, kind), kind);
        device.upload(&some.into_iter().cycle().take(count * kind.width()).collect::<Vec<_>>()).unwrap()
    };
    let [int8, rows, tensor] = FORMATS.map(|(codes, shared)| {
        let sums = if codes == DynamicFormat::E4m3 { Float8Accumulation::Fast } else { Float8Accumulation::Promoted };
        DynamicLinearSpec { accumulation: sums, ..plain_spec(kind, codes, shared) }
    });
    let side = 8192;
    let (x, mut y) = (filled(side * side), poisoned(&device, side * side * kind.width()));
    let product = |spec| {
        let linear = DynamicLinearPlan::new(&device, spec, LinearShape { m: side, k: side, n: side }).unwrap();
        (linear, Weight::random(&device, spec, side))
    };
    for spec in [int8, rows, tensor] {
        let (mut linear, w) = product(spec);
        linear.quantize(&x).unwrap();
        // Warm up under its own load for a second, then measure as long.
        let mut alone = || mean_micros(&device, 1200, |_| linear.multiply(&w, None, &mut y).unwrap());
        let [_, alone] = [(); 2].map(|()| alone());
        let mut whole = || mean_micros(&device, 1100, |_| linear.enqueue(&x, &w, None, &mut y).unwrap());
        let [_, whole] = [(); 2].map(|()| whole());
        println!("{spec:?} {side}: GEMM {alone:.0} us, with quantization {whole:.0} us: {}", linear.algorithm());
    }
    let (mut busy, w) = product(rows);
    let (gelu, heads) = (Prologue::Activation(Activation::Gelu), 8);
    for (prologue, m, k) in [
        (Prologue::None, 8192, 8192),
        (Prologue::LayerNorm, 1024, 4096),
        (Prologue::RmsNorm, 16384, 4096),
        (gelu, 16384, 16384),
        (Prologue::ShortAttention { heads }, 16384, 4096),
    ] {
        for spec in [int8, rows, tensor] {
            let shape = LinearShape { m, k, n: 16 };
            let mut linear = DynamicLinearPlan::new(&device, DynamicLinearSpec { prologue, ..spec }, shape).unwrap();
            // Enough inputs to exceed the cache.
            let count = linear.x_bytes() / kind.width();
            let inputs: Vec<_> = (0..(1 << 27) / count + 1).map(|_| filled(count)).collect();
            let mut quantize = |at: usize| linear.quantize(&inputs[at % inputs.len()]).unwrap();
            let alone = micros(&device, inputs.len(), &mut quantize);
            let mut behind = || {
                (0..12).for_each(|_| busy.enqueue(&x, &w, None, &mut y).unwrap());
                mean_micros(&device, 4, &mut quantize)
            };
            for _ in 0..12 {
                behind();
            }
            let behind = (0..25).map(|_| behind()).sum::<f64>() / 25.0;
            println!(
                "{spec:?} {prologue:?} {m}x{k}: {alone:.1} us isolated, {behind:.1} us after GEMMs: {}",
                linear.algorithm()
            );
        }
    }
}

impl Weight {
    /// Random weight of n = k = `size` without dequantized values, which are slow to compute on the host.
    fn random(device: &CudaDevice, spec: DynamicLinearSpec, size: usize) -> PackedWeight {
        let code = |at: usize| (at as u32).wrapping_mul(0x9E37_79B9).to_le_bytes()[3] & 0xbf;
        let codes: Vec<u8> = (0..size * size).map(code).collect();
        let kind = if spec.format == DynamicFormat::Int8 { spec.kind } else { Dtype::F32 };
        let scales = encode(&vec![0.01; size], kind);
        PackedWeight {
            codes: device.upload(&codes).unwrap(),
            scales: device.upload(&scales).unwrap(),
            zeros: None,
            tensor_scale: None,
        }
    }
}
