//! Plans of linear layers on CUDA, and the traits and checks that their kernels share.

use super::{ComputeCapability, CudaDevice, DeviceBuffer, NativeError, driver::DeviceMemory, sizes::check_shape};
use crate::layer::{self, LayerBackend, LinearShape, Rejection};
use crate::{LayerSpec, PackedTensor, Prologue};
use std::sync::Arc;

/// CUDA as a backend of layer kernels.
#[derive(Debug)]
pub enum Cuda {}

impl LayerBackend for Cuda {
    type Capability = ComputeCapability;
    type Context = Arc<CudaDevice>;
    type Plan = LayerPlan;
    type Error = NativeError;

    fn is_missing_algorithm(error: &NativeError) -> bool {
        matches!(error, NativeError::NoAlgorithm { .. })
    }
}

impl From<Rejection> for NativeError {
    fn from(reason: Rejection) -> Self {
        Self::Rejected(reason)
    }
}

/// Plan of a linear layer: selected and compiled kernels.
#[derive(Debug)]
pub struct LayerPlan {
    pub(super) device: Arc<CudaDevice>,
    pub(super) gemm: Box<dyn LayerGemm>,
    pub(super) spec: LayerSpec,
    pub(super) shape: LinearShape,
}

/// Weight in the memory layout of a plan.
#[derive(Debug)]
pub struct PrepackedWeight {
    weight: PackedTensor<DeviceBuffer>,
    layout: &'static str,
}

impl PrepackedWeight {
    /// Bytes of all parts.
    pub fn bytes(&self) -> usize {
        self.weight.as_refs().into_parts().into_iter().map(DeviceBuffer::len).sum()
    }
}

/// Memory layout of a weight as recipes store it.
const STORED: &str = "stored";

/// Kernels of a layer.
pub(super) trait LayerGemm: std::fmt::Debug + Send {
    /// Number of rows that the quantized values of a weight are padded to with zeros.
    fn padded_n(&self, n: usize) -> usize {
        n
    }

    /// Name of the memory layout of the weight.
    fn layout(&self) -> &'static str {
        STORED
    }

    /// Converts a weight to the memory layout.
    fn prepack(
        &self,
        _device: &CudaDevice,
        weight: PackedTensor<DeviceBuffer>,
    ) -> Result<PackedTensor<DeviceBuffer>, NativeError> {
        Ok(weight)
    }

    /// Enqueues a launch.
    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError>;

    /// Kernels, their configurations, and the algorithm of cuBLASLt.
    fn algorithm(&self) -> String;

    /// True if the zeros of a sparse weight are neither read nor multiplied.
    fn skips_zeros(&self) -> bool {
        false
    }
}

/// Operands of a launch.
#[derive(Clone, Copy)]
pub(super) struct LayerOperands<'a> {
    pub(super) device: &'a CudaDevice,
    /// Input, or the quantized values if a kernel has quantized the input.
    pub(super) x: &'a DeviceMemory,
    /// Scales of a quantized input, or the tensor-wide scale of a fake-quantized one.
    pub(super) input_scales: Option<&'a DeviceMemory>,
    pub(super) weight: PackedTensor<&'a DeviceBuffer>,
    pub(super) addend: Option<&'a DeviceMemory>,
}

impl LayerPlan {
    /// Selects the cheapest kernel that accepts the layer, and compiles it.
    pub fn new(device: &Arc<CudaDevice>, spec: &LayerSpec, shape: LinearShape) -> Result<Self, NativeError> {
        layer::prepare(Cuda::kernels(), device, &device.compute_capability(), spec, check_shape(shape)?)
    }

    pub(super) fn of_gemm(
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
        gemm: impl LayerGemm + 'static,
    ) -> Result<Self, NativeError> {
        Ok(Self { device: device.clone(), gemm: Box::new(gemm), spec: *spec, shape })
    }

    /// Row length that a quantized weight with a quantized input is padded to with zeros.
    pub const fn padded_k(k: usize) -> usize {
        k.next_multiple_of(32)
    }

    /// Number of rows that the quantized values of a weight of `n` rows are padded to with zeros. Scales are not padded.
    pub fn padded_n(&self, n: usize) -> usize {
        self.gemm.padded_n(n)
    }

    /// Bytes of the input.
    pub fn x_bytes(&self) -> usize {
        let row_parts = if let Prologue::ShortAttention { .. } = self.spec.prologue { 3 } else { 1 };
        row_parts * self.shape.x_bytes(self.spec.dtype)
    }

    /// Bytes of the output.
    pub fn y_bytes(&self) -> usize {
        self.shape.y_bytes(self.spec.dtype)
    }

    /// True if the zeros of a sparse weight are neither read nor multiplied.
    pub fn skips_zeros(&self) -> bool {
        self.gemm.skips_zeros()
    }

    /// Converts a weight to the layout of this plan. Done once per weight, not part of a launch.
    pub fn prepack(&self, weight: PackedTensor<DeviceBuffer>) -> Result<PrepackedWeight, NativeError> {
        Ok(PrepackedWeight { weight: self.gemm.prepack(&self.device, weight)?, layout: self.gemm.layout() })
    }

    /// Enqueues a launch; the addend is required if and only if the specification has one.
    pub fn enqueue(
        &mut self,
        x: &DeviceBuffer,
        weight: &PrepackedWeight,
        addend: Option<&DeviceBuffer>,
        y: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        NativeError::check_input_count(2 + usize::from(self.spec.has_addend), 2 + usize::from(addend.is_some()))?;
        if weight.layout != self.gemm.layout() {
            return Err(NativeError::PlanMismatch);
        }
        let (device, x, addend) = (&self.device, &x.memory, addend.map(|addend| &addend.memory));
        let weight = weight.weight.as_refs();
        self.gemm.enqueue(LayerOperands { device, x, input_scales: None, weight, addend }, y)
    }

    /// Kernels, their configurations, and the algorithm of cuBLASLt.
    pub fn algorithm(&self) -> String {
        self.gemm.algorithm()
    }
}

/// Requires a compute capability.
pub(super) fn require(
    found: ComputeCapability,
    needed: ComputeCapability,
    what: &'static str,
) -> Result<(), Rejection> {
    if found >= needed { Ok(()) } else { Err(Rejection::Device(what)) }
}
