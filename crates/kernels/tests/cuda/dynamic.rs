//! Dynamically quantized layers against 64-bit arithmetic on the expected quantized inputs, and their times.

use std::sync::Arc;

use calorimeter_kernels::{
    Activation, Dtype, LayerSpec, PrecisionHint, Prologue, Sparsity,
    format::Grouping,
    layer::Rejection,
    native::{
        CudaDevice, CudaKernel, DeviceBuffer, LayerPlan, LinearShape, NativeError, PrepackedWeight,
        SHORT_ATTENTION_TOKENS,
    },
};

use super::layers::{
    HostWeight, activate, byte_layers, check, fake_quantized, float8_layer, int8_layer, stored, upload,
};
use super::{decode, encode, gpu, mean_micros, micros, poisoned, round, values};

const GELU: Prologue = Prologue::Activation(Activation::Gelu);

/// Layer whose e4m3 accumulators, if any, are not promoted.
fn fast(spec: LayerSpec) -> LayerSpec {
    LayerSpec { precision_hint: Some(PrecisionHint::FastAccumulation), ..spec }
}

#[test]
#[ignore = "needs CUDA"]
fn dynamic_gemm_matches_at_ragged_sizes() {
    let (device, _guard) = gpu();
    let ragged = [(1, 4096, 256), (3, 17, 127), (17, 1000, 129), (127, 129, 17), (129, 127, 1000), (1, 1, 1)];
    let whole = [(64, 512, 128), (1000, 1024, 64), (33, 40000, 32), (129, 1000, 256)];
    let functions = [None, Some(Activation::Relu), Some(Activation::Gelu), Some(Activation::Silu)];
    let before = [Prologue::LayerNorm, Prologue::RmsNorm, GELU];
    for plain in Dtype::ALL.into_iter().flat_map(byte_layers) {
        for (at, (m, k, n)) in ragged.into_iter().chain(whole).enumerate() {
            check(&device, &plain, LinearShape { m, k, n });
            // A normalized row of one element is always zero.
            if k > 1 {
                let (prologue, activation) = (before[at % before.len()], functions[at % functions.len()]);
                let layer = LayerSpec { prologue, activation, has_addend: at % 3 == 0, ..plain };
                check(&device, &layer, LinearShape { m, k, n });
            }
            check(&device, &LayerSpec { has_addend: true, ..plain }, LinearShape { m, k, n });
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn fast_accumulation_matches() {
    let (device, _guard) = gpu();
    for (dtype, grouping) in [(Dtype::Bf16, Grouping::Row), (Dtype::F16, Grouping::Tensor)] {
        let spec = fast(float8_layer(dtype, grouping));
        for (m, k, n) in [(64, 512, 128), (129, 1000, 127), (1000, 4096, 64)] {
            check(&device, &spec, LinearShape { m, k, n });
            check(&device, &LayerSpec { activation: Some(Activation::Relu), ..spec }, LinearShape { m, k, n });
        }
    }
}

/// Several iterations per block, with an incomplete last one, and a block with fewer rows.
#[test]
#[ignore = "needs CUDA"]
fn smem_resident_rows_match() {
    let (device, _guard) = gpu();
    for dtype in [Dtype::F16, Dtype::Bf16] {
        for prologue in [Prologue::None, Prologue::LayerNorm, Prologue::RmsNorm, GELU] {
            let spec = LayerSpec { prologue, ..float8_layer(dtype, Grouping::Tensor) };
            for (m, k, n) in [(1061, 4096, 16), (3000, 1000, 16)] {
                check(&device, &spec, LinearShape { m, k, n });
            }
        }
    }
}

/// More rows than all blocks process in one iteration, with a remainder.
#[test]
#[ignore = "needs CUDA"]
fn persistent_rows_match() {
    let (device, _guard) = gpu();
    for spec in
        [int8_layer(Dtype::Bf16), float8_layer(Dtype::F16, Grouping::Row), float8_layer(Dtype::Bf16, Grouping::Tensor)]
    {
        check(&device, &LayerSpec { prologue: GELU, ..spec }, LinearShape { m: 3175, k: 8192, n: 16 });
    }
}

/// More tile pairs than resident clusters, in swizzle bands with a narrow last one; one row beyond a pair, and half a
/// pair.
#[test]
#[ignore = "needs CUDA"]
fn fused_epilogue_gemm_matches_in_every_wave() {
    let (device, _guard) = gpu();
    for spec in
        [int8_layer(Dtype::Bf16), float8_layer(Dtype::F16, Grouping::Row), float8_layer(Dtype::Bf16, Grouping::Tensor)]
    {
        for (activation, has_addend) in [(None, false), (Some(Activation::Silu), false), (Some(Activation::Gelu), true)]
        {
            for (m, k, n) in [(2100, 800, 2312), (257, 1000, 6000), (129, 33, 11272)] {
                check(&device, &LayerSpec { activation, has_addend, ..fast(spec) }, LinearShape { m, k, n });
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
    for spec in Dtype::ALL.into_iter().flat_map(byte_layers) {
        for (sequences, heads, head) in [(1, 8, 512), (300, 8, 128), (3, 2, 32), (5, 3, 17), (70, 16, 64)] {
            let (m, k, n) = (SHORT_ATTENTION_TOKENS * sequences, heads * head, 32);
            let attended = LayerSpec { prologue: Prologue::ShortAttention { heads }, ..spec };
            let [mut fused, mut behind] =
                [attended, spec].map(|spec| LayerPlan::new(&device, &spec, LinearShape { m, k, n }).unwrap());
            let attention = CudaKernel::short_attention(&device, spec.dtype, sequences, heads, head).unwrap();
            println!("{sequences} {heads} {head} {spec:?}: {}", fused.algorithm());
            let mut x = values(3 * m * k, 1, spec.dtype);
            for (sequence, numbers) in x.chunks_mut(3 * SHORT_ATTENTION_TOKENS * k).enumerate() {
                let gain = [3.0, 0.0, 1e-3][sequence % 3];
                numbers.iter_mut().for_each(|x| *x = round(*x * gain, spec.dtype));
            }
            let x = device.upload(&encode(&x, spec.dtype)).unwrap();
            let weight = HostWeight::new(&spec, [n, k]).prepack(&device, &behind);
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
    for (m, heads) in [(17, 8), (16, 3), (16, 0)] {
        let prologue = Prologue::ShortAttention { heads };
        let spec = LayerSpec { prologue, ..float8_layer(Dtype::Bf16, Grouping::Row) };
        let error = LayerPlan::new(&device, &spec, LinearShape { m, k: 256, n: 32 }).unwrap_err();
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
    for kind in [Dtype::F16, Dtype::Bf16] {
        // Rows in registers, resident and not, and rows too long for registers.
        for (m, k) in [(20_000, 1024), (600, 1024), (3, 70_000)] {
            let spec = LayerSpec { prologue: GELU, ..float8_layer(kind, Grouping::Tensor) };
            let mut linear = LayerPlan::new(&device, &spec, LinearShape { m, k, n }).unwrap();
            let w = scaled_identity(&device, &linear, &spec, [n, k], 1.0);
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
                linear.enqueue(&device.upload(&encode(&x, kind)).unwrap(), &w, None, &mut y).unwrap();
                let y = decode(&y.download().unwrap(), kind);
                let made = pair.map(|x| round(activate(x, Some(Activation::Gelu)), kind));
                for (place, exact) in places.iter().zip(fake_quantized(spec.input.unwrap(), &made, 2)) {
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
    let spec = float8_layer(kind, Grouping::Row);
    let mut linear = LayerPlan::new(device, &spec, LinearShape { m: x.len() / k, k, n }).unwrap();
    let w = scaled_identity(device, &linear, &spec, [n, k], of_weight);
    let mut y = poisoned(device, linear.y_bytes());
    linear.enqueue(&device.upload(&encode(x, kind)).unwrap(), &w, None, &mut y).unwrap();
    let (y, expected) = (decode(&y.download().unwrap(), kind), fake_quantized(spec.input.unwrap(), x, k));
    for (at, (found, exact)) in y.into_iter().zip(expected).enumerate() {
        let exact = exact * of_weight;
        // An adjacent e4m3 value differs by at least 1/16; f16 subnormals are multiples of 2^-24.
        let tolerance = 0.01 * exact.abs() + if kind == Dtype::F16 { 2f64.powi(-25) } else { 0.0 };
        assert!((found - exact).abs() <= tolerance, "{kind} at {at}: {found:e} instead of {exact:e} of {:e}", x[at]);
    }
}

/// e4m3 weight whose first `n` columns are the identity times a scale.
fn scaled_identity(
    device: &CudaDevice,
    plan: &LayerPlan,
    spec: &LayerSpec,
    [n, k]: [usize; 2],
    scale: f64,
) -> PrepackedWeight {
    let (format, stride) = (spec.weight.unwrap(), LayerPlan::padded_k(k));
    let mut codes = vec![0; n * stride];
    (0..n).for_each(|at| codes[at * stride + at] = 0x38);
    let scales = encode(&vec![scale; format.scale_count(n, k)], Dtype::F32);
    plan.prepack(upload(device, stored(format, [n, k], codes, Some(scales)))).unwrap()
}

#[test]
#[ignore = "needs CUDA"]
fn nan_stays_in_row_and_bad_sizes_fail() {
    let (device, _guard) = gpu();
    let (m, k, n) = (5, 64, 32);
    let mut x = values(m * k, 1, Dtype::Bf16);
    (x[k + 3], x[3 * k]) = (f64::INFINITY, f64::NAN);
    let x = device.upload(&encode(&x, Dtype::Bf16)).unwrap();
    for spec in byte_layers(Dtype::Bf16) {
        let mut linear = LayerPlan::new(&device, &spec, LinearShape { m, k, n }).unwrap();
        let weight = HostWeight::new(&spec, [n, k]);
        let w = weight.prepack(&device, &linear);
        let mut y = poisoned(&device, linear.y_bytes());
        linear.enqueue(&x, &w, None, &mut y).unwrap();
        for (at, found) in decode(&y.download().unwrap(), Dtype::Bf16).into_iter().enumerate() {
            let number = spec.input.unwrap().grouping == Grouping::Row && ![1, 3].contains(&(at / n));
            assert_eq!(found.is_finite(), number, "{spec:?} in row {}: {found}", at / n);
        }
        let mut short = poisoned(&device, linear.y_bytes() - 1);
        let error = linear.enqueue(&x, &w, None, &mut short).unwrap_err();
        assert!(matches!(error, NativeError::BufferSize { what: "y", .. }), "{error}");
        let mut fewer = weight.stored;
        fewer.codes.pop();
        let fewer = linear.prepack(upload(&device, fewer)).unwrap();
        let error = linear.enqueue(&x, &fewer, None, &mut y).unwrap_err();
        assert_eq!(error, NativeError::BufferSize { what: "w", needed: n * k, found: n * k - 1 });
    }
}

#[test]
#[ignore = "needs CUDA"]
fn inaccurate_sums_are_rejected() {
    let (device, _guard) = gpu();
    let error = |spec, k| LayerPlan::new(&device, &spec, LinearShape { m: 1, k, n: 1 }).unwrap_err();
    let max = i32::MAX as usize / (127 * 128);
    let expected = Rejection::Size { what: "k (accumulated in 32 bits)", max, value: max + 1 };
    assert_eq!(error(int8_layer(Dtype::Bf16), max + 1), NativeError::Rejected(expected));
    for grouping in [Grouping::Row, Grouping::Tensor] {
        let float8 = float8_layer(Dtype::F32, grouping);
        for sparsity in [None, Some(Sparsity::SemiStructured)] {
            let error = error(LayerSpec { sparsity, ..float8 }, 64);
            assert!(matches!(error, NativeError::Rejected(Rejection::Accuracy(_))), "{error}");
        }
    }
}

/// int8 layer and e4m3 layers with fast accumulation.
fn fastest_layers() -> impl Iterator<Item = LayerSpec> {
    byte_layers(Dtype::Bf16).map(|spec| if spec == int8_layer(Dtype::Bf16) { spec } else { fast(spec) })
}

/// Random buffer of `count` bf16 elements, most of them repeated.
fn filled(device: &CudaDevice, count: usize) -> DeviceBuffer {
    let some = encode(&values(count.min(1 << 20), 1, Dtype::Bf16), Dtype::Bf16);
    device.upload(&some.into_iter().cycle().take(2 * count).collect::<Vec<_>>()).unwrap()
}

/// Prints the times of layers, for manual inspection.
#[test]
#[ignore = "needs CUDA"]
fn times_of_layers_of_codes() {
    let (device, _guard) = gpu();
    for spec in byte_layers(Dtype::Bf16).chain(fastest_layers().skip(1)) {
        for (m, size) in [(1, 4096), (32, 4096), (512, 4096), (1024, 4096), (4096, 4096), (8192, 8192)] {
            let norm = Prologue::LayerNorm;
            let normalized =
                [Activation::Gelu, Activation::Relu, Activation::Silu].map(|function| (norm, Some(function)));
            let (shape, weight) = (LinearShape { m, k: size, n: size }, HostWeight::new(&spec, [size; 2]));
            for (prologue, activation) in [(Prologue::None, None)].into_iter().chain(normalized) {
                let spec = LayerSpec { prologue, activation, ..spec };
                let mut linear = LayerPlan::new(&device, &spec, shape).unwrap();
                let (x, w) = (filled(&device, m * size), weight.prepack(&device, &linear));
                let mut y = poisoned(&device, linear.y_bytes());
                let mut launches = |many: u32| {
                    1e-3 * mean_micros(&device, many as usize, |_| linear.enqueue(&x, &w, None, &mut y).unwrap())
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

/// Prints the times of 8192³ layers under sustained load, and the times of layers of 16 columns, which mostly quantize
/// their input: isolated, and after GEMMs, which lower the clock.
#[test]
#[ignore = "needs CUDA"]
fn times_of_codes() {
    let (device, _guard) = gpu();
    let (kind, side) = (Dtype::Bf16, 8192);
    let (x, mut y) = (filled(&device, side * side), poisoned(&device, side * side * kind.width()));
    let layer = |spec: &LayerSpec, shape: LinearShape| {
        let linear = LayerPlan::new(&device, spec, shape).unwrap();
        let weight = HostWeight::new(spec, [shape.n, shape.k]).prepack(&device, &linear);
        (linear, weight)
    };
    let cube = LinearShape { m: side, k: side, n: side };
    for spec in fastest_layers() {
        let (mut linear, w) = layer(&spec, cube);
        // Warm up under its own load for a second, then measure as long.
        let mut whole = || mean_micros(&device, 1100, |_| linear.enqueue(&x, &w, None, &mut y).unwrap());
        let [_, whole] = [(); 2].map(|()| whole());
        println!("{spec:?} {side}: {whole:.0} us: {}", linear.algorithm());
    }
    let (mut busy, w) = layer(&fast(float8_layer(kind, Grouping::Row)), cube);
    for (prologue, m, k) in [
        (Prologue::None, 8192, 8192),
        (Prologue::LayerNorm, 1024, 4096),
        (Prologue::RmsNorm, 16384, 4096),
        (GELU, 16384, 16384),
        (Prologue::ShortAttention { heads: 8 }, 16384, 4096),
    ] {
        for spec in fastest_layers() {
            let (mut linear, thin) = layer(&LayerSpec { prologue, ..spec }, LinearShape { m, k, n: 16 });
            // Enough inputs to exceed the cache.
            let count = linear.x_bytes() / kind.width();
            let inputs: Vec<_> = (0..(1 << 27) / count + 1).map(|_| filled(&device, count)).collect();
            let mut few = poisoned(&device, linear.y_bytes());
            let mut quantize = |at: usize| linear.enqueue(&inputs[at % inputs.len()], &thin, None, &mut few).unwrap();
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
