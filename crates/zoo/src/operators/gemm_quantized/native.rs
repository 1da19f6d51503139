//! Quantized GEMM on CUDA: quantization kernels, then cuBLASLt.

use super::{Fp8Granularity, GemmQuantized, ScaleMode};
use crate::native::{BufferSet, NativePass};
use crate::operators::native_plans;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{
    CudaDevice, CudaKernel, Float8Accumulation, Float8LinearPlan, Float8Output, LinearPlan, LinearSpec, MxBlockAxis,
    ScaleSource, WeightLayout,
};
use calorimeter_recipes::Dtype;
use std::sync::Arc;

impl NativePlanner for GemmQuantized {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        match self.0 {
            Fp8Granularity::RowColumn => self.rowwise_pass(device, spec, Float8Output::Plain(Dtype::Bf16)),
            Fp8Granularity::RowColumnDequantized => self.rowwise_pass(device, spec, Float8Output::Scaled(Dtype::Bf16)),
            Fp8Granularity::Block128 => self.blockwise_pass(device, spec),
            Fp8Granularity::Mx32 => self.mx_pass(device, spec),
        }
    }
}

impl GemmQuantized {
    fn scale_source(self) -> ScaleSource {
        match self.1 {
            ScaleMode::Dynamic => ScaleSource::Amax,
            ScaleMode::Static => ScaleSource::Static,
        }
    }

    /// Quantizes rows of A and columns of B, then runs the float8 GEMM.
    fn rowwise_pass(self, device: &Arc<CudaDevice>, spec: &Spec, output: Float8Output) -> Result<NativePass, ZooError> {
        let shape = native_plans::shape(spec);
        let rows = CudaKernel::quantize_rows(device, self.scale_source(), shape.m, shape.k)?;
        let columns = CudaKernel::quantize_columns(device, self.scale_source(), shape.k, shape.n)?;
        let linear = Float8LinearPlan::new(device, shape, output, Float8Accumulation::Promoted)?;
        Ok(float8_pass(rows, columns, linear, output.inputs()))
    }

    /// Quantizes 1 x 128 blocks of A and 128 x 128 blocks of B, then runs the block-scaled float8 GEMM.
    fn blockwise_pass(self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let shape = native_plans::shape(spec);
        let rows = CudaKernel::quantize_row_blocks(device, self.scale_source(), shape.m, shape.k)?;
        let squares = CudaKernel::quantize_square_blocks(device, self.scale_source(), shape.k, shape.n)?;
        let linear = Float8LinearPlan::with_block_scales(device, shape, Dtype::Bf16)?;
        Ok(float8_pass(rows, squares, linear, Float8Output::Scaled(Dtype::Bf16).inputs()))
    }

    /// Quantizes and dequantizes MX blocks, whose values are exact in bf16, then runs a bf16 GEMM.
    fn mx_pass(self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let shape = native_plans::shape(spec);
        let a = CudaKernel::mx_fake_quantize(device, self.scale_source(), MxBlockAxis::Rows, shape.m, shape.k)?;
        let b = CudaKernel::mx_fake_quantize(device, self.scale_source(), MxBlockAxis::Columns, shape.k, shape.n)?;
        let form = LinearSpec { weight: WeightLayout::AlongN, ..LinearSpec::plain(Dtype::Bf16) };
        let linear = LinearPlan::with_spec(device, form, shape)?;
        Ok(NativePass::new(
            vec![a.algorithm(), b.algorithm(), linear.algorithm()],
            vec![a.output_bytes(0), b.output_bytes(0)],
            move |BufferSet { inputs, scratch: between, outputs }| {
                let [a_values, b_values] = between.as_mut_slice() else { unreachable!("two buffers") };
                a.enqueue([&inputs[0]], [&mut *a_values])?;
                b.enqueue([&inputs[1]], [&mut *b_values])?;
                linear.enqueue(a_values, b_values, &mut outputs[0])
            },
        ))
    }
}

/// Quantizes both operands, then runs `linear` on the first `operands` of A, B, scales of A and scales of B.
fn float8_pass(
    quantize_a: CudaKernel,
    quantize_b: CudaKernel,
    linear: Float8LinearPlan,
    operands: usize,
) -> NativePass {
    NativePass::new(
        vec![quantize_a.algorithm(), quantize_b.algorithm(), linear.algorithm()],
        vec![
            quantize_a.output_bytes(0),
            quantize_b.output_bytes(0),
            quantize_a.output_bytes(1),
            quantize_b.output_bytes(1),
        ],
        move |BufferSet { inputs, scratch: between, outputs }| {
            let [a, b, scales_of_a, scales_of_b] = between.as_mut_slice() else { unreachable!("four buffers") };
            quantize_a.enqueue([&inputs[0]], [&mut *a, &mut *scales_of_a])?;
            quantize_b.enqueue([&inputs[1]], [&mut *b, &mut *scales_of_b])?;
            linear.enqueue(&[&*a, b, scales_of_a, scales_of_b][..operands], &mut outputs[0])
        },
    )
}
