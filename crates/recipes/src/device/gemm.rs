//! GEMMs on packed weights on GPUs, by the layer kernels of `calorimeter-kernels`.

use crate::{Dtype, Element, FloatType, LayerSpec, MatmulMode, PackedTensor};
use burn::tensor::Shape;
use burn_cubecl::CubeRuntime;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use calorimeter_kernels::LinearShape;
use calorimeter_kernels::cube::{CubeCapability, CubeContext, CubeError, LayerOperands, layer_kernels};
use calorimeter_kernels::layer::{candidates, prepare};
use cubecl::prelude::*;

/// True if a kernel computes the layer on the device.
pub(super) fn is_supported<R: CubeRuntime>(client: &ComputeClient<R>, spec: &LayerSpec, shape: LinearShape) -> bool {
    candidates(layer_kernels::<R>(), spec, shape, &CubeCapability::of_client(client)).is_ok()
}

/// Computes y = x wᵀ; `None` without a kernel.
pub(super) fn dequant_gemm<R: CubeRuntime>(
    input: CubeTensor<R>,
    weight: &PackedTensor<CubeTensor<R>>,
) -> Option<CubeTensor<R>> {
    let spec = LayerSpec::weight_only(Dtype::from_burn(input.dtype)?, weight.format);
    let (m, k) = (input.meta.shape()[0], input.meta.shape()[1]);
    assert_eq!(k, weight.cols, "input and weight need an equal number of columns");
    enqueue(&spec, LinearShape { m, k, n: weight.rows }, input, None, weight)
}

/// Specification and sizes of an int8 GEMM; `None` if the scales of the input are not f32, which kernels need.
pub(super) fn int8_layer<T>(
    input: &PackedTensor<T>,
    weight: &PackedTensor<T>,
    steps: Dtype,
    dtype: Dtype,
) -> Option<(LayerSpec, LinearShape)> {
    assert_eq!(input.cols, weight.cols, "input and weight need an equal number of columns");
    let spec = LayerSpec::dynamic(dtype, weight.format, input.format, MatmulMode::QuantizedValues(steps));
    let shape = LinearShape { m: input.rows, k: input.cols, n: weight.rows };
    (input.format.scale == Element::Float(Dtype::F32)).then_some((spec, shape))
}

/// Computes y = x wᵀ with the scales of both operands; `None` without a kernel.
pub(super) fn int8_gemm<R: CubeRuntime>(
    input: &PackedTensor<CubeTensor<R>>,
    weight: &PackedTensor<CubeTensor<R>>,
    steps: Dtype,
    dtype: Dtype,
) -> Option<CubeTensor<R>> {
    let (spec, shape) = int8_layer(input, weight, steps, dtype)?;
    enqueue(&spec, shape, input.codes.clone(), input.scales.as_ref(), weight)
}

fn enqueue<R: CubeRuntime>(
    spec: &LayerSpec,
    shape: LinearShape,
    x: CubeTensor<R>,
    x_scales: Option<&CubeTensor<R>>,
    weight: &PackedTensor<CubeTensor<R>>,
) -> Option<CubeTensor<R>> {
    let (client, device) = (x.client.clone(), x.device.clone());
    let context = CubeContext::for_input(&client, &x.handle);
    let plan = match prepare(layer_kernels::<R>(), &context, &CubeCapability::of_client(&client), spec, shape) {
        Err(CubeError::Rejected(_)) => return None,
        plan => plan.expect("each accepted layer has a kernel that reads unaligned inputs"),
    };
    let x = into_contiguous(x);
    let y = empty_device_contiguous_dtype(client, device, Shape::new([shape.m, shape.n]), spec.dtype.burn());
    let operands = LayerOperands {
        x: &x.handle,
        x_scales: x_scales.map(|scales| &scales.handle),
        weight: weight.as_refs().map(|part| &part.handle),
        y: &y.handle,
    };
    plan.enqueue(&operands).expect("the operands have the sizes of the layer");
    Some(y)
}
