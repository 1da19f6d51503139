//! Dequantization of packed weights.

use std::sync::Arc;

use super::{
    CudaDevice, LinearShape, NativeError,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros, vector_width},
    layer_specs::{PackedFormat, PackedSpec},
    nvrtc::CudaSource,
    sizes::check_size,
};

/// Kernel that dequantizes a packed weight to the operand dtype.
#[derive(Debug)]
pub(super) struct DequantizeKernel {
    pub(super) kernel: CudaKernel,
    pub(super) algorithm: String,
}

const THREADS: usize = 128;
/// Vector accesses per thread: four loads in flight.
const VECTORS_PER_THREAD: usize = 4;

impl DequantizeKernel {
    /// Compiles for a checked specification and checked sizes.
    pub(super) fn new(device: &Arc<CudaDevice>, spec: PackedSpec, shape: LinearShape) -> Result<Self, NativeError> {
        let LinearShape { k, n, .. } = shape;
        let name = format!("unpack_{}_{}", spec.weight.name(), spec.operand_dtype());
        let width = row_vector_width(spec, k);
        let blocks = check_size("the number of blocks", n * (k / width).div_ceil(THREADS * VECTORS_PER_THREAD))?;
        let geometry = LaunchGeometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let writes = vec![("w", shape.w_bytes(spec.operand_dtype()))];
        let extent = KernelArgs { reads: spec.reads(shape), writes, sizes: (n as u64, k as u64) };
        let macros = macros(&name, spec, k);
        Ok(Self {
            kernel: CudaKernel::prepare(device, CudaSource::DequantizeWeight, &name, macros, extent, geometry)?,
            algorithm: format!(
                "{name}: {THREADS} threads per block, {VECTORS_PER_THREAD} accesses of {width} elements per thread"
            ),
        })
    }
}

/// Elements per access: 16 bytes if the row length allows it.
fn row_vector_width(spec: PackedSpec, k: usize) -> usize {
    let most = vector_width(spec.operand_dtype());
    if k.is_multiple_of(most) { most } else { 1 }
}

fn macros(name: &str, spec: PackedSpec, k: usize) -> Vec<String> {
    let mut macros = common_macros(name, spec.operand_dtype(), row_vector_width(spec, k));
    macros.extend(spec.macros_for_k(k));
    macros.extend([format!("THREADS={THREADS}"), format!("VECTORS_PER_THREAD={VECTORS_PER_THREAD}")]);
    macros
}

#[cfg(test)]
mod tests {
    use super::super::{nvrtc::tests::assert_compiles, packed_weight::tests::all_specs};
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_spec_and_access() {
        for (at, spec) in all_specs().into_iter().enumerate() {
            for k in [129, 1000, 4096].into_iter().skip(at % 3).step_by(3) {
                assert_compiles(CudaSource::DequantizeWeight, &macros("unpack", spec, k));
            }
        }
    }
}
