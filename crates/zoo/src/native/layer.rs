//! Linear layer with prologue and epilogue, in as few kernels as its GEMM allows.

use super::layer_form::LayerForm;
use super::weight::{DeviceWeight, Product};
use crate::ZooError;
use crate::numbers::bytes;
use calorimeter_kernels::Prologue;
use calorimeter_kernels::native::{
    self, Buffer, LayerNorm, LinearShape, Machine, NativeError, RmsForm, RmsNorm, ShortAttention,
};
use calorimeter_recipes::{Dtype, Element, Treatment};
use std::sync::Arc;

/// Kernels of a layer and their scratch buffers.
pub struct Layer {
    before: Option<(Before, Buffer)>,
    product: Product,
    activation: Option<native::Activation>,
}

/// Separate kernel for the prologue.
enum Before {
    LayerNorm(LayerNorm),
    /// The norm weight is all ones.
    RmsNorm(RmsNorm, Buffer),
    Activation(native::Activation),
    ShortAttention(ShortAttention),
}

impl Before {
    fn new(
        machine: &Arc<Machine>,
        kind: Dtype,
        prologue: Prologue,
        LinearShape { m, k, .. }: LinearShape,
    ) -> Result<Option<Self>, ZooError> {
        Ok(Some(match prologue {
            Prologue::Nothing => return Ok(None),
            Prologue::LayerNorm => Self::LayerNorm(LayerNorm::new(machine, kind, m, k)?),
            Prologue::RmsNorm => {
                let form = RmsForm { gain_is_f32: false, epsilon: LayerNorm::EPSILON };
                let gain = machine.upload(&bytes(&vec![1.0; k], Element::Float(kind)))?;
                Self::RmsNorm(RmsNorm::new(machine, kind, form, m, k)?, gain)
            }
            Prologue::Activation(function) => {
                Self::Activation(native::Activation::new(machine, kind, function, m * k)?)
            }
            Prologue::ShortAttention { heads } => {
                Self::ShortAttention(ShortAttention::new(machine, kind, m / ShortAttention::TOKENS, heads, k / heads)?)
            }
            other => return Err(ZooError::Unsupported(format!("`native` has no kernel for {other:?}"))),
        }))
    }

    fn enqueue(&self, x: &Buffer, y: &mut Buffer) -> Result<(), NativeError> {
        match self {
            Self::LayerNorm(norm) => norm.enqueue(x, y),
            Self::RmsNorm(norm, gain) => norm.enqueue(x, gain, y),
            Self::Activation(activation) => activation.enqueue(x, y),
            Self::ShortAttention(attention) => attention.enqueue(x, y),
        }
    }

    fn algorithm(&self) -> &str {
        match self {
            Self::LayerNorm(norm) => norm.algorithm(),
            Self::RmsNorm(norm, _) => norm.algorithm(),
            Self::Activation(activation) => activation.algorithm(),
            Self::ShortAttention(attention) => attention.algorithm(),
        }
    }
}

impl Layer {
    /// Selects and compiles the kernels.
    pub fn new(
        machine: &Arc<Machine>,
        treatment: &Treatment,
        form: LayerForm,
        shape: LinearShape,
    ) -> Result<Self, ZooError> {
        let (kind, LinearShape { m, k, n }) = (treatment.dtype, shape);
        let product = Product::new(machine, treatment, form, shape)?;
        if product.takes_in_the_rest() {
            return Ok(Self { before: None, product, activation: None });
        }
        if form.added && form.activation.is_some() {
            return Err(ZooError::Unsupported("`native` does not support a residual after an activation".into()));
        }
        let before = Before::new(machine, kind, form.prologue, shape)?;
        let before = before.map(|before| Ok::<_, NativeError>((before, machine.allocate(m * k * kind.width())?)));
        let activation = form.activation.map(|function| native::Activation::new(machine, kind, function, m * n));
        Ok(Self { before: before.transpose()?, product, activation: activation.transpose()? })
    }

    /// Returns the GEMM, which determines the format of the weight.
    pub fn product(&self) -> &Product {
        &self.product
    }

    /// Kernels, and how they were chosen and configured.
    pub fn algorithm(&self) -> String {
        let before = self.before.as_ref().map(|(before, _)| before.algorithm().to_owned());
        let after = self.activation.as_ref().map(|activation| activation.algorithm().to_owned());
        let all: Vec<String> = before.into_iter().chain([self.product.algorithm()]).chain(after).collect();
        all.join("; then ")
    }

    /// Enqueues one run; `added` is a residual for the epilogue.
    pub fn enqueue(
        &mut self,
        input: &Buffer,
        weight: &DeviceWeight,
        added: Option<&Buffer>,
        output: &mut Buffer,
    ) -> Result<(), ZooError> {
        let x = match &mut self.before {
            Some((before, prepared)) => {
                before.enqueue(input, prepared)?;
                &*prepared
            }
            None => input,
        };
        self.product.enqueue(x, weight, added, output)?;
        if let Some(activation) = &self.activation {
            activation.enqueue_in_place(output)?;
        }
        Ok(())
    }
}
