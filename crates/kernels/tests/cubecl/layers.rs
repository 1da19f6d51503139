//! Selection of layer kernels, and operands that a prepared layer rejects.

use crate::devices;
use calorimeter_kernels::cube::{Cube, CubeCapability, CubeContext, CubeError, LayerOperands, layer_kernels};
use calorimeter_kernels::format::{Grouping, MxScaling};
use calorimeter_kernels::layer::{Rejection, candidates, prepare};
use calorimeter_kernels::{Dtype, Element, Format, LayerSpec, LinearShape, MatmulMode, PackedTensor, Sparsity};
use cubecl::wgpu::WgpuRuntime;

/// Device without matrix instructions.
const PLAIN: CubeCapability =
    CubeCapability { f16_mma: false, bf16_mma: false, int8_mma: false, shared_memory: 49_152 };

fn int8(dtype: Dtype) -> Format {
    Format::symmetric(8, Grouping::Row, dtype, dtype)
}

/// Name of the selected kernel.
fn select(spec: &LayerSpec, m: usize, device: &CubeCapability) -> Result<&'static str, Rejection> {
    let shape = LinearShape { m, k: 4096, n: 4096 };
    candidates(layer_kernels::<WgpuRuntime>(), spec, shape, device).map(|kernels| kernels[0].name())
}

#[test]
fn selection_follows_rows_dtype_and_device() {
    let weight_only = |dtype| LayerSpec::weight_only(dtype, Format::tinygemm(Grouping::Block(64), dtype));
    let quantized = MatmulMode::QuantizedValues(Dtype::Bf16);
    let dynamic = LayerSpec::dynamic(Dtype::Bf16, int8(Dtype::Bf16), int8(Dtype::Bf16), quantized);
    let complete = CubeCapability::COMPLETE;
    for (spec, m, device, expected) in [
        (weight_only(Dtype::F32), 8, complete, "skinny_gemm"),
        (weight_only(Dtype::F32), 9, complete, "tiled_gemm"),
        (weight_only(Dtype::Bf16), 64, PLAIN, "tiled_gemm"),
        (weight_only(Dtype::F16), 1, CubeCapability { bf16_mma: true, ..PLAIN }, "skinny_gemm"),
        (weight_only(Dtype::Bf16), 1, complete, "mma_gemm"),
        (weight_only(Dtype::Bf16), 32, complete, "mma_gemm"),
        (weight_only(Dtype::Bf16), 33, complete, "staged_mma_gemm"),
        (weight_only(Dtype::Bf16), 33, CubeCapability { shared_memory: 1024, ..complete }, "mma_gemm"),
        (dynamic, 1, complete, "int8_mma_gemm"),
        (dynamic, 4096, PLAIN, "tiled_int8_gemm"),
    ] {
        assert_eq!(select(&spec, m, &device), Ok(expected), "m={m} {spec:?}");
    }
}

#[test]
fn layers_without_kernel_are_rejected() {
    let dtype = Dtype::F32;
    let weight_only = LayerSpec::weight_only(dtype, int8(dtype));
    let e4m3 = Format::float8(Element::E4m3, Grouping::Row, dtype);
    for spec in [
        LayerSpec::unquantized(dtype),
        LayerSpec::weight_only(dtype, Format::nvfp4()),
        LayerSpec::weight_only(dtype, Format { sparse_2to4: true, ..int8(dtype) }),
        LayerSpec::weight_only(dtype, Format::float8(Element::E4m3, Grouping::Tensor, dtype)),
        LayerSpec::dynamic(dtype, e4m3, e4m3, MatmulMode::QuantizedValues(dtype)),
        LayerSpec::dynamic(dtype, int8(dtype), int8(dtype), MatmulMode::Values),
        LayerSpec { sparsity: Some(Sparsity::DEFAULT_BLOCK), ..weight_only },
        LayerSpec { has_addend: true, ..weight_only },
    ] {
        assert!(matches!(select(&spec, 1, &CubeCapability::COMPLETE), Err(Rejection::Spec(_))), "{spec:?}");
    }
    let too_many = select(&weight_only, 65, &CubeCapability::COMPLETE);
    assert_eq!(too_many, Err(Rejection::Size { what: "m", max: 64, value: 65 }));
}

#[test]
#[ignore = "needs Vulkan"]
fn prepared_layer_rejects_other_operands() {
    let client = devices::vulkan().expect("no Vulkan adapter");
    let (dtype, shape) = (Dtype::F32, LinearShape { m: 2, k: 64, n: 4 });
    let format = Format::mx(Element::E4m3, MxScaling::Ceil);
    let memory = |bytes: usize| client.empty(bytes);
    let (x, y, codes, scales) = (memory(512), memory(32), memory(256), memory(8));
    let context = CubeContext::for_input(&client, &x);
    let capability = CubeCapability::of_client(&client);
    let spec = LayerSpec::weight_only(dtype, format);
    let plan = prepare::<Cube<WgpuRuntime>>(layer_kernels(), &context, &capability, &spec, shape).unwrap();
    let (zeros, outer_scales, positions) = (None, None, None);
    let weight = PackedTensor {
        format,
        rows: 4,
        cols: 64,
        codes: &codes,
        scales: Some(&scales),
        zeros,
        outer_scales,
        positions,
    };
    let operands = LayerOperands { x: &x, x_scales: None, weight, y: &y };
    assert_eq!(plan.enqueue(&operands), Ok(()));
    let other_format = PackedTensor { format: int8(dtype), ..weight };
    let without_scales = PackedTensor { scales: None, ..weight };
    let [offset, offset_codes] = [&x, &codes].map(|memory| memory.clone().offset_start(4));
    let offset_weight = PackedTensor { codes: &offset_codes, ..weight };
    let short = memory(16);
    let with = |change: LayerOperands| plan.enqueue(&change).unwrap_err();
    let other = |operand| CubeError::OtherLayer { operand };
    let misaligned = |operand| CubeError::Misaligned { operand };
    assert_eq!(with(LayerOperands { weight: other_format, ..operands.clone() }), other("weight"));
    assert_eq!(with(LayerOperands { weight: without_scales, ..operands.clone() }), other("weight.scales"));
    assert_eq!(with(LayerOperands { x_scales: Some(&x), ..operands.clone() }), other("x_scales"));
    assert_eq!(with(LayerOperands { x: &offset, ..operands.clone() }), misaligned("x"));
    assert_eq!(with(LayerOperands { weight: offset_weight, ..operands.clone() }), misaligned("weight.codes"));
    let too_small = CubeError::TooSmall { operand: "y", needs: 32, has: 16 };
    assert_eq!(with(LayerOperands { y: &short, ..operands }), too_small);
}
