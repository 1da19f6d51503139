//! Packed-weight GEMM against 64-bit arithmetic on the dequantized weights, and its times.

use std::sync::Arc;

use calorimeter_kernels::{
    Dtype, Element, InputFormat, PackedLinearSpec, PackedWeightFormat, ZeroPoint,
    native::{CudaDevice, LinearShape, NativeError, PackedLinearPlan, PackedWeight, PrepackedWeight},
};

use super::{assert_close, decode, encode, epsilon, gpu, micros, poisoned, values};

/// Weight on the host: bytes of its parts, and the values of scales and zero points.
struct Weight {
    spec: PackedLinearSpec,
    k: usize,
    codes: Vec<u8>,
    scales: (Vec<u8>, Vec<f64>),
    zeros: Option<(Vec<u8>, Vec<f64>)>,
    /// Tensor-wide scale, if any.
    outer: Option<f32>,
}

/// Decodes a value of an element type, from the definition. e4m3 has no NaN here.
fn decode_element(element: Element, code: u32) -> f64 {
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
        other => panic!("unsupported element type {other}"),
    }
}

/// Extracts the bit field of `bits` bits at an index.
fn bit_field(bytes: &[u8], index: usize, bits: usize) -> u32 {
    (0..bits)
        .map(|bit| index * bits + bit)
        .enumerate()
        .fold(0, |word, (to, from)| word | u32::from(bytes[from / 8] >> (from % 8) & 1) << to)
}

/// Random bytes from the generator of [`row_values`].
fn random_bytes(count: usize, mut seed: u64) -> Vec<u8> {
    let mut next = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((seed >> 32) as u32).to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..count.div_ceil(4)).flat_map(|_| next()).collect();
    bytes.truncate(count);
    bytes
}

/// Random scales or zero points of an element type, as bytes and as values around `middle` hundredths.
fn random_scales(element: Element, count: usize, seed: u64, middle: f64) -> (Vec<u8>, Vec<f64>) {
    match element {
        Element::Float(kind) => {
            let some: Vec<f64> = values(count, seed, kind).iter().map(|x| 0.01 * (x + middle)).collect();
            let bytes = encode(&some, kind);
            let numbers = decode(&bytes, kind);
            (bytes, numbers)
        }
        _ => {
            let mut bytes = random_bytes((count * element.bits() as usize).div_ceil(32) * 4, seed);
            for byte in &mut bytes {
                match element {
                    // Powers of two near 1/100.
                    Element::E8m0 => *byte = 117 + *byte % 8,
                    // Scales are normal and positive.
                    Element::E4m3 => *byte = 8 + *byte % 112,
                    _ => {}
                }
            }
            let numbers =
                (0..count).map(|at| decode_element(element, bit_field(&bytes, at, element.bits() as usize))).collect();
            (bytes, numbers)
        }
    }
}

impl Weight {
    /// Random quantized values, including the padding, which kernels must not assume to be zero.
    fn new(spec: PackedLinearSpec, n: usize, k: usize) -> Self {
        let PackedWeightFormat { element, group, scale, zero } = spec.weight;
        let bits = element.bits() as usize;
        let (per_row, row) = match group {
            Some(group) => (k.div_ceil(group), k.next_multiple_of(group).next_multiple_of(32)),
            None => (1, k.next_multiple_of(32)),
        };
        let mut codes = random_bytes(n * row * bits / 8, 11);
        if element == Element::E4m3 {
            codes.iter_mut().filter(|code| **code & 0x7f == 0x7f).for_each(|code| *code ^= 1);
        }
        let scales = random_scales(scale, n * per_row, 12, 1.5);
        let zeros = match zero {
            ZeroPoint::None => None,
            // Anywhere in the range of the quantized values.
            ZeroPoint::Integer(Element::Float(kind)) => {
                let middle = f64::from(1u32 << (bits - 1));
                let some: Vec<f64> = values(n * per_row, 13, kind).iter().map(|x| middle * (x + 1.0)).collect();
                let bytes = encode(&some, kind);
                let numbers = decode(&bytes, kind);
                Some((bytes, numbers))
            }
            ZeroPoint::Integer(element) | ZeroPoint::Float(element) => {
                Some(random_scales(element, n * per_row, 13, 0.0))
            }
        };
        let outer = (spec.input == InputFormat::Nvfp4).then_some(0.0037f32);
        Self { spec, k, codes, scales, zeros, outer }
    }

    /// Dequantizes a row.
    fn row(&self, i: usize) -> Vec<f64> {
        let PackedWeightFormat { element, group, zero, .. } = self.spec.weight;
        let bits = element.bits() as usize;
        let group = group.unwrap_or(self.k);
        let per_row = self.k.div_ceil(group);
        let rows = self.scales.1.len() / per_row;
        let codes = &self.codes[i * (self.codes.len() / rows)..];
        let middle = f64::from(1u32 << (bits - 1));
        let number_at = |l: usize| {
            let of_group = i * per_row + l / group;
            let (code, scale) = (decode_element(element, bit_field(codes, l, bits)), self.scales.1[of_group]);
            let zero_at = || self.zeros.as_ref().map_or(0.0, |(_, zeros)| zeros[of_group]);
            let scaled = match zero {
                ZeroPoint::None => code * scale,
                ZeroPoint::Integer(_) => (code - zero_at()) * scale,
                ZeroPoint::Float(_) => (code - middle) * scale + zero_at(),
            };
            scaled * self.outer.map_or(1.0, f64::from)
        };
        (0..self.k).map(number_at).collect()
    }

    fn upload(&self, device: &CudaDevice) -> PackedWeight {
        let upload = |bytes: &Vec<u8>| device.upload(bytes).unwrap();
        PackedWeight {
            codes: upload(&self.codes),
            scales: upload(&self.scales.0),
            zeros: self.zeros.as_ref().map(|(bytes, _)| upload(bytes)),
            tensor_scale: self.outer.map(|scale| device.upload(&scale.to_le_bytes()).unwrap()),
        }
    }
}

/// Rounds to the nearest value of a small float type, ties to even.
fn round_to_element(element: Element, x: f64) -> f64 {
    let codes = match element {
        Element::E4m3 => 0..0x7f,
        _ => 0..1 << (element.bits() - 1),
    };
    let distance = |code: &u32| (decode_element(element, *code) - x.abs()).abs();
    let better = |best: u32, code: u32| {
        let (one, other) = (distance(&best), distance(&code));
        if other < one || (other == one && code.is_multiple_of(2)) { code } else { best }
    };
    decode_element(element, codes.reduce(better).unwrap()).copysign(x)
}

/// Fake-quantizes an input row by row.
fn fake_quantized(input: InputFormat, x: &[f64], k: usize) -> Vec<f64> {
    let largest = |some: &[f64]| some.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    // 0 / 0 counts as 0.
    let over = |x: f32, by: f32| if (x / by).is_nan() { 0.0 } else { x / by };
    match input {
        InputFormat::Mx(element) => {
            let most = if element == Element::E4m3 { 448.0 } else { 6.0 };
            let of_block = |block: &[f64]| -> Vec<f64> {
                let scale = match largest(block) {
                    0.0 => 2f64.powi(-127),
                    largest => 2f64.powi((f64::from(largest as f32 / most).log2().ceil() as i32).max(-127)),
                };
                // With the smallest scale, elements are not divided.
                let divisor = if scale == 2f64.powi(-127) { 1.0 } else { scale };
                block.iter().map(|x| round_to_element(element, x / divisor) * scale).collect()
            };
            x.chunks(k).flat_map(|row| row.chunks(32).flat_map(of_block).collect::<Vec<_>>()).collect()
        }
        InputFormat::Nvfp4 => {
            let of_all = largest(x) as f32 / 2688.0;
            let of_block = |block: &[f64]| -> Vec<f64> {
                let wanted = over(largest(block) as f32 / 6.0, of_all).max(1.0 / 64.0);
                let scale = round_to_element(Element::E4m3, f64::from(wanted)) as f32;
                let round = |x: &f64| round_to_element(Element::E2m1, f64::from(over(*x as f32, of_all * scale)));
                block.iter().map(|x| round(x) * f64::from(scale) * f64::from(of_all)).collect()
            };
            x.chunks(k).flat_map(|row| row.chunks(16).flat_map(of_block).collect::<Vec<_>>()).collect()
        }
        _ => x.to_vec(),
    }
}

/// Basic formats: int8, e4m3 and int4.
fn basic_specs(kind: Dtype) -> Vec<PackedLinearSpec> {
    let int4 = |group| PackedWeightFormat::int4(group, kind);
    let codes = [
        PackedWeightFormat::int8(kind),
        PackedWeightFormat::e4m3(),
        int4(32),
        int4(64),
        int4(128),
        PackedWeightFormat::int4(256, Dtype::Bf16),
    ];
    codes.map(|codes| PackedLinearSpec::weight_only(kind, codes)).to_vec()
}

/// Low-bit formats with integer and floating-point zero points, and fp6.
fn low_bit_specs(kind: Dtype) -> Vec<PackedLinearSpec> {
    let float = Element::Float(kind);
    let group = |number, group, zero| PackedWeightFormat { element: number, group: Some(group), scale: float, zero };
    let steps = |bits, size| group(Element::Unsigned(bits), size, ZeroPoint::Integer(Element::Unsigned(bits)));
    let mut codes: Vec<_> = (1..=8).map(|bits| steps(bits, 64)).collect();
    codes.extend((1..=8).map(|bits| group(Element::Unsigned(bits), 32, ZeroPoint::Float(float))));
    // Groups that end within a vector access.
    codes.extend([steps(8, 20), steps(8, 4), steps(4, 8), steps(4, 40), steps(6, 16), steps(2, 48), steps(5, 96)]);
    codes.extend([64, 16].map(|size| group(Element::Unsigned(4), size, ZeroPoint::Integer(float))));
    codes.push(PackedWeightFormat { element: Element::E3m2, ..PackedWeightFormat::int8(kind) });
    codes.push(group(Element::Signed(4), 128, ZeroPoint::None));
    codes.into_iter().map(|codes| PackedLinearSpec::weight_only(kind, codes)).collect()
}

/// Formats with a fake-quantized input.
fn mx_specs(kind: Dtype) -> Vec<PackedLinearSpec> {
    let mx = |number| PackedLinearSpec { kind, weight: PackedWeightFormat::mx(number), input: InputFormat::Mx(number) };
    let nvfp4 = PackedLinearSpec { kind, weight: PackedWeightFormat::nvfp4(), input: InputFormat::Nvfp4 };
    vec![mx(Element::E4m3), mx(Element::E2m1), nvfp4]
}

#[test]
#[ignore = "needs CUDA"]
fn packed_gemm_matches_at_ragged_sizes() {
    let (device, _guard) = gpu();
    // One row and few, with and without split-K; several tiles of x; dequantized for cuBLASLt, and rejected by it.
    let ragged =
        [(1, 4096, 257), (3, 17, 127), (8, 129, 1000), (17, 1000, 129), (64, 127, 3), (127, 129, 17), (1, 1, 1)];
    // Tiled kernel, for formats that support it: with and without split-K, all tile widths, and partial tiles.
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
        for (at, spec) in basic_specs(kind).into_iter().enumerate() {
            for (turn, (m, k, n)) in ragged.into_iter().chain(shared).enumerate() {
                // Every size with the common bf16 formats, a quarter of the sizes with the others, because each case
                // compiles a kernel.
                if kind == Dtype::Bf16 && [0, 1, 4].contains(&at) || (at + turn) % 4 == 0 {
                    check(&device, spec, LinearShape { m, k, n }, turn % 2 == 1);
                }
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn low_bit_gemm_matches_at_ragged_sizes() {
    let (device, _guard) = gpu();
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
        for (at, spec) in low_bit_specs(kind).into_iter().enumerate() {
            for (turn, (m, k, n)) in shapes.into_iter().enumerate() {
                // Two sizes per bf16 format, one per other format, because each case compiles a kernel.
                if (at + turn) % if kind == Dtype::Bf16 { 5 } else { 10 } == 0 {
                    check(&device, spec, LinearShape { m, k, n }, turn % 2 == 1);
                }
            }
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn microscaling_gemm_matches_at_ragged_sizes() {
    let (device, _guard) = gpu();
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
        for spec in mx_specs(kind) {
            for (turn, (m, k, n)) in shapes.into_iter().enumerate() {
                check(&device, spec, LinearShape { m, k, n }, turn % 2 == 1);
            }
        }
    }
}

/// Streamed kernel, for formats that support it: every number of warps, one and two resident blocks, tiles that do not
/// divide evenly among blocks, one and several parts per tile, and odd numbers of rows.
#[test]
#[ignore = "needs CUDA"]
fn streamed_int4_gemm_matches() {
    let (device, _guard) = gpu();
    let shapes = [(1, 512 * 4, 2112), (1, 512 * 5, 4336), (1, 512 * 6, 2128), (1, 512 * 7, 2112), (1, 28672, 2128)];
    for kind in [Dtype::F16, Dtype::Bf16] {
        for spec in basic_specs(kind).into_iter().chain(low_bit_specs(kind)) {
            if spec.weight.group == Some(128) {
                for (turn, (m, k, n)) in shapes.into_iter().enumerate() {
                    check_rows(&device, spec, LinearShape { m, k, n }, turn % 2 == 1, 31);
                }
            }
        }
        let spec = PackedLinearSpec::weight_only(kind, PackedWeightFormat::int4(128, kind));
        check_rows(&device, spec, LinearShape { m: 3, k: 8192, n: 8192 }, true, 31);
        check_rows(&device, spec, LinearShape { m: 8, k: 4096, n: 16400 }, false, 31);
    }
}

fn check(device: &Arc<CudaDevice>, spec: PackedLinearSpec, shape: LinearShape, with_added: bool) {
    check_rows(device, spec, shape, with_added, 1);
}

/// Checks every `every`th row of the weight.
fn check_rows(device: &Arc<CudaDevice>, spec: PackedLinearSpec, shape: LinearShape, with_added: bool, every: usize) {
    let (LinearShape { m, k, n }, kind) = (shape, spec.kind);
    let plan = if with_added { PackedLinearPlan::with_addend } else { PackedLinearPlan::new };
    let mut linear = plan(device, spec, shape).unwrap();
    println!("{spec:?} {shape}: {}", linear.algorithm());
    // Rows and column blocks of very different magnitude, and a zero row, so that block scales differ.
    let loud = |at: usize| match (spec.input, at / k % 7) {
        (InputFormat::Unquantized, _) => 1.0,
        (_, 6) => 0.0,
        (_, row) => 2f64.powi(row as i32 - at as i32 % k as i32 / 16 % 5),
    };
    let x: Vec<f64> = values(m * k, 1, kind).iter().enumerate().map(|(at, x)| x * loud(at)).collect();
    let weight = Weight::new(spec, n, k);
    let bytes = encode(&x, kind);
    let device_x = device.upload(&bytes).unwrap();
    let x = fake_quantized(spec.input, &decode(&bytes, kind), k);
    let device_w = linear.prepack(weight.upload(device)).unwrap();
    let added = values(m * n, 3, kind);
    let device_added = device.upload(&encode(&added, kind)).unwrap();
    let mut launch = || {
        let mut y = poisoned(device, linear.y_bytes());
        let added = with_added.then_some(&device_added);
        linear.enqueue(&device_x, &device_w, added, &mut y).unwrap();
        y.download().unwrap()
    };
    let bytes = launch();
    assert!(launch() == bytes, "{spec:?} {shape}: split-K is deterministic");
    let rows: Vec<Vec<f64>> = (0..n).step_by(every).map(|row| weight.row(row)).collect();
    for (at, found) in decode(&bytes, kind).into_iter().enumerate().filter(|(at, _)| (at % n).is_multiple_of(every)) {
        let (i, j) = (at / n, at % n);
        let terms = x[i * k..][..k].iter().zip(&rows[j / every]).map(|(x, w)| x * w);
        let (exact, squares) = terms.fold((0.0, 0.0), |(sum, squares), term| (sum + term, squares + term * term));
        let exact = if with_added { exact + added[at] } else { exact };
        // Operands may be rounded to the dtype of x before multiplication; errors of terms add in quadrature.
        let of_terms = 3.0 * epsilon(kind) + 16.0 * f64::from(f32::EPSILON) * (k as f64).sqrt();
        let tolerance = epsilon(kind) * exact.abs() + of_terms * squares.sqrt() + 1e-7;
        assert_close(found, exact, tolerance, || format!("{spec:?} {shape} at [{i}, {j}]"));
    }
}

#[test]
#[ignore = "needs CUDA"]
fn weight_prepacked_for_another_plan_is_rejected() {
    let (device, _guard) = gpu();
    let (kind, k, n) = (Dtype::Bf16, 256, 128);
    let spec = PackedLinearSpec::weight_only(kind, PackedWeightFormat::int8(kind));
    let [one, mut some] = [1, 32].map(|m| PackedLinearPlan::new(&device, spec, LinearShape { m, k, n }).unwrap());
    if one.algorithm().contains("tiled") == some.algorithm().contains("tiled") {
        return;
    }
    let weight = one.prepack(Weight::new(spec, n, k).upload(&device)).unwrap();
    let (x, mut y) = (poisoned(&device, some.x_bytes()), poisoned(&device, some.y_bytes()));
    assert_eq!(some.enqueue(&x, &weight, None, &mut y), Err(NativeError::PlanMismatch));
}

/// Prints times of GEMMs of one row and few with a large weight.
#[test]
#[ignore = "needs CUDA"]
fn times_of_products_with_large_packed_weights() {
    let (device, _guard) = gpu();
    const SETS: usize = 2;
    let (k, n, kind) = (8192, 28672, Dtype::Bf16);
    for spec in [0, 1, 4].map(|at| basic_specs(kind)[at]) {
        let weight = Weight::new(spec, n, k);
        for m in [1, 2, 4, 8] {
            let mut linear = PackedLinearPlan::new(&device, spec, LinearShape { m, k, n }).unwrap();
            let weights = [(); SETS].map(|()| linear.prepack(weight.upload(&device)).unwrap());
            let x = device.upload(&encode(&values(m * k, 1, kind), kind)).unwrap();
            let mut y = poisoned(&device, linear.y_bytes());
            let micros = micros(&device, SETS, |set| linear.enqueue(&x, &weights[set], None, &mut y).unwrap());
            let rate = weights[0].bytes() as f64 / micros / 1e3;
            println!("{:?} m={m}: {micros:.2} us, {rate:.0} GB/s: {}", spec.weight, linear.algorithm());
        }
    }
}

/// Prints GEMM times, for manual inspection, on both sides of the threshold for dequantization.
#[test]
#[ignore = "needs CUDA"]
fn times_of_products_with_packed_weights() {
    let (device, _guard) = gpu();
    const SETS: usize = 9;
    let (k, n, kind) = (4096, 4096, Dtype::Bf16);
    for spec in [0, 1, 4].map(|at| basic_specs(kind)[at]) {
        let weight = Weight::new(spec, n, k);
        for m in [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096] {
            let mut linear = PackedLinearPlan::new(&device, spec, LinearShape { m, k, n }).unwrap();
            let weights: Vec<PrepackedWeight> =
                (0..SETS).map(|_| linear.prepack(weight.upload(&device)).unwrap()).collect();
            let x = device.upload(&encode(&values(m * k, 1, kind), kind)).unwrap();
            let mut y = poisoned(&device, linear.y_bytes());
            let micros = micros(&device, SETS, |set| linear.enqueue(&x, &weights[set], None, &mut y).unwrap());
            let rate = weights[0].bytes() as f64 / micros / 1e3;
            println!("{:?} m={m}: {micros:.2} us, {rate:.0} GB/s: {}", spec.weight, linear.algorithm());
        }
    }
}

/// Prints GEMM times of low-bit and microscaling formats, whether the tiled kernel was used, and three basic formats
/// for comparison.
#[test]
#[ignore = "needs CUDA"]
fn times_of_low_bit_and_microscaling_gemms() {
    let (device, _guard) = gpu();
    const SETS: usize = 9;
    let (k, n, kind) = (4096, 4096, Dtype::Bf16);
    let usual = |spec: &PackedLinearSpec| spec.weight.group.is_none_or(|group| group >= 64);
    for spec in mx_specs(kind)
        .into_iter()
        .chain(low_bit_specs(kind).into_iter().filter(usual))
        .chain([0, 1, 4].map(|at| basic_specs(kind)[at]))
    {
        let weight = Weight::new(spec, n, k);
        let times: Vec<String> = [1, 16, 32, 64, 128, 512, 1024]
            .into_iter()
            .map(|m| {
                let mut linear = PackedLinearPlan::new(&device, spec, LinearShape { m, k, n }).unwrap();
                let weights: Vec<PrepackedWeight> =
                    (0..SETS).map(|_| linear.prepack(weight.upload(&device)).unwrap()).collect();
                let x = device.upload(&encode(&values(m * k, 1, kind), kind)).unwrap();
                let mut y = poisoned(&device, linear.y_bytes());
                let micros = micros(&device, SETS, |set| linear.enqueue(&x, &weights[set], None, &mut y).unwrap());
                let algorithm = linear.algorithm();
                let tiled = if algorithm.contains("tiled") { " (tiled)" } else { "" };
                format!("m={m}: {micros:.2} us{tiled}")
            })
            .collect();
        println!("{:?}: {}", spec.weight, times.join(", "));
    }
}
