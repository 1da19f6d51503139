//! Separate kernel for scales, and for output dtypes that cuBLASLt does not support.

use super::{
    CudaDevice, CudaKernel, Float8Output, LinearShape, NativeError,
    driver::DeviceMemory,
    kernel::{KernelArgs, LaunchGeometry, common_macros},
    nvrtc::CudaSource,
};

/// Kernel that scales or rounds f32 accumulators, with the accumulator buffer.
#[derive(Debug)]
pub(super) struct ScaleKernel {
    pub(super) kernel: CudaKernel,
    pub(super) accumulators: DeviceMemory,
}

const THREADS: usize = 256;

impl ScaleKernel {
    pub(super) fn new(device: &CudaDevice, shape: LinearShape, output: Float8Output) -> Result<Self, NativeError> {
        let LinearShape { m, n, .. } = shape;
        let width = if n.is_multiple_of(4) { 4 } else { 1 };
        let name = "scale_epilogue";
        let bytes = 4 * m * n;
        let mut reads = vec![("accumulators", bytes)];
        if output.inputs() > 2 {
            reads.extend([("row scales", 4 * m), ("column scales", 4 * n)]);
        }
        if output == Float8Output::ScaledAdded {
            reads.push(("addend", bytes));
        }
        let args = KernelArgs::new(reads, [("y", shape.y_bytes(output.kind()))], (m, n));
        let geometry = LaunchGeometry::new(m * (n / width).div_ceil(THREADS), (THREADS, 1))?;
        let macros = macros(name, output, width);
        let kernel = CudaKernel::prepare(device, CudaSource::ScaleEpilogue, name, macros, args, geometry)?;
        Ok(Self { kernel, accumulators: DeviceMemory::allocate(device.stream(), bytes)? })
    }
}

fn macros(name: &str, output: Float8Output, width: usize) -> Vec<String> {
    let mut macros = common_macros(name, output.kind(), width);
    macros.push(format!("THREADS={THREADS}"));
    macros.push(format!("INPUTS={}", output.inputs()));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;
    use crate::Dtype;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_output() {
        use Float8Output::{Plain, Scaled, ScaledAdded};
        for output in Dtype::ALL.into_iter().flat_map(|kind| [Plain(kind), Scaled(kind)]).chain([ScaledAdded]) {
            for width in [1, 4] {
                assert_compiles(CudaSource::ScaleEpilogue, &macros("scale_epilogue", output, width));
            }
        }
    }
}
