//! GPUs quantize like the host; their GEMMs match f64 references, and their layers allocate only the packed weight.

use crate::devices::{check, check_read_rows};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor, TensorData};
use burn_cubecl::{CubeBackend, CubeRuntime};
use burn_fusion::Fusion;
use burn_wgpu::{WgpuDevice, WgpuRuntime};
use calorimeter_kernels::layer::LinearShape;
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::{Dtype, FloatType, Recipe, Weight};

type Vulkan = CubeBackend<WgpuRuntime, f32, i32, u8>;
type Cuda = CubeBackend<cubecl::cuda::CudaRuntime, f32, i32, u8>;

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
#[ignore = "needs Vulkan"]
fn vulkan_layer_allocates_only_packed_weight() {
    check_memory::<WgpuRuntime>(&WgpuDevice::Cpu);
}

#[test]
#[ignore = "needs Vulkan"]
fn vulkan_dequantization_matches_host() {
    check_read_rows::<Vulkan>(&WgpuDevice::Cpu, Dtype::F32);
    check_read_rows::<Fusion<Vulkan>>(&WgpuDevice::Cpu, Dtype::F32);
}

#[test]
#[ignore = "needs Vulkan"]
fn fused_vulkan_quantization_matches_host() {
    check::<Fusion<Vulkan>>(&WgpuDevice::Cpu, &[Dtype::F32]);
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
