//! Linear layer with prologue and epilogue, in as few kernels as its GEMM allows.

use super::layer_form::LayerForm;
use super::weight::{DeviceWeight, LinearKernel};
use crate::ZooError;
use crate::element_bytes::encode;
use calorimeter_kernels::Prologue;
use calorimeter_kernels::native::{
    CudaDevice, CudaKernel, DeviceBuffer, LAYER_NORM_EPSILON, LinearShape, NativeError, RmsNormSpec,
    SHORT_ATTENTION_TOKENS,
};
use calorimeter_recipes::{Dtype, Element, QuantConfig};
use std::sync::Arc;

/// Kernels of a layer and their scratch buffers.
pub struct CudaLayer {
    prologue: Option<(PrologueKernel, DeviceBuffer)>,
    gemm: LinearKernel,
    activation: Option<CudaKernel>,
}

/// Separate kernel for the prologue.
enum PrologueKernel {
    LayerNorm(CudaKernel),
    /// The norm weight is all ones.
    RmsNorm(CudaKernel, DeviceBuffer),
    Activation(CudaKernel),
    ShortAttention(CudaKernel),
}

impl PrologueKernel {
    fn new(
        machine: &Arc<CudaDevice>,
        kind: Dtype,
        prologue: Prologue,
        LinearShape { m, k, .. }: LinearShape,
    ) -> Result<Option<Self>, ZooError> {
        Ok(Some(match prologue {
            Prologue::None => return Ok(None),
            Prologue::LayerNorm => Self::LayerNorm(CudaKernel::layer_norm(machine, kind, m, k)?),
            Prologue::RmsNorm => {
                let form = RmsNormSpec { gain_is_f32: false, epsilon: LAYER_NORM_EPSILON };
                let gain = machine.upload(&encode(&vec![1.0; k], Element::Float(kind)))?;
                Self::RmsNorm(CudaKernel::rms_norm(machine, kind, form, m, k)?, gain)
            }
            Prologue::Activation(function) => Self::Activation(CudaKernel::activation(machine, kind, function, m * k)?),
            Prologue::ShortAttention { heads } => Self::ShortAttention(CudaKernel::short_attention(
                machine,
                kind,
                m / SHORT_ATTENTION_TOKENS,
                heads,
                k / heads,
            )?),
            other => return Err(ZooError::Unsupported(format!("`native` has no kernel for {other:?}"))),
        }))
    }

    fn enqueue(&self, x: &DeviceBuffer, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        match self {
            Self::LayerNorm(norm) => norm.enqueue([x], [y]),
            Self::RmsNorm(norm, gain) => norm.enqueue([x, gain], [y]),
            Self::Activation(activation) => activation.enqueue([x], [y]),
            Self::ShortAttention(attention) => attention.enqueue([x], [y]),
        }
    }

    fn algorithm(&self) -> String {
        match self {
            Self::LayerNorm(norm) => norm.algorithm(),
            Self::RmsNorm(norm, _) => norm.algorithm(),
            Self::Activation(activation) => activation.algorithm(),
            Self::ShortAttention(attention) => attention.algorithm(),
        }
    }
}

impl CudaLayer {
    /// Selects and compiles the kernels.
    pub fn new(
        machine: &Arc<CudaDevice>,
        treatment: &QuantConfig,
        form: LayerForm,
        shape: LinearShape,
    ) -> Result<Self, ZooError> {
        let (kind, LinearShape { m, k, n }) = (treatment.dtype, shape);
        let product = LinearKernel::new(machine, treatment, form, shape)?;
        if product.fuses_layer() {
            return Ok(Self { prologue: None, gemm: product, activation: None });
        }
        if form.added && form.activation.is_some() {
            return Err(ZooError::Unsupported("`native` does not support a residual after an activation".into()));
        }
        let before = PrologueKernel::new(machine, kind, form.prologue, shape)?;
        let before = before.map(|before| Ok::<_, NativeError>((before, machine.allocate(m * k * kind.width())?)));
        let activation = form.activation.map(|function| CudaKernel::activation(machine, kind, function, m * n));
        Ok(Self { prologue: before.transpose()?, gemm: product, activation: activation.transpose()? })
    }

    /// Returns the GEMM, which determines the format of the weight.
    pub fn gemm(&self) -> &LinearKernel {
        &self.gemm
    }

    /// Kernels, and how they were chosen and configured.
    pub fn algorithm(&self) -> String {
        let before = self.prologue.as_ref().map(|(before, _)| before.algorithm());
        let after = self.activation.as_ref().map(|activation| activation.algorithm());
        let all: Vec<String> = before.into_iter().chain([self.gemm.algorithm()]).chain(after).collect();
        all.join("; then ")
    }

    /// Enqueues one run; `added` is a residual for the epilogue.
    pub fn enqueue(
        &mut self,
        input: &DeviceBuffer,
        weight: &DeviceWeight,
        added: Option<&DeviceBuffer>,
        output: &mut DeviceBuffer,
    ) -> Result<(), ZooError> {
        let x = match &mut self.prologue {
            Some((before, prepared)) => {
                before.enqueue(input, prepared)?;
                &*prepared
            }
            None => input,
        };
        self.gemm.enqueue(x, weight, added, output)?;
        if let Some(activation) = &self.activation {
            activation.enqueue_in_place(output)?;
        }
        Ok(())
    }
}
