//! Layer whose GEMM does not fuse prologue and activation. Separate kernels run before and after the GEMM.

use std::sync::Arc;

use super::super::layer_plan::{Cuda, LayerGemm, LayerOperands, LayerPlan};
use crate::layer::{self, Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, CudaKernel, DeviceBuffer, LAYER_NORM_EPSILON, NativeError, RmsNormSpec,
    SHORT_ATTENTION_TOKENS,
};
use crate::{Dtype, LayerSpec, PackedTensor, Prologue};

/// Prologue kernel, the cheapest kernel of the GEMM, and activation kernel.
pub(super) struct SeparateStages;

#[derive(Debug)]
struct StagedLayer {
    prologue: Option<PrologueKernel>,
    gemm: LayerPlan,
    activation: Option<CudaKernel>,
}

/// Separate kernel for the prologue.
#[derive(Debug)]
struct PrologueKernel {
    kernel: CudaKernel,
    /// Gain of the RMS normalization: all ones.
    gain: Option<DeviceBuffer>,
    output: DeviceBuffer,
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
        layer::candidates(Cuda::kernels(), &gemm_spec(spec)?, shape, capability).map(|_| Cost::LastResort)
    }

    fn prepare(
        &self,
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<LayerPlan, NativeError> {
        let gemm = LayerPlan::new(device, &gemm_spec(spec)?, shape)?;
        let prologue = PrologueKernel::new(device, spec.dtype, spec.prologue, shape)?;
        let elements = shape.m * shape.n;
        let activation = spec.activation.map(|function| CudaKernel::activation(device, spec.dtype, function, elements));
        let layer = StagedLayer { prologue, gemm, activation: activation.transpose()? };
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
        let mut gain = None;
        let kernel = match prologue {
            Prologue::None => return Ok(None),
            Prologue::LayerNorm => CudaKernel::layer_norm(device, dtype, m, k)?,
            Prologue::RmsNorm => {
                let one: &[u8] = match dtype {
                    Dtype::F32 => &1.0f32.to_le_bytes(),
                    Dtype::F16 => &[0x00, 0x3C],
                    Dtype::Bf16 => &[0x80, 0x3F],
                };
                gain = Some(device.upload(&one.repeat(k))?);
                let spec = RmsNormSpec { gain_is_f32: false, epsilon: LAYER_NORM_EPSILON };
                CudaKernel::rms_norm(device, dtype, spec, m, k)?
            }
            Prologue::Activation(function) => CudaKernel::activation(device, dtype, function, m * k)?,
            Prologue::ShortAttention { heads } => {
                if heads == 0 || !m.is_multiple_of(SHORT_ATTENTION_TOKENS) || !k.is_multiple_of(heads) {
                    return Err(NativeError::AttentionRows { rows: m, columns: k, heads });
                }
                CudaKernel::short_attention(device, dtype, m / SHORT_ATTENTION_TOKENS, heads, k / heads)?
            }
        };
        Ok(Some(Self { kernel, gain, output: device.allocate(m * k * dtype.width())? }))
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
            Some(PrologueKernel { kernel, gain, output }) => {
                let gain = gain.iter().map(|gain| &gain.memory);
                kernel.enqueue_all([operands.x].into_iter().chain(gain), [&mut output.memory])?;
                &output.memory
            }
            None => operands.x,
        };
        self.gemm.gemm.enqueue(LayerOperands { x, ..operands }, y)?;
        self.activation.as_ref().map_or(Ok(()), |activation| activation.enqueue_in_place(y))
    }

    fn algorithm(&self) -> String {
        let prologue = self.prologue.as_ref().map(|prologue| prologue.kernel.algorithm());
        let activation = self.activation.as_ref().map(CudaKernel::algorithm);
        let all: Vec<String> = prologue.into_iter().chain([self.gemm.algorithm()]).chain(activation).collect();
        all.join("; then ")
    }

    fn skips_zeros(&self) -> bool {
        self.gemm.skips_zeros()
    }
}
