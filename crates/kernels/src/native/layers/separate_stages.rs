//! Layer whose GEMM does not fuse prologue and activation: separate kernels before and after it.

use std::sync::Arc;

use super::{Cuda, LAYER_KERNELS, LayerGemm, LayerOperands, LayerPlan};
use crate::layer::{self, Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ActivationPlan, ComputeCapability, CudaDevice, DeviceBuffer, LayerNormPlan, NativeError, RmsNormPlan, RmsNormSpec,
    ShortAttentionPlan,
};
use crate::{Dtype, LayerSpec, PackedTensor, Prologue};

pub(super) const KERNEL: SeparateStages = SeparateStages;

/// Prologue kernel, the cheapest kernel of the GEMM, and activation kernel.
pub(super) struct SeparateStages;

#[derive(Debug)]
struct StagedLayer {
    prologue: Option<(PrologueKernel, DeviceBuffer)>,
    gemm: LayerPlan,
    activation: Option<ActivationPlan>,
}

/// Separate kernel for the prologue.
#[derive(Debug)]
enum PrologueKernel {
    LayerNorm(LayerNormPlan),
    /// The norm weight is all ones.
    RmsNorm(RmsNormPlan, DeviceBuffer),
    Activation(ActivationPlan),
    ShortAttention(ShortAttentionPlan),
}

/// Returns the GEMM of a layer.
fn gemm_spec(spec: &LayerSpec) -> Result<LayerSpec, Rejection> {
    if spec.prologue == Prologue::None && spec.activation.is_none() {
        return Err(Rejection::Spec("a prologue or an activation"));
    }
    if spec.has_addend && spec.activation.is_some() {
        return Err(Rejection::Spec("no addend after an activation"));
    }
    Ok(LayerSpec { prologue: Prologue::None, activation: None, ..*spec })
}

impl LayerKernel<Cuda> for SeparateStages {
    fn name(&self) -> &'static str {
        "separate prologue and activation"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, capability: &ComputeCapability) -> Result<Cost, Rejection> {
        layer::candidates(LAYER_KERNELS, &gemm_spec(spec)?, shape, capability).map(|_| Cost::LastResort)
    }

    fn prepare(
        &self,
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<LayerPlan, NativeError> {
        let gemm = LayerPlan::new(device, &gemm_spec(spec)?, shape)?;
        let LinearShape { m, k, n } = shape;
        let prologue = PrologueKernel::new(device, spec.dtype, spec.prologue, shape)?;
        let prologue =
            prologue.map(|prologue| Ok::<_, NativeError>((prologue, device.allocate(m * k * spec.dtype.width())?)));
        let activation = spec.activation.map(|function| ActivationPlan::new(device, spec.dtype, function, m * n));
        let layer = StagedLayer { prologue: prologue.transpose()?, gemm, activation: activation.transpose()? };
        LayerPlan::of_gemm(device, spec, shape, layer)
    }
}

impl PrologueKernel {
    fn new(
        device: &Arc<CudaDevice>,
        dtype: Dtype,
        prologue: Prologue,
        LinearShape { m, k, .. }: LinearShape,
    ) -> Result<Option<Self>, NativeError> {
        Ok(Some(match prologue {
            Prologue::None => return Ok(None),
            Prologue::LayerNorm => Self::LayerNorm(LayerNormPlan::new(device, dtype, m, k)?),
            Prologue::RmsNorm => {
                let spec = RmsNormSpec { gain_is_f32: false, epsilon: LayerNormPlan::EPSILON };
                let one: &[u8] = match dtype {
                    Dtype::F32 => &1.0f32.to_le_bytes(),
                    Dtype::F16 => &[0x00, 0x3C],
                    Dtype::Bf16 => &[0x80, 0x3F],
                };
                Self::RmsNorm(RmsNormPlan::new(device, dtype, spec, m, k)?, device.upload(&one.repeat(k))?)
            }
            Prologue::Activation(function) => Self::Activation(ActivationPlan::new(device, dtype, function, m * k)?),
            Prologue::ShortAttention { heads } => {
                if heads == 0 || !m.is_multiple_of(ShortAttentionPlan::TOKENS) || !k.is_multiple_of(heads) {
                    return Err(NativeError::AttentionRows { rows: m, columns: k, heads });
                }
                let sequences = m / ShortAttentionPlan::TOKENS;
                Self::ShortAttention(ShortAttentionPlan::new(device, dtype, sequences, heads, k / heads)?)
            }
        }))
    }

    fn enqueue(&self, x: &DeviceBuffer, y: &mut DeviceBuffer) -> Result<(), NativeError> {
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

impl LayerGemm for StagedLayer {
    fn padded_n(&self, n: usize) -> usize {
        self.gemm.padded_n(n)
    }

    fn layout(&self) -> &'static str {
        self.gemm.gemm.layout()
    }

    fn prepack(
        &self,
        device: &CudaDevice,
        weight: PackedTensor<DeviceBuffer>,
    ) -> Result<PackedTensor<DeviceBuffer>, NativeError> {
        self.gemm.gemm.prepack(device, weight)
    }

    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        let x = match &mut self.prologue {
            Some((prologue, output)) => {
                prologue.enqueue(operands.x, output)?;
                &*output
            }
            None => operands.x,
        };
        self.gemm.gemm.enqueue(LayerOperands { x, ..operands }, y)?;
        self.activation.as_ref().map_or(Ok(()), |activation| activation.enqueue_in_place(y))
    }

    fn algorithm(&self) -> String {
        let prologue = self.prologue.as_ref().map(|(prologue, _)| prologue.algorithm().to_owned());
        let activation = self.activation.as_ref().map(|activation| activation.algorithm().to_owned());
        let all: Vec<String> = prologue.into_iter().chain([self.gemm.algorithm()]).chain(activation).collect();
        all.join("; then ")
    }

    fn skips_zeros(&self) -> bool {
        self.gemm.skips_zeros()
    }
}
