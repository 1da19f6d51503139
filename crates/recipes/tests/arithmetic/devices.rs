//! Devices quantize and dequantize bit for bit like the host.

use burn::tensor::{Tensor, TensorData};
use burn_flex::Flex;
use calorimeter_recipes::device::{DeviceTensor, QuantBackend};
use calorimeter_recipes::format::{Format, Grouping, HqqIterate, MxScaling, QuantMethod, ZeroPoint};
use calorimeter_recipes::packed_tensor::{TensorPart, read_rows};
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::{Dtype, Element, FloatType, PackedTensor, TrainingRecipe};

const ROWS: usize = 6;

/// Named weights, both valid and degenerate.
fn inputs(cols: usize, dtype: Dtype) -> Vec<(&'static str, Vec<f32>)> {
    let count = ROWS * cols;
    let noise = |i: usize| {
        let bits = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((bits >> 40) as f32 / (1u32 << 24) as f32 - 0.5) * 4.0 + ((bits >> 20 & 0xFFF) as f32 / 4096.0 - 0.5)
    };
    let all = |value: fn(usize) -> f32| (0..count).map(value).collect::<Vec<_>>();
    let mut with_nan: Vec<f32> = (0..count).map(noise).collect();
    with_nan[cols + 3] = f32::NAN;
    with_nan[3 * cols + 1] = f32::NEG_INFINITY;
    vec![
        ("random", (0..count).map(noise).collect()),
        ("wide", (0..count).map(|i| noise(i) * f32::powi(10.0, (i % 23) as i32 - 11)).collect()),
        ("zero", all(|_| 0.0)),
        ("constant", all(|_| 0.3)),
        ("positive", (0..count).map(|i| noise(i).abs() + 1.0).collect()),
        ("subnormal", all(|i| f32::from_bits(((i as u32 * 7919) % 0x0080_0000) | ((i as u32 & 1) << 31)))),
        ("huge", (0..count).map(|i| noise(i) * 1e38).collect()),
        ("not finite", with_nan),
    ]
    .into_iter()
    .map(|(name, values)| (name, values.into_iter().map(|x: f32| dtype.round(x)).collect()))
    .collect()
}

fn formats(dtype: Dtype) -> Vec<Format> {
    use Grouping::{Block, Row, Tensor};
    let symmetric = |bits, grouping| Format::symmetric(bits, grouping, dtype, dtype);
    let unsigned = |bits| Format::asymmetric(Element::Unsigned(bits), Block(32), dtype);
    let tinygemm = Format {
        method: QuantMethod::Tinygemm { epsilon: 1e-6 },
        zero: ZeroPoint::AfterScale(Element::Float(dtype)),
        ..Format::asymmetric(Element::Unsigned(4), Block(64), dtype)
    };
    let hqq = |bits, iterate| Format {
        method: QuantMethod::Hqq(iterate),
        zero: ZeroPoint::AfterScale(Element::Float(dtype)),
        ..Format::asymmetric(Element::Unsigned(bits), Block(32), dtype)
    };
    let qqq =
        |group| Format { method: QuantMethod::Qqq, scale: Element::Float(Dtype::F16), ..symmetric(4, Block(group)) };
    let mut formats = vec![
        symmetric(8, Row),
        Format::symmetric(8, Row, dtype, Dtype::F32),
        symmetric(8, Row).with_method(QuantMethod::Symmetric { min: -127, max: 127, epsilon: 1e-5 }),
        symmetric(4, Block(128)),
        Format::asymmetric(Element::Signed(8), Row, dtype),
        Format::asymmetric(Element::Signed(4), Block(32), dtype),
        tinygemm,
        hqq(4, HqqIterate::Last),
        hqq(3, HqqIterate::Best),
        qqq(32),
        qqq(96),
        Format::float8(Element::E4m3, Row, dtype),
        Format::float8(Element::E4m3, Tensor, dtype),
        Format::float8(Element::E5m2, Row, dtype),
        Format { method: QuantMethod::Floats { epsilon: 1e-12 }, ..Format::float8(Element::E3m2, Row, dtype) },
        Format::nvfp4(),
        Format::ggml(8),
        Format::ggml(4),
    ];
    formats.extend([1, 2, 3, 5, 6, 7, 8].map(unsigned));
    for element in [Element::E4m3, Element::E2m1] {
        formats.extend([MxScaling::Floor, MxScaling::Ceil].map(|scaling| Format::mx(element, scaling)));
    }
    let training = TrainingRecipe::ALL.map(TrainingRecipe::training);
    let products = training.iter().flat_map(|training| [training.output, training.grad_input]).flatten();
    formats.extend(products.flat_map(|operands| [operands.left, operands.right]).flatten());
    formats
}

/// Replaces every NaN by a single bit pattern.
fn comparable(words: &[u32]) -> Vec<u32> {
    words.iter().map(|&w| if f32::from_bits(w).is_nan() { f32::NAN.to_bits() } else { w }).collect()
}

pub(crate) fn check<B: QuantBackend>(device: &B::Device, dtypes: &[Dtype]) {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for &dtype in dtypes {
        for format in formats(dtype) {
            for cols in [96, 100] {
                for (name, values) in inputs(cols, dtype) {
                    let what = format!("{name} {dtype} {cols} {format:?}");
                    let expected = quantize(&values, cols, format).with_f32_scales().to_packed();
                    let data = TensorData::new(values.clone(), [ROWS, cols]);
                    let tensor = Tensor::<B, 2>::from_data(data, (device, dtype.burn()));
                    let got: PackedTensor<Vec<u32>> = DeviceTensor::quantize(tensor, format).download();
                    let (scales, expected_scales) = (got.scales.unwrap(), expected.scales.unwrap());
                    let same = got.codes == expected.codes
                        && comparable(&scales[..expected_scales.len()]) == comparable(&expected_scales)
                        && got.zeros.as_ref().map(|z| &z[..expected_scales.len()]) == expected.zeros.as_deref()
                        && got.outer_scales.as_deref().map(comparable)
                            == expected.outer_scales.as_deref().map(comparable);
                    if !same {
                        let codes = got.codes.iter().zip(&expected.codes).filter(|(a, b)| a != b).count();
                        let scales = scales.iter().zip(&expected_scales).filter(|(a, b)| a != b).count();
                        wrong.push(format!("{what}: {codes} words of codes, {scales} scales"));
                    }
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 100 && wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Device and host read identical values from a packed tensor.
pub(crate) fn check_read_rows<B: QuantBackend>(device: &B::Device, dtype: Dtype) {
    for format in formats(dtype) {
        for cols in [96, 100] {
            let quantized = quantize(&inputs(cols, dtype)[0].1, cols, format);
            let stored = quantized.to_packed();
            let on_device = DeviceTensor::<B>::upload(quantized.to_packed(), device);
            for reading in
                [TensorPart::QuantizedValues, TensorPart::Values, TensorPart::Scales, TensorPart::OuterScales]
            {
                if reading == TensorPart::OuterScales && stored.outer_scales.is_none() {
                    continue;
                }
                for rows in [0..ROWS, 2..5] {
                    let expected = read_rows(&stored.as_refs().map(Vec::as_slice), rows.clone(), reading);
                    let got = on_device.read_rows(rows.clone(), reading, dtype).into_data().convert::<f32>();
                    let expected: Vec<f32> = expected.into_iter().map(|x| dtype.round(x)).collect();
                    assert_eq!(got.to_vec::<f32>().unwrap(), expected, "{reading:?} {rows:?} {cols} {format:?}");
                }
            }
        }
    }
}

#[test]
fn flex_quantization_matches_host() {
    check::<Flex>(&Default::default(), &Dtype::ALL);
}

#[test]
fn flex_dequantization_matches_host() {
    Dtype::ALL.into_iter().for_each(|dtype| check_read_rows::<Flex>(&Default::default(), dtype));
}
