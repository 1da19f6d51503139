//! Separate epilogue of a quantized GEMM: dequantizes the accumulators.

use super::{
    CudaDevice, CudaKernel, LinearShape, NativeError,
    driver::DeviceMemory,
    kernel::{KernelArgs, LaunchGeometry, common_macros},
    layer_specs::DynamicSpec,
    nvrtc::CudaSource,
};

/// Kernel that applies row and column scales, activation and addend to GEMM accumulators, with the accumulator buffer.
#[derive(Debug)]
pub(super) struct EpilogueKernel {
    kernel: CudaKernel,
    pub(super) accumulators: DeviceMemory,
    pub(super) algorithm: String,
}

const THREADS: usize = 256;
/// Rows per thread, and so loads in flight.
const ROWS_PER_THREAD: usize = 4;

impl EpilogueKernel {
    /// Compiles for y[m, n]. The accumulators have `filled.0` rows of `filled.1` elements, a multiple of four.
    pub(super) fn new(
        device: &CudaDevice,
        spec: DynamicSpec,
        shape: LinearShape,
        filled: (usize, usize),
    ) -> Result<Self, NativeError> {
        let LinearShape { m, n, .. } = shape;
        let name = format!("finish_{}{}", spec.format_name(), spec.epilogue_name());
        let width = vector_width(n);
        let sums = 4 * filled.0 * filled.1;
        let mut reads = vec![("accumulators", sums)];
        reads.extend(spec.scale_reads(shape));
        reads.extend(spec.has_addend.then(|| ("addend", shape.y_bytes(spec.kind))));
        let args = KernelArgs::new(reads, [("y", shape.y_bytes(spec.kind))], (m, n));
        let blocks = m.div_ceil(ROWS_PER_THREAD) * (n / width).div_ceil(THREADS);
        let geometry = LaunchGeometry::new(blocks, (THREADS, 1))?;
        let macros = macros(&name, spec, width, filled.1);
        let kernel = CudaKernel::prepare(device, CudaSource::QuantizedGemmEpilogue, &name, macros, args, geometry)?;
        let accumulators = DeviceMemory::allocate(device.stream(), sums)?;
        let algorithm = format!(
            "{name}: {THREADS} threads per block, {ROWS_PER_THREAD} accesses of {width} accumulators per thread"
        );
        Ok(Self { kernel, accumulators, algorithm })
    }

    /// Enqueues a launch on the accumulators of the preceding GEMM.
    pub(super) fn enqueue(
        &self,
        [rows, columns]: [&DeviceMemory; 2],
        added: Option<&DeviceMemory>,
        y: &mut DeviceMemory,
    ) -> Result<(), NativeError> {
        self.kernel.enqueue_all([&self.accumulators, rows, columns].into_iter().chain(added), [y])
    }
}

/// Accumulators per access: 16 bytes if the rows of y allow it.
fn vector_width(n: usize) -> usize {
    if n.is_multiple_of(4) { 4 } else { 1 }
}

fn macros(name: &str, spec: DynamicSpec, width: usize, stride: usize) -> Vec<String> {
    let mut macros = common_macros(name, spec.kind, width);
    macros.extend([
        format!("THREADS={THREADS}"),
        format!("ROWS_PER_THREAD={ROWS_PER_THREAD}"),
        format!("STRIDE={stride}ull"),
    ]);
    macros.extend(spec.macros());
    macros.extend(spec.epilogue_macros());
    macros
}

#[cfg(test)]
mod tests {
    use super::super::{layer_specs::tests::dynamic_specs, nvrtc::tests::assert_compiles};
    use super::*;
    use crate::Activation;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_spec_and_activation() {
        let activations = Activation::ALL.map(Some).into_iter().chain([None]).cycle();
        for (spec, activation) in dynamic_specs().zip(activations) {
            for (n, added) in [(17, true), (4096, false)] {
                let spec = DynamicSpec { activation, has_addend: added, ..spec };
                assert_compiles(
                    CudaSource::QuantizedGemmEpilogue,
                    &macros("finish", spec, vector_width(n), n.next_multiple_of(16)),
                );
            }
        }
    }
}
