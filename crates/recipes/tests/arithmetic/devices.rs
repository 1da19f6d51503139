//! Devices quantize and dequantize bit for bit like the host; their GEMMs match f64 references.

use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor, TensorData};
use burn_cubecl::{CubeBackend, CubeRuntime};
use burn_flex::Flex;
use burn_fusion::Fusion;
use burn_wgpu::{WgpuDevice, WgpuRuntime};
use calorimeter_kernels::layer::{LinearShape, Rejection};
use calorimeter_recipes::device::{DeviceTensor, QuantBackend};
use calorimeter_recipes::format::{Format, Grouping, HqqIterate, MxScaling, QuantMethod, ZeroPoint};
use calorimeter_recipes::packed_tensor::{TensorPart, read_rows};
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::{Dtype, Element, FloatType, PackedTensor, Recipe, TrainingRecipe, Weight};

type Vulkan = CubeBackend<WgpuRuntime, f32, i32, u8>;
type Cuda = CubeBackend<cubecl::cuda::CudaRuntime, f32, i32, u8>;

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

fn check<B: QuantBackend>(device: &B::Device, dtypes: &[Dtype]) {
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
fn check_read_rows<B: QuantBackend>(device: &B::Device, dtype: Dtype) {
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

/// A layer allocates only its packed weight, and a forward pass leaves no allocation behind.
fn check_memory<R: CubeRuntime>(device: &R::Device) {
    type Eager<R> = CubeBackend<R, f32, i32, u8>;
    let client = R::client(device);
    let allocated = || client.memory_usage().unwrap().bytes_in_use;
    let (n, k) = (512, 1024);
    let values = (0..n * k).map(|i| (i * 7919 % 10_007) as f32 / 5003.0 - 1.0).collect();
    let weight = Weight::new(n, k, values, Dtype::F32);
    for recipe in ["int8wo", "int4wo-128", "float8dq-row", "mxfp4"] {
        let config = recipe.parse::<Recipe>().unwrap().quant_config(Dtype::F32, None).unwrap();
        let input = Tensor::<Eager<R>, 2>::zeros([4, k], device);
        let before = allocated();
        let layer = config.linear::<Eager<R>>(&weight, device).unwrap();
        drop(layer.forward(input.clone()).into_data());
        Eager::<R>::sync(device).unwrap();
        let (taken, stored) = (allocated() - before, layer.weight_bytes());
        // Scales that are applied to the output are stored a second time, in f32.
        assert!(
            (stored..stored + 16384).contains(&taken),
            "{recipe}: {taken} bytes allocated for {stored} packed bytes"
        );
    }
}

/// Unit roundoff of a dtype.
fn unit_roundoff(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F32 => 2f64.powi(-24),
        Dtype::F16 => 2f64.powi(-11),
        Dtype::Bf16 => 2f64.powi(-8),
    }
}

fn test_values(count: usize, step: usize, dtype: Dtype) -> Vec<f32> {
    (0..count).map(|i| dtype.round((i * step % 10_007) as f32 / 5003.0 - 1.0)).collect()
}

/// Input rows (m), columns (k) and weight rows (n): aligned and ragged sizes, single and multiple fragments.
const SIZES: [(usize, usize, usize); 10] = [
    (1, 96, 20),
    (2, 1000, 7),
    (3, 12, 1),
    (9, 100, 33),
    (64, 4160, 18),
    (1, 4100, 9),
    (17, 127, 129),
    (8, 1024, 127),
    (33, 129, 3),
    (1, 17, 1000),
];

/// Sizes with more input rows than the kernels without matrix instructions support.
const LARGE_SIZES: [(usize, usize, usize); 9] = [
    (65, 512, 130),
    (129, 1000, 17),
    (300, 129, 257),
    (40, 4160, 18),
    (47, 1096, 300),
    (100, 1096, 300),
    (257, 640, 520),
    (600, 2048, 129),
    (1100, 96, 20),
];

/// A dequantizing GEMM equals the GEMM with the dequantized weight, rounded once.
fn check_dequant_gemms<B: QuantBackend>(device: &B::Device, dtypes: &[Dtype], sizes: &[(usize, usize, usize)]) {
    let names = [
        "int8wo",
        "int4wo-32",
        "int4wo-128-hqq",
        "fp6",
        "uintx-1-32",
        "uintx-3-64",
        "uintx-5-32-hqq",
        "uintx-4-64",
        "gemlitewo-4-64",
        "gemlitewo-8",
        "float8wo",
    ];
    let mut compared = 0;
    for (turn, name) in names.into_iter().enumerate() {
        for &dtype in dtypes {
            // Every size compiles a kernel, so each recipe runs a third of the sizes.
            let sizes = sizes.iter().skip(turn % 3).step_by(3);
            compared += sizes.filter(|&&size| check_dequant_gemm::<B>(device, name, dtype, size)).count();
        }
    }
    assert!(compared >= 2 * sizes.len() * dtypes.len(), "only {compared} comparisons");
}

/// Checks a recipe; returns false if its groups do not fit the weight.
fn check_dequant_gemm<B: QuantBackend>(
    device: &B::Device,
    name: &str,
    dtype: Dtype,
    size: (usize, usize, usize),
) -> bool {
    let (m, k, n) = size;
    let config = name.parse::<Recipe>().unwrap().quant_config(dtype, None).unwrap();
    if config.check(n, k).is_err() {
        return false;
    }
    let weight = Weight::new(n, k, test_values(n * k, 7919, dtype), dtype);
    let shape = LinearShape { m, k, n };
    assert!(B::has_layer_kernel(device, &config.layer_spec(m), shape), "{name} {dtype} {shape}");
    let layer = config.linear::<B>(&weight, device).unwrap();
    let x = test_values(m * k, 6007, dtype);
    let input = Tensor::<B, 2>::from_data(TensorData::new(x.clone(), [m, k]), (device, dtype.burn()));
    let got = layer.forward(input).into_data().convert::<f32>().to_vec::<f32>().unwrap();
    assert_eq!(got.len(), m * n);
    let dequantized = config.effective_weight(&weight).unwrap();
    for (at, found) in got.into_iter().enumerate() {
        let (row, col) = (at / n, at % n);
        let terms = x[row * k..][..k].iter().zip(&dequantized.values()[col * k..][..k]);
        let terms = terms.map(|(x, w)| f64::from(*x) * f64::from(*w));
        let (exact, all, squares) = terms
            .fold((0.0, 0.0, 0.0), |(sum, all, squares), term| (sum + term, all + term.abs(), squares + term * term));
        // The dequantized weight may itself be rounded to the dtype.
        let tolerance = unit_roundoff(dtype) * (exact.abs() + 2.0 * f64::sqrt(squares)) + 2e-6 * all + 1e-6;
        let error = (f64::from(found) - exact).abs();
        assert!(error <= tolerance, "{name} {dtype} {m} {k} {n} at [{row}, {col}]: {found}, expected {exact}");
    }
    true
}

/// An int8 GEMM accumulates exactly, and is rounded after each scale.
fn check_int8_gemms<B: QuantBackend>(device: &B::Device, dtypes: &[Dtype], sizes: &[(usize, usize, usize)]) {
    for &dtype in dtypes {
        let config = "int8dq".parse::<Recipe>().unwrap().quant_config(dtype, None).unwrap();
        for &(m, k, n) in sizes {
            let weight = Weight::new(n, k, test_values(n * k, 7919, dtype), dtype);
            let shape = LinearShape { m, k, n };
            assert!(B::has_layer_kernel(device, &config.layer_spec(m), shape), "{dtype} {shape}");
            let layer = config.linear::<B>(&weight, device).unwrap();
            let x = test_values(m * k, 6007, dtype);
            let input = Tensor::<B, 2>::from_data(TensorData::new(x.clone(), [m, k]), (device, dtype.burn()));
            let got = layer.forward(input);
            assert_eq!((got.dims(), got.dtype()), ([m, n], dtype.burn()));
            let got = got.into_data().convert::<f32>().to_vec::<f32>().unwrap();
            let (weight, x) = (config.effective_weight(&weight).unwrap(), config.effective_input(&x, k).unwrap());
            for (at, found) in got.into_iter().enumerate() {
                let (row, col) = (at / n, at % n);
                let terms = x[row * k..][..k].iter().zip(&weight.values()[col * k..][..k]);
                let terms = terms.map(|(x, w)| f64::from(*x) * f64::from(*w));
                let (exact, all) = terms.fold((0.0, 0.0), |(sum, all), term| (sum + term, all + term.abs()));
                // The reference rounds dequantized values to f32.
                let tolerance = 4.0 * unit_roundoff(dtype) * exact.abs() + 2e-7 * all;
                let error = (f64::from(found) - exact).abs();
                assert!(error <= tolerance, "{dtype} {m} {k} {n} at [{row}, {col}]: {found}, expected {exact}");
            }
        }
    }
}

/// Checks rows of an unaligned view, which rule out vector accesses.
fn check_unaligned_view<B: QuantBackend>(device: &B::Device) {
    let config = "int8wo".parse::<Recipe>().unwrap().quant_config(Dtype::F32, None).unwrap();
    let (n, k) = (5, 64);
    let weight = Weight::new(n, k, (0..n * k).map(|i| (i % 17) as f32 - 8.0).collect(), Dtype::F32);
    let layer = config.linear::<B>(&weight, device).unwrap();
    let numbers: Vec<f32> = (0..3 * k).map(|i| (i % 13) as f32 - 6.0).collect();
    let all = Tensor::<B, 1>::from_data(TensorData::new(numbers.clone(), [3 * k]), (device, DType::F32));
    let from = |first: usize| {
        let view = all.clone().slice_dim(0, first..first + k).reshape([1, k]);
        layer.forward(view).into_data().to_vec::<f32>().unwrap()
    };
    for first in [0, 1, 3, k] {
        let copy = TensorData::new(numbers[first..][..k].to_vec(), [1, k]);
        let copy = layer.forward(Tensor::from_data(copy, (device, DType::F32))).into_data();
        assert_eq!(from(first), copy.to_vec::<f32>().unwrap(), "from {first}");
    }
}

#[test]
#[ignore = "needs Vulkan"]
fn dequant_gemm_matches_f64_on_vulkan() {
    check_dequant_gemms::<Vulkan>(&WgpuDevice::Cpu, &[Dtype::F32], &SIZES);
    check_dequant_gemms::<Fusion<Vulkan>>(&WgpuDevice::Cpu, &[Dtype::F32], &SIZES[1..4]);
    check_unaligned_view::<Vulkan>(&WgpuDevice::Cpu);
}

#[test]
#[ignore = "needs Vulkan"]
fn int8_gemm_matches_f64_on_vulkan() {
    check_int8_gemms::<Vulkan>(&WgpuDevice::Cpu, &[Dtype::F32], &SIZES);
    check_int8_gemms::<Fusion<Vulkan>>(&WgpuDevice::Cpu, &[Dtype::F32], &SIZES[1..4]);
}

#[test]
fn unsupported_recipes_have_no_packed_gemm() {
    let check = |name: &str, m: usize| {
        let config = name.parse::<Recipe>().unwrap().quant_config(Dtype::F32, None).unwrap();
        config.check_packed_gemm::<WgpuRuntime>(LinearShape { m, k: 64, n: 64 })
    };
    for (name, rows) in [("int8wo", 1), ("int4wo-64", 4096), ("int8dq", 3), ("int8dq_prefill_wo_decode", 1)] {
        assert_eq!(check(name, rows), Ok(()), "{name}");
    }
    for name in ["baseline", "float8dq", "mxfp8", "nvfp4", "marlin-qqq"] {
        assert!(matches!(check(name, 2), Err(Rejection::Spec(_))), "{name}");
    }
}

#[test]
#[ignore = "needs Vulkan"]
fn vulkan_layer_allocates_only_packed_weight() {
    check_memory::<WgpuRuntime>(&WgpuDevice::Cpu);
}

#[test]
fn dequantization_matches_host() {
    Dtype::ALL.into_iter().for_each(|dtype| check_read_rows::<Flex>(&Default::default(), dtype));
    check_read_rows::<Vulkan>(&WgpuDevice::Cpu, Dtype::F32);
    check_read_rows::<Fusion<Vulkan>>(&WgpuDevice::Cpu, Dtype::F32);
}

#[test]
#[ignore = "needs Vulkan"]
fn fused_vulkan_quantization_matches_host() {
    check::<Fusion<Vulkan>>(&WgpuDevice::Cpu, &[Dtype::F32]);
}

#[test]
fn flex_quantization_matches_host() {
    check::<Flex>(&Default::default(), &Dtype::ALL);
}

#[test]
#[ignore = "needs Vulkan"]
fn vulkan_quantization_matches_host() {
    check::<Vulkan>(&WgpuDevice::Cpu, &[Dtype::F32]);
}

#[test]
#[ignore = "needs CUDA"]
fn cuda_quantization_matches_host() {
    let device = burn_cuda::CudaDevice::new(0);
    check::<Cuda>(&device, &Dtype::ALL);
    check::<Fusion<Cuda>>(&device, &[Dtype::F32]);
    check_memory::<cubecl::cuda::CudaRuntime>(&device);
    Dtype::ALL.into_iter().for_each(|dtype| check_read_rows::<Cuda>(&device, dtype));
}

#[test]
#[ignore = "needs CUDA"]
fn cuda_dequant_gemm_matches_f64() {
    let device = burn_cuda::CudaDevice::new(0);
    check_dequant_gemms::<Cuda>(&device, &Dtype::ALL, &SIZES);
    // For more f32 rows the layer falls back to burn's matmul, which may round to TF32.
    check_dequant_gemms::<Cuda>(&device, &[Dtype::F16, Dtype::Bf16], &LARGE_SIZES);
    check_unaligned_view::<Cuda>(&device);
}

/// Small subset for compute-sanitizer: every dequantization path with few rows, with split-K across cubes, and with the
/// staged input, aligned and ragged.
#[test]
#[ignore = "needs CUDA"]
fn cuda_gemm_subset_for_sanitizers_matches_f64() {
    let device = burn_cuda::CudaDevice::new(0);
    for name in ["int8wo", "int4wo-128", "uintx-3-64", "float8wo"] {
        for size in [(3, 640, 9), (64, 2048, 24), (130, 1152, 40)] {
            assert!(check_dequant_gemm::<Cuda>(&device, name, Dtype::Bf16, size));
        }
    }
    check_int8_gemms::<Cuda>(&device, &[Dtype::Bf16], &[(5, 640, 9), (130, 1096, 40)]);
}

#[test]
#[ignore = "needs CUDA"]
fn cuda_int8_gemm_matches_f64() {
    let device = burn_cuda::CudaDevice::new(0);
    for sizes in [&SIZES[..], &LARGE_SIZES] {
        check_int8_gemms::<Cuda>(&device, &Dtype::ALL, sizes);
    }
}
