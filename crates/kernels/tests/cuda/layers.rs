//! Random layers in the formats of recipes, and their reference in 64-bit arithmetic.

use std::sync::Arc;

use calorimeter_kernels::{
    Activation, Dtype, Element, Format, LayerSpec, MatmulMode, PackedTensor, PrecisionHint, Prologue, Sparsity,
    format::{Grouping, QuantMethod, ZeroPoint},
    native::{CudaDevice, DeviceBuffer, LayerPlan, LinearShape, PrepackedWeight},
    rowwise,
};

use super::{decode, encode, epsilon, micros, poisoned, round, values};

/// int8 weight and int8 input from -127 to 127.
pub(crate) fn int8_layer(dtype: Dtype) -> LayerSpec {
    let scale = if dtype == Dtype::F16 { Dtype::F32 } else { dtype };
    let (weight, input) = (Format::symmetric(8, Grouping::Row, dtype, dtype), int8_input(dtype, scale));
    LayerSpec::dynamic(dtype, weight, input, MatmulMode::QuantizedValues(scale))
}

/// int8 input from -127 to 127.
pub(crate) fn int8_input(dtype: Dtype, scale: Dtype) -> Format {
    let method = QuantMethod::Symmetric { min: -127, max: 127, epsilon: 1e-5 };
    Format::symmetric(8, Grouping::Row, dtype, scale).with_method(method)
}

/// e4m3 weight and input.
pub(crate) fn float8_layer(dtype: Dtype, grouping: Grouping) -> LayerSpec {
    let format = Format::float8(Element::E4m3, grouping, dtype);
    LayerSpec::dynamic(dtype, format, format, MatmulMode::QuantizedValues(Dtype::F32))
}

/// Layers of 8-bit values of a dtype.
pub(crate) fn byte_layers(dtype: Dtype) -> impl Iterator<Item = LayerSpec> {
    // The accumulators of e4m3 are too inaccurate for f32.
    let groupings: &[Grouping] = if dtype == Dtype::F32 { &[] } else { &[Grouping::Row, Grouping::Tensor] };
    [int8_layer(dtype)].into_iter().chain(groupings.iter().map(move |&grouping| float8_layer(dtype, grouping)))
}

/// Stored weight with one level of scales and without zero points.
pub(crate) fn stored<W>(format: Format, [rows, cols]: [usize; 2], codes: W, scales: Option<W>) -> PackedTensor<W> {
    PackedTensor { format, rows, cols, codes, scales, zeros: None, outer_scales: None, positions: None }
}

/// Random weight on the host: stored parts, and the values of scales and zero points.
pub(crate) struct HostWeight {
    pub stored: PackedTensor<Vec<u8>>,
    spec: LayerSpec,
    scales: Vec<f64>,
    zeros: Vec<f64>,
    outer_scales: Vec<f64>,
}

impl HostWeight {
    /// Random weight with some rows of zero bytes. Padding is zero only if a quantized input is multiplied.
    pub(crate) fn new(spec: &LayerSpec, [n, k]: [usize; 2]) -> Self {
        let sparse_2to4 = spec.sparsity == Some(Sparsity::SemiStructured);
        let format = Format { sparse_2to4, ..spec.weight.unwrap_or(Format::unquantized(spec.dtype)) };
        let bits = format.bits() as usize;
        let row_bytes = match (spec.weight, spec.sparsity) {
            (None, None) | (_, Some(Sparsity::Block { .. })) => retained_values(spec, k) * bits / 8,
            _ => 4 * format.words_per_row(k),
        };
        let mut codes = match format.element {
            Element::Float(dtype) => encode(&values(n * row_bytes / dtype.width(), 11, dtype), dtype),
            _ => random_bytes(n * row_bytes, 11),
        };
        if format.element == Element::E4m3 {
            codes.iter_mut().filter(|code| **code & 0x7f == 0x7f).for_each(|code| *code ^= 1);
        }
        for (i, row) in codes.chunks_mut(row_bytes).enumerate() {
            // Kernels that dequantize int4 with an offset cancel the offset in f32, so a row of zeros is not exactly zero.
            let is_zero = i % 5 == 3 && (spec.sparsity.is_some() || spec.input.is_some());
            let used_bits = if is_zero { 0 } else { bits * k };
            if is_zero || spec.sparsity.is_none() && spec.matmul != MatmulMode::Values {
                let (whole, rest) = (used_bits / 8, used_bits % 8);
                row[whole..].iter_mut().enumerate().for_each(|(at, byte)| match at {
                    0 => *byte &= (1 << rest) - 1,
                    _ => *byte = 0,
                });
            }
        }
        let count = format.scale_count(n, k);
        let scales = match format.method {
            // From 0 to beyond the range of int8: 18.25 times 7 rounds to 128.
            QuantMethod::Qqq => {
                let scale = |(at, x): (usize, f64)| if at % 7 == 2 { 18.25 } else { 9.0 * (x + 1.0) };
                rounded(values(count, 13, spec.dtype).into_iter().enumerate().map(scale), spec.dtype)
            }
            _ => random_scales(format.scale, count, 12, 1.5),
        };
        let zeros = match format.zero {
            ZeroPoint::None => None,
            // Anywhere in the range of the quantized values.
            ZeroPoint::BeforeScale(Element::Float(dtype)) => {
                let middle = f64::from(format.midpoint());
                Some(rounded(values(count, 13, dtype).into_iter().map(|x| middle * (x + 1.0)), dtype))
            }
            ZeroPoint::BeforeScale(element) | ZeroPoint::AfterScale(element) => {
                Some(random_scales(element, count, 13, 0.0))
            }
        };
        let outer_scales = match format.method {
            QuantMethod::Nvfp4 => Some(rounded([0.0037], Dtype::F32)),
            QuantMethod::Qqq => Some(random_scales(Element::Float(Dtype::F32), n, 12, 1.5)),
            _ => None,
        };
        let positions = spec.sparsity.map(|sparsity| encode_positions(sparsity, [n, k]));
        let stored = PackedTensor {
            zeros: zeros.as_ref().map(|(bytes, _)| bytes.clone()),
            outer_scales: outer_scales.as_ref().map(|(bytes, _)| bytes.clone()),
            positions,
            ..stored(format, [n, k], codes, (count > 0).then_some(scales.0))
        };
        let numbers = |part: Option<(Vec<u8>, Vec<f64>)>| part.map_or(Vec::new(), |(_, numbers)| numbers);
        let (zeros, outer_scales) = (numbers(zeros), numbers(outer_scales));
        Self { stored, spec: *spec, scales: scales.1, zeros, outer_scales }
    }

    /// Dequantizes a row.
    pub(crate) fn row(&self, i: usize) -> Vec<f64> {
        let PackedTensor { format, rows, cols: k, ref codes, .. } = self.stored;
        let row_bytes = codes.len() / rows;
        let codes = &codes[i * row_bytes..][..row_bytes];
        let quantized: Vec<f64> = match format.element {
            Element::Float(dtype) => decode(codes, dtype),
            element => decode_elements(element, codes, 8 * row_bytes / format.bits() as usize),
        };
        let (group_size, groups) = (format.group_size(k), format.scale_count(1, k));
        // Value at an index of the stored row, whose column is l.
        let value = |index: usize, l: usize| {
            let code = quantized[index];
            if format.method == QuantMethod::Unquantized {
                return code;
            }
            let group = if format.grouping == Grouping::Tensor { 0 } else { i * groups + l / group_size };
            let scale = self.scales[group];
            let scaled = match format.zero {
                ZeroPoint::None => code * scale,
                ZeroPoint::BeforeScale(_) => (code - self.zeros[group]) * scale,
                ZeroPoint::AfterScale(_) => (code - f64::from(format.midpoint())) * scale + self.zeros[group],
            };
            match format.method {
                QuantMethod::Qqq => scaled.round_ties_even().clamp(-128.0, 127.0) * self.outer_scales[i],
                QuantMethod::Nvfp4 => scaled * self.outer_scales[0],
                _ => scaled,
            }
        };
        let mut row = vec![0.0; k];
        match self.spec.sparsity {
            None => (0..k).for_each(|l| row[l] = value(l, l)),
            Some(Sparsity::SemiStructured) => (0..k / 2).for_each(|index| {
                let l = index / 2 * 4 + retained_pair(i, index / 2)[index % 2];
                // int4 values are rounded to the dtype of x for the matmul.
                let is_float = self.spec.input.is_none();
                row[l] = if is_float { round(value(index, l), self.spec.dtype) } else { value(index, l) };
            }),
            Some(sparsity @ Sparsity::Block { block_size, .. }) => {
                let block_size = usize::from(block_size);
                for (b, column) in retained_columns(sparsity, i / block_size, k).into_iter().enumerate() {
                    let first = column * block_size;
                    row[first..][..block_size].copy_from_slice(&quantized[b * block_size..][..block_size]);
                }
            }
        }
        row
    }

    /// Copies the weight to the device, padded with zero rows, in the layout of a plan.
    pub(crate) fn prepack(&self, device: &CudaDevice, plan: &LayerPlan) -> PrepackedWeight {
        let mut weight = self.stored.clone();
        let row_bytes = weight.codes.len() / weight.rows;
        weight.codes.resize(plan.padded_n(weight.rows) * row_bytes, 0);
        plan.prepack(upload(device, weight)).unwrap()
    }
}

/// Copies a weight to the device as stored.
pub(crate) fn upload(device: &CudaDevice, weight: PackedTensor<Vec<u8>>) -> PackedTensor<DeviceBuffer> {
    weight.map(|part| device.upload(&part).unwrap())
}

/// Values of a row of `k` that are stored in a block-sparse weight; `k` without block sparsity.
fn retained_values(spec: &LayerSpec, k: usize) -> usize {
    match spec.sparsity {
        Some(blocks @ Sparsity::Block { block_size, .. }) => {
            blocks.retained_blocks_per_row(k).unwrap() * usize::from(block_size)
        }
        _ => k,
    }
}

/// Columns of the nonzero blocks of a block row.
fn retained_columns(sparsity: Sparsity, row: usize, k: usize) -> Vec<usize> {
    let Sparsity::Block { block_size, .. } = sparsity else { panic!("{sparsity} has no blocks") };
    let (retained, blocks) = (sparsity.retained_blocks_per_row(k).unwrap(), k / usize::from(block_size));
    let mut columns: Vec<usize> = (0..retained).map(|at| (at * blocks / retained + row) % blocks).collect();
    columns.sort_unstable();
    columns
}

/// Positions of the two nonzero values of four consecutive values of a row.
fn retained_pair(i: usize, four: usize) -> [usize; 2] {
    const PAIRS: [[usize; 2]; 6] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
    PAIRS[(i * 7 + four * 5 + (i * four) % 11) % 6]
}

/// 2:4 metadata, or column indices of nonzero blocks.
fn encode_positions(sparsity: Sparsity, [n, k]: [usize; 2]) -> Vec<u8> {
    let words: Vec<u32> = match sparsity {
        Sparsity::SemiStructured => {
            let pair = |i, four| retained_pair(i, four).map(|place| place as u32);
            let word = |i, first: usize| {
                let fours = (first..k / 4).take(8).enumerate();
                fours.fold(0, |word, (at, four)| word | (pair(i, four)[0] | pair(i, four)[1] << 2) << (4 * at))
            };
            (0..n).flat_map(|i| (0..k.div_ceil(32)).map(move |at| word(i, 8 * at))).collect()
        }
        Sparsity::Block { block_size, .. } => {
            let block_rows = 0..n / usize::from(block_size);
            block_rows.flat_map(|row| retained_columns(sparsity, row, k)).map(|column| column as u32).collect()
        }
    };
    words.into_iter().flat_map(u32::to_le_bytes).collect()
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

/// Decodes `count` densely packed values.
fn decode_elements(element: Element, bytes: &[u8], count: usize) -> Vec<f64> {
    let bits = element.bits() as usize;
    let bit = |at: usize| u32::from(bytes[at / 8] >> (at % 8) & 1);
    let code = |index: usize| (0..bits).fold(0, |code, at| code | bit(index * bits + at) << at);
    (0..count).map(|index| decode_element(element, code(index))).collect()
}

/// Random bytes from the generator of [`values`].
fn random_bytes(count: usize, mut seed: u64) -> Vec<u8> {
    let mut next = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((seed >> 32) as u32).to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..count.div_ceil(4)).flat_map(|_| next()).collect();
    bytes.truncate(count);
    bytes
}

/// Encodes values; returns the bytes and the rounded values.
fn rounded(values: impl IntoIterator<Item = f64>, dtype: Dtype) -> (Vec<u8>, Vec<f64>) {
    let bytes = encode(&values.into_iter().collect::<Vec<_>>(), dtype);
    let values = decode(&bytes, dtype);
    (bytes, values)
}

/// Random scales or zero points of an element type, as bytes and as values around `middle` hundredths.
fn random_scales(element: Element, count: usize, seed: u64, middle: f64) -> (Vec<u8>, Vec<f64>) {
    if let Element::Float(dtype) = element {
        return rounded(values(count, seed, dtype).into_iter().map(|x| 0.01 * (x + middle)), dtype);
    }
    let mut bytes = random_bytes(4 * element.words_for(count), seed);
    for byte in &mut bytes {
        match element {
            // Powers of two near 1/100.
            Element::E8m0 => *byte = 117 + *byte % 8,
            // Scales are normal and positive.
            Element::E4m3 => *byte = 8 + *byte % 112,
            _ => {}
        }
    }
    let values = decode_elements(element, &bytes, count);
    (bytes, values)
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

/// Fake-quantizes rows of `k` values.
pub(crate) fn fake_quantized(format: Format, x: &[f64], k: usize) -> Vec<f64> {
    let dtype = format.compute_dtype;
    let rounded = |x: f32| round(f64::from(x), dtype) as f32;
    let amax = |some: &[f64]| some.iter().fold(0.0f32, |most, &x| most.max(x.abs() as f32));
    // 0 / 0 counts as 0.
    let over = |x: f32, by: f32| if (x / by).is_nan() { 0.0 } else { x / by };
    let of_all = amax(x);
    let group = |group: &[f64]| -> Vec<f64> {
        let largest = if format.grouping == Grouping::Tensor { of_all } else { amax(group) };
        let quantize =
            |scale: f64, round: &dyn Fn(f32) -> f64| group.iter().map(|&x| round(x as f32) * scale).collect();
        match format.method {
            QuantMethod::Symmetric { min, max, epsilon } => {
                // With scales in f32, inverse and product stay in f32.
                let step = |x: f32| if format.scale == Element::Float(Dtype::F32) { x } else { rounded(x) };
                let half = f32::from(max - min) / 2.0;
                let scale = rounded(largest / half).max(rounded(epsilon));
                let code = |x| step(x * step(1.0 / scale)).round_ties_even().clamp(min.into(), max.into());
                quantize(scale.into(), &|x| code(x).into())
            }
            QuantMethod::Floats { .. } => {
                let scale = rounded(largest / 448.0);
                let code = |x| rowwise::to_e4m3(over(x, scale));
                quantize(scale.into(), &|x| rowwise::e4m3_to_f32(code(x)).into())
            }
            QuantMethod::Mx(_) => {
                let max = if format.element == Element::E4m3 { 448.0 } else { 6.0 };
                let scale = match largest {
                    0.0 => 2f64.powi(-127),
                    largest => 2f64.powi((f64::from(largest / max).log2().ceil() as i32).max(-127)),
                };
                // With the smallest scale, elements are not divided.
                let divisor = if scale == 2f64.powi(-127) { 1.0 } else { scale };
                quantize(scale, &|x| round_to_element(format.element, f64::from(x) / divisor))
            }
            QuantMethod::Nvfp4 => {
                let outer = of_all / 2688.0;
                let wanted = over(largest / 6.0, outer).max(1.0 / 64.0);
                let scale = round_to_element(Element::E4m3, wanted.into()) as f32;
                let code = |x| round_to_element(Element::E2m1, over(x, outer * scale).into());
                quantize(f64::from(scale) * f64::from(outer), &code)
            }
            other => panic!("{other:?} is not tested here"),
        }
    };
    x.chunks(k).flat_map(|row| row.chunks(format.group_size(k)).flat_map(group)).collect()
}

/// Applies a prologue to a row in double precision, rounded like the kernels.
fn apply_prologue(x: &[f64], prologue: Prologue, dtype: Dtype) -> Vec<f64> {
    let count = x.len() as f64;
    let around = |mean: f64| {
        let square = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        x.iter().map(|x| round((x - mean) / (square + 1e-5).sqrt(), dtype)).collect()
    };
    match prologue {
        Prologue::None => x.to_vec(),
        Prologue::LayerNorm => around(x.iter().sum::<f64>() / count),
        Prologue::RmsNorm => around(0.0),
        Prologue::Activation(function) => x.iter().map(|&x| round(activate(x, Some(function)), dtype)).collect(),
        Prologue::ShortAttention { .. } => panic!("{prologue:?} is not tested here"),
    }
}

/// Applies an activation in double precision.
pub(crate) fn activate(x: f64, activation: Option<Activation>) -> f64 {
    activation.map_or(x, |function| super::reference(function, x))
}

/// Checks a layer against 64-bit arithmetic on the dequantized operands: all elements of a small output, and a sample
/// of a large one.
pub(crate) fn check(device: &Arc<CudaDevice>, spec: &LayerSpec, shape: LinearShape) {
    let (LinearShape { m, k, n }, dtype) = (shape, spec.dtype);
    let mut plan = LayerPlan::new(device, spec, shape).unwrap();
    let place = format!("{spec:?} {shape}: {}", plan.algorithm());
    println!("{place}");
    // Rows of zeros, of small and of large values. Blocks that share a scale differ in magnitude, too.
    let has_blocks = spec.input.is_some_and(|input| matches!(input.grouping, Grouping::Block(_)));
    let gain = |at: usize| match (has_blocks, at / k % 7) {
        (false, _) => [1.0, 50.0, 0.0, 0.01][at / k % 4],
        (true, 6) => 0.0,
        (true, row) => 2f64.powi(row as i32 - (at % k / 16 % 5) as i32),
    };
    let (x_bytes, x) = rounded(values(m * k, 1, dtype).iter().enumerate().map(|(at, x)| x * gain(at)), dtype);
    let (addend_bytes, addend) = rounded(values(m * n, 21, dtype), dtype);
    let weight = HostWeight::new(spec, [n, k]);
    let [device_x, device_addend] = [x_bytes, addend_bytes].map(|bytes| device.upload(&bytes).unwrap());
    let device_w = weight.prepack(device, &plan);
    let mut launch = || {
        let mut y = poisoned(device, plan.y_bytes());
        plan.enqueue(&device_x, &device_w, spec.has_addend.then_some(&device_addend), &mut y).unwrap();
        y.download().unwrap()
    };
    let bytes = launch();
    assert!(launch() == bytes, "{place}: repeated launches are identical");

    let operand: Vec<f64> = x.chunks(k).flat_map(|row| apply_prologue(row, spec.prologue, dtype)).collect();
    let operand = spec.input.map_or(operand.clone(), |input| fake_quantized(input, &operand, k));
    let every = ((n * k) >> 25) | 1;
    let rows: Vec<Vec<f64>> = (0..n).step_by(every).map(|j| weight.row(j)).collect();
    let (mut total_error, mut total) = (0f64, 0f64);
    // The sample is shifted from row to row, so that it covers all columns.
    let step = ((m * n * k) >> 28).max(1);
    let is_sampled = |at: usize| (at / n + at % n).is_multiple_of(step) && (at % n).is_multiple_of(every);
    for (at, found) in decode(&bytes, dtype).into_iter().enumerate().filter(|(at, _)| is_sampled(*at)) {
        let (i, j) = (at / n, at % n);
        let terms = operand[i * k..][..k].iter().zip(&rows[j / every]).map(|(x, w)| x * w);
        let (sum, squares) = terms.fold((0.0, 0.0), |(sum, squares), term| (sum + term, squares + term * term));
        let exact = activate(sum, spec.activation) + if spec.has_addend { addend[at] } else { 0.0 };
        // Error of GELU, which remains if the addend dominates.
        let of_activation = match spec.activation {
            None if matches!(spec.sparsity, Some(Sparsity::Block { .. })) => 0.0,
            None | Some(Activation::Relu) => 1e-7,
            Some(_) => 1e-6,
        };
        let tolerance = epsilon(dtype) * exact.abs() + sum_tolerance(spec, k, sum, squares.sqrt()) + of_activation;
        let error = (found - exact).abs();
        (total_error, total) = (total_error + error * error, total + exact * exact);
        // A prologue in f32 may round to another quantized value; then only the total error is checked.
        assert!(
            spec.prologue != Prologue::None || error <= tolerance,
            "{place} at [{i}, {j}]: {found:e} instead of {exact:e}, tolerance {tolerance:e}"
        );
        assert!(found.is_finite(), "{place} at [{i}, {j}]: {found}");
    }
    let total_error = (total_error / total.max(1e-30)).sqrt();
    let is_integer = spec.input.is_some_and(|input| input.element == Element::Signed(8));
    let step = if is_integer { 0.03 } else { 0.125 };
    let tolerance = (epsilon(dtype) * step).sqrt() + 2.0 * epsilon(dtype) + step / (k as f64).sqrt();
    assert!(total_error <= tolerance, "{place}: {total_error:e}");
}

/// Tolerance of a sum with terms of the given Euclidean norm.
fn sum_tolerance(spec: &LayerSpec, k: usize, sum: f64, norm: f64) -> f64 {
    let float = f64::from(f32::EPSILON);
    if spec.matmul == MatmulMode::Values {
        // Tensor cores truncate partial sums instead of rounding.
        let of_sums = 16.0 * float * (retained_values(spec, k) as f64).sqrt() * norm;
        // Dequantized weights may be rounded to the dtype of x; errors of terms add in quadrature.
        let is_dequantized = spec.weight.is_some() && spec.sparsity.is_none();
        return of_sums + if is_dequantized { 3.0 * epsilon(spec.dtype) * norm } else { 0.0 };
    }
    if spec.weight.is_some_and(|weight| matches!(weight.element, Element::Signed(_))) {
        // Integer accumulators are exact.
        return 4.0 * float * sum.abs();
    }
    // Each step of 32 along k truncates every product below 13 bits of the largest term or of the partial sum, always
    // toward the same side: by half a unit each, 16 units per step.
    let steps = (k as f64 / 32.0).max(1.0);
    // Without promotion the errors of all steps have the same sign.
    let is_fast = spec.precision_hint == Some(PrecisionHint::FastAccumulation);
    16.0 * if is_fast { steps } else { steps.sqrt() } * 2f64.powi(-13) * norm.max(sum.abs())
}

/// Prints times of a layer for several numbers of rows, with `sets` rotating weights, which should exceed the L2 cache.
pub(crate) fn print_times(device: &Arc<CudaDevice>, spec: &LayerSpec, [n, k]: [usize; 2], sets: usize, rows: &[usize]) {
    let weight = HostWeight::new(spec, [n, k]);
    let format = spec.weight.map(|weight| (weight.element, weight.grouping));
    for &m in rows {
        let shape = LinearShape { m, k, n };
        let mut plan = LayerPlan::new(device, spec, shape).unwrap();
        let weights: Vec<_> = (0..sets).map(|_| weight.prepack(device, &plan)).collect();
        let x = device.upload(&encode(&values(m * k, 1, spec.dtype), spec.dtype)).unwrap();
        let mut y = poisoned(device, plan.y_bytes());
        let micros = micros(device, sets, |set| plan.enqueue(&x, &weights[set], None, &mut y).unwrap());
        let rate = weights[0].bytes() as f64 / micros / 1e3;
        println!("{format:?} {:?} {shape}: {micros:.2} us, {rate:.0} GB/s: {}", spec.sparsity, plan.algorithm());
    }
}
