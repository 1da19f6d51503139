//! 2:4 sparse weight on sparse tensor cores (`mma.sp`).

use std::sync::Arc;

use super::super::layer_plan::{Cuda, LayerGemm, LayerOperands, LayerPlan};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, NativeError, layer_specs::SparseSpec, quantize_input::InputQuantizer,
    sparse_gemm::SparseGemm,
};
use crate::{LayerSpec, PackedTensor};

/// See [`SparseGemm`].
pub(super) struct SparseMma;

/// Optional quantization of the input, followed by a sparse GEMM.
#[derive(Debug)]
struct SparseLayer {
    quantizer: Option<InputQuantizer>,
    gemm: SparseGemm,
}

/// Maximum rows of x for which the sparse kernel is faster than a dense matmul with the expanded weight.
///
/// Times in µs on an H200 for k = n = 4096 in bf16, without the quantization of x:
///
/// | rows | 16-bit floats | int8 | e4m3 |
/// |---|---|---|---|
/// | 1 | 8.5 | 5.9 | |
/// | 16 | 9.8 | 8.1 | 12.7 |
/// | 32 | 12.6 | 10.6 | 26 |
/// | 64 | 15.5 | 12.6 | 39 |
/// | 128 | 25 | 18.6 | |
///
/// `mma.sp` is slow for e4m3 on Hopper.
fn max_fastest_rows(spec: SparseSpec) -> usize {
    if spec.dynamic().is_some_and(|dynamic| dynamic.is_e4m3()) { 16 } else { 64 }
}

/// Returns the specification of a layer whose rows fill whole groups of four values.
pub(super) fn parse(spec: &LayerSpec, shape: LinearShape) -> Result<SparseSpec, Rejection> {
    let sparse = SparseSpec::parse(spec)?;
    if !shape.k.is_multiple_of(4) {
        return Err(Rejection::Multiple { what: "k", factor: 4, value: shape.k });
    }
    if let Some(dynamic) = sparse.dynamic() {
        dynamic.check_accumulators(shape.k)?;
    }
    Ok(sparse)
}

impl LayerKernel<Cuda> for SparseMma {
    fn name(&self) -> &'static str {
        "2:4 sparse weight, mma.sp"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, capability: &ComputeCapability) -> Result<Cost, Rejection> {
        let sparse = parse(spec, shape)?;
        if !SparseGemm::is_supported(sparse, *capability) {
            return Err(Rejection::Device("sparse tensor cores for this dtype"));
        }
        Ok(if shape.m <= max_fastest_rows(sparse) { Cost::Fastest } else { Cost::LastResort })
    }

    fn prepare(
        &self,
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<LayerPlan, NativeError> {
        let sparse = parse(spec, shape)?;
        let (quantizer, stride) = match sparse.dynamic() {
            Some(dynamic) => {
                let stride = LayerPlan::padded_k(shape.k);
                let quantizer = InputQuantizer::new(device, dynamic, (shape.m, shape.k), (shape.m, stride))?;
                (Some(quantizer), stride)
            }
            None => (None, shape.k),
        };
        let gemm = SparseGemm::new(device, sparse, shape, stride)?;
        LayerPlan::of_gemm(device, spec, shape, SparseLayer { quantizer, gemm })
    }
}

impl LayerGemm for SparseLayer {
    fn layout(&self) -> &'static str {
        "2:4 units"
    }

    fn prepack(
        &self,
        device: &CudaDevice,
        weight: PackedTensor<DeviceBuffer>,
    ) -> Result<PackedTensor<DeviceBuffer>, NativeError> {
        let positions = weight.positions.as_ref().ok_or(NativeError::PlanMismatch)?;
        let codes = self.gemm.reorder(device, [&weight.codes.memory, &positions.memory])?;
        Ok(PackedTensor { codes, positions: None, ..weight })
    }

    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        let LayerOperands { x, weight, addend, .. } = operands;
        let (x, x_scales) = match &mut self.quantizer {
            Some(quantizer) => {
                quantizer.enqueue(x)?;
                (&quantizer.codes, Some(&quantizer.scales))
            }
            None => (x, None),
        };
        let weight = [weight.codes].into_iter().chain(weight.scales).map(|part| &part.memory);
        self.gemm.enqueue([x].into_iter().chain(x_scales).chain(weight).chain(addend), &mut y.memory)
    }

    fn algorithm(&self) -> String {
        match &self.quantizer {
            None => self.gemm.algorithm.clone(),
            Some(quantizer) => format!("{}; then {}", quantizer.algorithm, self.gemm.algorithm),
        }
    }

    fn skips_zeros(&self) -> bool {
        true
    }
}
