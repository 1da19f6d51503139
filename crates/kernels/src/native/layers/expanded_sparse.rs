//! 2:4 sparse weight that is expanded to a dense buffer and multiplied like a dense weight.

use std::sync::Arc;

use super::super::layer_plan::{Cuda, LayerGemm, LayerOperands, LayerPlan};
use super::quantized_input;
use crate::layer::{self, Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, NativeError,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros},
    layer_specs::{SparseSpec, SparseWeight},
    nvrtc::CudaSource,
    sizes::check_size,
    sparse_gemm::{format_macros, format_name, stored_reads, weight_scale_bytes},
};
use crate::{LayerSpec, PackedTensor};

/// Expansion kernel and the cheapest kernel of the dense layer.
pub(super) struct ExpandedSparse;

#[derive(Debug)]
struct ExpandedLayer {
    expand: CudaKernel,
    /// Values of the expanded weight.
    weight: DeviceBuffer,
    dense: LayerPlan,
    is_int4: bool,
    algorithm: String,
}

const THREADS: usize = 256;

/// Returns the layer with the expanded weight.
fn dense_spec(spec: &LayerSpec, sparse: SparseSpec) -> LayerSpec {
    // int4 values are expanded to floats.
    let weight = spec.weight.filter(|_| sparse.dynamic().is_some());
    LayerSpec { weight, sparsity: None, ..*spec }
}

impl LayerKernel<Cuda> for ExpandedSparse {
    fn name(&self) -> &'static str {
        "2:4 sparse weight, expanded"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, capability: &ComputeCapability) -> Result<Cost, Rejection> {
        let dense = dense_spec(spec, super::sparse_mma::parse(spec, shape)?);
        layer::candidates(Cuda::kernels(), &dense, shape, capability).map(|_| Cost::General)
    }

    fn prepare(
        &self,
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<LayerPlan, NativeError> {
        let sparse = super::sparse_mma::parse(spec, shape)?;
        LayerPlan::of_gemm(device, spec, shape, ExpandedLayer::new(device, spec, sparse, shape)?)
    }
}

impl ExpandedLayer {
    fn new(
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        sparse: SparseSpec,
        shape: LinearShape,
    ) -> Result<Self, NativeError> {
        let LinearShape { k, n, .. } = shape;
        let dense = LayerPlan::new(device, &dense_spec(spec, sparse), shape)?;
        let (rows, stride, width) = match sparse.dynamic() {
            Some(_) => (quantized_input::padded_n(n), LayerPlan::padded_k(k), 1),
            None => (n, k, sparse.kind.width()),
        };
        let name = format!("unpack_{}", format_name(sparse));
        let blocks = check_size("the number of blocks", (rows * stride / 4).div_ceil(THREADS))?;
        let [values, positions] = stored_reads(sparse, shape);
        let is_int4 = sparse.weight == SparseWeight::Int4;
        let mut reads = vec![values];
        reads.extend(weight_scale_bytes(sparse, shape).filter(|_| is_int4).map(|bytes| ("group scales", bytes)));
        reads.push(positions);
        let bytes = rows * stride * width;
        let extent = KernelArgs { reads, writes: vec![("w", bytes)], sizes: (n as u64, rows as u64) };
        let geometry = LaunchGeometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let macros = macros(&name, sparse, k, stride);
        let expand = CudaKernel::prepare(device, CudaSource::SparseToDense, &name, macros, extent, geometry)?;
        let algorithm = format!("{name}: {THREADS} threads per block, four values per thread");
        Ok(Self { expand, weight: device.allocate(bytes)?, dense, is_int4, algorithm })
    }
}

impl LayerGemm for ExpandedLayer {
    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        let weight = operands.weight;
        let positions = weight.positions.ok_or(NativeError::PlanMismatch)?;
        let group_scales = weight.scales.filter(|_| self.is_int4);
        let inputs = [weight.codes].into_iter().chain(group_scales).chain([positions]);
        self.expand.enqueue_all(inputs.map(|buffer| &buffer.memory), [&mut self.weight.memory])?;
        let weight = PackedTensor { codes: &self.weight, positions: None, ..weight };
        self.dense.gemm.enqueue(LayerOperands { weight, ..operands }, y)
    }

    fn algorithm(&self) -> String {
        format!("{}; then {}", self.algorithm, self.dense.algorithm())
    }
}

fn macros(name: &str, spec: SparseSpec, k: usize, stride: usize) -> Vec<String> {
    let mut macros = common_macros(name, spec.kind, 1);
    // f32 weights are copied unchanged; int4 weights are dequantized to any dtype.
    macros.extend(format_macros(spec, k));
    macros.extend([format!("STRIDE={stride}u"), format!("THREADS={THREADS}")]);
    macros
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype;
    use crate::native::{nvrtc::tests::assert_compiles, sparse_gemm::tests::all_specs};

    #[test]
    #[ignore = "needs NVRTC"]
    fn unpack_source_compiles_for_every_spec() {
        for spec in all_specs() {
            assert_compiles(CudaSource::SparseToDense, &macros("unpack", spec, 132, 160));
        }
        assert!(all_specs().iter().any(|spec| spec.kind == Dtype::F32 && spec.bits() == 32));
    }
}
