//! Matrix products of e4m3 codes.

use std::sync::Arc;

use super::{
    Buffer, Float8Output, Float8Sums, LinearShape, Machine, NativeError,
    cublaslt::{Operands, Product},
    driver::Memory,
    form::{Factors, Form, Scales},
    gpu::ComputeCapability,
    scale_after::ScaleAfter,
    sizes::checked_shape,
};
use crate::Dtype;

/// A plan of y[m, n] = x[m, k] · w[n, k]ᵀ for e4m3 codes in row-major matrices.
///
/// cuBLASLt takes only codes that run along k. For a second factor w[k, n] there is [`super::Float8Product`], or it comes turned
/// from [`super::Quantize::columns`]. k and n must be multiples of 16.
#[derive(Debug)]
pub struct Float8Linear {
    product: Product,
    after: Option<ScaleAfter>,
    machine: Arc<Machine>,
    shape: LinearShape,
    output: Float8Output,
}

impl Float8Linear {
    /// Chooses the algorithm. Scales are applied by cuBLASLt itself where it can (since 12.9, on Hopper), else by a kernel
    /// after it.
    pub fn new(
        machine: &Arc<Machine>,
        shape: LinearShape,
        output: Float8Output,
        sums: Float8Sums,
    ) -> Result<Self, NativeError> {
        let scaled = !matches!(output, Float8Output::Plain(_));
        let scales = if scaled { Scales::Lines } else { Scales::Nothing };
        let form = Form { scales, ..Form::plain(Factors::E4m3(sums), output.kind()) };
        machine.require("a product of e4m3", ComputeCapability::E4M3)?;
        let shape = checked_shape(shape)?;
        match Product::plan(machine, form, shape) {
            Ok(product) => Ok(Self { product, after: None, machine: machine.clone(), shape, output }),
            Err(NativeError::NoAlgorithm { .. } | NativeError::CublasLt { .. }) if scaled => {
                Self::scaled_after(machine, shape, output, sums)
            }
            Err(error) => Err(error),
        }
    }

    /// Chooses the algorithm of f32 sums, to which a kernel of its own applies the scales and what is added. It needs
    /// 4 m n bytes more.
    pub fn scaled_after(
        machine: &Arc<Machine>,
        shape: LinearShape,
        output: Float8Output,
        sums: Float8Sums,
    ) -> Result<Self, NativeError> {
        machine.require("a product of e4m3", ComputeCapability::E4M3)?;
        let shape = checked_shape(shape)?;
        let form = Form::plain(Factors::E4m3(sums), Dtype::F32);
        let product = Product::plan(machine, form, shape)?;
        let after = Some(ScaleAfter::new(machine, shape, output)?);
        Ok(Self { product, after, machine: machine.clone(), shape, output })
    }

    /// Chooses the algorithm of a product to a type whose scales are those of [`super::Quantize::blocks_of_rows`] and
    /// [`super::Quantize::squares`], which cuBLASLt applies to each 128 products (since 12.9, on Hopper).
    pub fn in_blocks(machine: &Arc<Machine>, shape: LinearShape, kind: Dtype) -> Result<Self, NativeError> {
        let form = Form { scales: Scales::Blocks, ..Form::plain(Factors::E4m3(Float8Sums::Promoted), kind) };
        machine.require("a product of e4m3", ComputeCapability::E4M3)?;
        let shape = checked_shape(shape)?;
        let product = Product::plan(machine, form, shape)?;
        Ok(Self { product, after: None, machine: machine.clone(), shape, output: Float8Output::Scaled(kind) })
    }

    /// Bytes of x.
    pub fn x_bytes(&self) -> usize {
        self.shape.m * self.shape.k
    }

    /// Bytes of w.
    pub fn w_bytes(&self) -> usize {
        self.shape.n * self.shape.k
    }

    /// Bytes of y, and of what is added.
    pub fn y_bytes(&self) -> usize {
        self.shape.y_bytes(self.output.kind())
    }

    /// Enqueues one run on x, w, then m scales of rows and n of columns if it is scaled, and last what is added.
    pub fn enqueue(&self, inputs: &[&Buffer], y: &mut Buffer) -> Result<(), NativeError> {
        NativeError::unless_inputs(self.output.inputs(), inputs.len())?;
        let inputs: Vec<&Memory> = inputs.iter().map(|input| &input.memory).collect();
        let (x, w) = (inputs[0], inputs[1]);
        match &self.after {
            None => {
                let scales = (inputs.len() > 2).then(|| [inputs[2], inputs[3]]);
                let operands = Operands { x, w, y: &y.memory, scales, added: inputs.get(4).copied(), bias: None };
                self.product.enqueue(&self.machine, operands)
            }
            Some(after) => {
                let operands = Operands { x, w, y: &after.sums, scales: None, added: None, bias: None };
                self.product.enqueue(&self.machine, operands)?;
                let mut inputs = inputs;
                inputs.splice(..2, [&after.sums]);
                after.kernel.enqueue_all(&inputs, &mut [&mut y.memory])
            }
        }
    }

    /// Which algorithm was chosen, in cuBLASLt's own numbers, and who applies the scales.
    pub fn algorithm(&self) -> String {
        let after = if self.after.is_some() { ", then a kernel for the scales" } else { "" };
        format!("{}{after}", self.product.describe())
    }
}
