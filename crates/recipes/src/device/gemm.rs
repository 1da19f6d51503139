//! GEMMs on packed weights on GPUs, by the layer kernels of `calorimeter-kernels`.

use crate::{Dtype, Element, FloatType, LayerSpec, MatmulMode, PackedTensor};
use burn::tensor::Shape;
use burn_cubecl::CubeRuntime;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use calorimeter_kernels::LinearShape;
use calorimeter_kernels::cube::{CubeCapability, CubeContext, LayerOperands, layer_kernels};
use calorimeter_kernels::layer::{candidates, prepare};
use cubecl::prelude::*;

/// True if a kernel computes the layer on the device.
pub fn is_supported<R: CubeRuntime>(client: &ComputeClient<R>, spec: &LayerSpec, shape: LinearShape) -> bool {
    candidates(layer_kernels::<R>(), spec, shape, &CubeCapability::of_client(client)).is_ok()
}

/// Computes y = x wᵀ; `None` without a kernel.
pub fn dequant_gemm<R: CubeRuntime>(
    input: CubeTensor<R>,
    weight: &PackedTensor<CubeTensor<R>>,
) -> Option<CubeTensor<R>> {
    let spec = LayerSpec::weight_only(Dtype::from_burn(input.dtype)?, weight.format);
    let (m, cols) = (input.meta.shape()[0], input.meta.shape()[1]);
    assert_eq!(cols, weight.cols, "input and weight need an equal number of columns");
    let shape = LinearShape { m, k: cols, n: weight.rows };
    is_supported(&input.client, &spec, shape).then(|| enqueue(&spec, shape, &into_contiguous(input), None, weight))
}

/// Computes y = x wᵀ with the scales of both operands; `None` for formats without a kernel.
pub fn int8_gemm<R: CubeRuntime>(
    input: &PackedTensor<CubeTensor<R>>,
    weight: &PackedTensor<CubeTensor<R>>,
    steps: Dtype,
    dtype: Dtype,
) -> Option<CubeTensor<R>> {
    let spec = LayerSpec::dynamic(dtype, weight.format, input.format, MatmulMode::QuantizedValues(steps));
    assert_eq!(input.cols, weight.cols, "input and weight need an equal number of columns");
    assert_eq!(input.format.scale, Element::Float(Dtype::F32), "a quantized input has f32 scales");
    let shape = LinearShape { m: input.rows, k: input.cols, n: weight.rows };
    is_supported(&weight.codes.client, &spec, shape)
        .then(|| enqueue(&spec, shape, &input.codes, input.scales.as_ref(), weight))
}

fn enqueue<R: CubeRuntime>(
    spec: &LayerSpec,
    shape: LinearShape,
    x: &CubeTensor<R>,
    x_scales: Option<&CubeTensor<R>>,
    weight: &PackedTensor<CubeTensor<R>>,
) -> CubeTensor<R> {
    let (client, sizes) = (&x.client, Shape::new([shape.m, shape.n]));
    let y = empty_device_contiguous_dtype(client.clone(), x.device.clone(), sizes, spec.dtype.burn());
    let operands = LayerOperands {
        x: &x.handle,
        x_scales: x_scales.map(|scales| &scales.handle),
        weight: weight.as_refs().map(|part| &part.handle),
        y: &y.handle,
    };
    let context = CubeContext::for_input(client, &x.handle);
    prepare(layer_kernels::<R>(), &context, &CubeCapability::of_client(client), spec, shape)
        .and_then(|plan| plan.enqueue(&operands))
        .expect("kernel support was checked, and the operands have the sizes of the layer");
    y
}
