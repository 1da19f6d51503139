//! Quantized GEMM on CUDA: quantization kernels, then cuBLASLt.

use super::{GemmQuantized, Scaling, Shared};
use crate::native::{NativePass, Set};
use crate::operators::native_plans;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{
    Float8Linear, Float8Output, Float8Sums, Linear, LinearForm, Machine, MicroBlocks, MicroNumbers, NativeError,
    Quantize, ScaleSource, WeightLayout,
};
use calorimeter_recipes::Dtype;
use std::sync::Arc;

impl NativeOpen for GemmQuantized {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let pass = match self.0 {
            Shared::Line => self.of_lines(&machine, spec, Float8Output::Plain(Dtype::Bf16)),
            Shared::LineDequantized => self.of_lines(&machine, spec, Float8Output::Scaled(Dtype::Bf16)),
            Shared::Block => self.of_blocks(&machine, spec),
            Shared::Micro => self.of_numbers(&machine, spec),
        };
        pass?.open(self, spec, inputs, machine, sets)
    }
}

impl GemmQuantized {
    fn source(self) -> ScaleSource {
        match self.1 {
            Scaling::Dynamic => ScaleSource::Largest,
            Scaling::Static => ScaleSource::Static,
        }
    }

    /// Quantizes rows of A and columns of B, then runs the float8 GEMM.
    fn of_lines(self, machine: &Arc<Machine>, spec: &Spec, output: Float8Output) -> Result<NativePass, NativeError> {
        let shape = native_plans::shape(spec);
        let rows = Quantize::rows(machine, self.source(), shape.m, shape.k)?;
        let columns = Quantize::columns(machine, self.source(), shape.k, shape.n)?;
        let linear = Float8Linear::new(machine, shape, output, Float8Sums::Promoted)?;
        Ok(of_codes(rows, columns, linear, output.inputs()))
    }

    /// Quantizes 1 x 128 blocks of A and 128 x 128 blocks of B, then runs the block-scaled float8 GEMM.
    fn of_blocks(self, machine: &Arc<Machine>, spec: &Spec) -> Result<NativePass, NativeError> {
        let shape = native_plans::shape(spec);
        let rows = Quantize::blocks_of_rows(machine, self.source(), shape.m, shape.k)?;
        let squares = Quantize::squares(machine, self.source(), shape.k, shape.n)?;
        let linear = Float8Linear::in_blocks(machine, shape, Dtype::Bf16)?;
        Ok(of_codes(rows, squares, linear, Float8Output::Scaled(Dtype::Bf16).inputs()))
    }

    /// Quantizes and dequantizes MX blocks, whose values are exact in bf16, then runs a bf16 GEMM.
    fn of_numbers(self, machine: &Arc<Machine>, spec: &Spec) -> Result<NativePass, NativeError> {
        let shape = native_plans::shape(spec);
        let a = MicroNumbers::new(machine, self.source(), MicroBlocks::AlongRows, shape.m, shape.k)?;
        let b = MicroNumbers::new(machine, self.source(), MicroBlocks::DownColumns, shape.k, shape.n)?;
        let form = LinearForm { weight: WeightLayout::AlongN, ..LinearForm::plain(Dtype::Bf16) };
        let linear = Linear::of(machine, form, shape)?;
        Ok(NativePass::steps(
            vec![a.algorithm().into(), b.algorithm().into(), linear.algorithm()],
            vec![a.bytes(), b.bytes()],
            move |Set { inputs, between, outputs }| {
                let [a_values, b_values] = between.as_mut_slice() else { unreachable!("two buffers") };
                a.enqueue(&inputs[0], a_values)?;
                b.enqueue(&inputs[1], b_values)?;
                linear.enqueue(a_values, b_values, &mut outputs[0])
            },
        ))
    }
}

/// Quantizes both operands, then runs `linear` on the first `operands` of A, B, scales of A and scales of B.
fn of_codes(quantize_a: Quantize, quantize_b: Quantize, linear: Float8Linear, operands: usize) -> NativePass {
    NativePass::steps(
        vec![quantize_a.algorithm().into(), quantize_b.algorithm().into(), linear.algorithm()],
        vec![quantize_a.codes_bytes(), quantize_b.codes_bytes(), quantize_a.scales_bytes(), quantize_b.scales_bytes()],
        move |Set { inputs, between, outputs }| {
            let [a, b, scales_of_a, scales_of_b] = between.as_mut_slice() else { unreachable!("four buffers") };
            quantize_a.enqueue(&inputs[0], a, scales_of_a)?;
            quantize_b.enqueue(&inputs[1], b, scales_of_b)?;
            linear.enqueue(&[&*a, b, scales_of_a, scales_of_b][..operands], &mut outputs[0])
        },
    )
}
