//! Matrix products.

use std::sync::Arc;

use super::{
    Buffer, Epilogue, Float8Output, LinearForm, LinearShape, Machine, NativeError,
    cublaslt::{Operands, Product},
    form::{Factors, Form},
    scale_after::ScaleAfter,
    sizes::checked_shape,
};
use crate::Dtype;

/// A plan of y[m, n] = x[m, k] · w[n, k]ᵀ with row-major matrices and sums in f32. Only [`Linear::with_tf32`] rounds f32
/// inputs to TF32.
///
/// The algorithm is the fastest of eight that cuBLASLt's heuristic proposes within 64 MiB of workspace, each of which is tried
/// on memory of its own when the first such plan of the machine is made; the first, where none is faster by 1 % or there is no
/// such memory. A machine that was opened with a file takes what an earlier one tried.
#[derive(Debug)]
pub struct Linear {
    product: Product,
    after: Option<ScaleAfter>,
    machine: Arc<Machine>,
    form: LinearForm,
    shape: LinearShape,
}

impl Linear {
    /// Chooses the algorithm.
    pub fn new(machine: &Arc<Machine>, kind: Dtype, shape: LinearShape) -> Result<Self, NativeError> {
        Self::of(machine, LinearForm::plain(kind), shape)
    }

    /// Chooses the algorithm of a product in another layout, to another type, or with a bias.
    ///
    /// cuBLASLt multiplies each type to itself, and half precision also to f32. For other outputs a kernel of its own rounds
    /// f32 sums, which take 4 m n bytes more; such a product has no epilogue.
    pub fn of(machine: &Arc<Machine>, form: LinearForm, shape: LinearShape) -> Result<Self, NativeError> {
        let factors = Factors::Whole(form.kind);
        let known = form.output == form.kind || form.output == Dtype::F32;
        if known || form.epilogue != Epilogue::Nothing {
            return Self::plan(machine, form, factors, shape);
        }
        let linear = Self::plan(machine, LinearForm { output: Dtype::F32, ..form }, factors, shape)?;
        let after = ScaleAfter::new(machine, shape, Float8Output::Plain(form.output))?;
        Ok(Self { after: Some(after), form, ..linear })
    }

    /// Chooses the algorithm of an f32 product whose inputs tensor cores may round to TF32.
    pub fn with_tf32(machine: &Arc<Machine>, shape: LinearShape) -> Result<Self, NativeError> {
        Self::plan(machine, LinearForm::plain(Dtype::F32), Factors::Tf32, shape)
    }

    fn plan(
        machine: &Arc<Machine>,
        form: LinearForm,
        factors: Factors,
        shape: LinearShape,
    ) -> Result<Self, NativeError> {
        let shape = checked_shape(shape)?;
        let LinearForm { output, input, weight, epilogue, .. } = form;
        let product = Product::plan(machine, Form { input, weight, epilogue, ..Form::plain(factors, output) }, shape)?;
        Ok(Self { product, after: None, machine: machine.clone(), form, shape })
    }

    /// Bytes of the input.
    pub fn x_bytes(&self) -> usize {
        self.shape.x_bytes(self.form.kind)
    }

    /// Bytes of the weight.
    pub fn w_bytes(&self) -> usize {
        self.shape.w_bytes(self.form.kind)
    }

    /// Bytes of the output.
    pub fn y_bytes(&self) -> usize {
        self.shape.y_bytes(self.form.output)
    }

    /// Bytes of the bias, where there is one.
    pub fn bias_bytes(&self) -> usize {
        self.shape.n * self.form.output.width()
    }

    /// Enqueues one run.
    pub fn enqueue(&self, x: &Buffer, w: &Buffer, y: &mut Buffer) -> Result<(), NativeError> {
        self.run([x, w], None, None, y)
    }

    /// Enqueues one run of a product with bias.
    pub fn enqueue_with_bias(&self, x: &Buffer, w: &Buffer, bias: &Buffer, y: &mut Buffer) -> Result<(), NativeError> {
        self.run([x, w], Some(bias), None, y)
    }

    /// Enqueues one run to which a matrix like y is added, before anything is rounded. No kernel may round after it.
    pub fn enqueue_with_added(
        &self,
        x: &Buffer,
        w: &Buffer,
        added: &Buffer,
        y: &mut Buffer,
    ) -> Result<(), NativeError> {
        if self.after.is_some() {
            return Err(NativeError::InputCount { needed: 2, found: 3 });
        }
        self.run([x, w], None, Some(added), y)
    }

    fn run(
        &self,
        [x, w]: [&Buffer; 2],
        bias: Option<&Buffer>,
        added: Option<&Buffer>,
        y: &mut Buffer,
    ) -> Result<(), NativeError> {
        NativeError::unless_inputs(self.inputs(), 2 + usize::from(bias.is_some()))?;
        let (bias, added) = (bias.map(|bias| &bias.memory), added.map(|added| &added.memory));
        let sums = self.after.as_ref().map_or(&y.memory, |after| &after.sums);
        let operands = Operands { x: &x.memory, w: &w.memory, y: sums, scales: None, added, bias };
        self.product.enqueue(&self.machine, operands)?;
        match &self.after {
            Some(after) => after.kernel.enqueue(&after.sums, &mut y.memory),
            None => Ok(()),
        }
    }

    fn inputs(&self) -> usize {
        if self.form.epilogue.has_bias() { 3 } else { 2 }
    }

    /// Which algorithm was chosen, in cuBLASLt's own numbers, and who rounds.
    pub fn algorithm(&self) -> String {
        let after = if self.after.is_some() { ", then a kernel that rounds" } else { "" };
        format!("{}{after}", self.product.describe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_counted_in_bytes_and_checked() {
        let shape = LinearShape { m: 3, k: 5, n: 7 };
        let kind = Dtype::Bf16;
        assert_eq!((shape.x_bytes(kind), shape.w_bytes(kind), shape.y_bytes(kind)), (30, 70, 42));
        assert!(checked_shape(shape).is_ok());
        let error = checked_shape(LinearShape { k: 0, ..shape }).unwrap_err();
        assert_eq!(error.to_string(), "k must be between 1 and 2147483647, not 0");
        assert!(checked_shape(LinearShape { n: 1 << 31, ..shape }).is_err());
    }
}
