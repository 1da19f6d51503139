//! Gradients of RMS normalization.

use super::{
    CudaDevice, CudaKernel, DeviceBuffer, NativeError, RmsNormSpec, column_sums,
    driver::DeviceMemory,
    kernel::KernelArgs,
    nvrtc::CudaSource,
    row_tile::RowTile,
    sizes::{MULTIPROCESSORS, check_matrix},
};
use crate::Dtype;

/// Plan of the gradients of x and of the gain, from x, the gain and the upstream gradient. The gradient of the gain has
/// the dtype of the gain.
#[derive(Debug)]
pub struct RmsNormGradientPlan {
    kernel: CudaKernel,
    partial: DeviceMemory,
    gain_gradient: CudaKernel,
}

/// Gradient of a residual branch that bypasses the normalization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResidualGradient {
    /// No residual branch.
    None,
    /// Added to the gradient of the input.
    Added,
}

impl RmsNormGradientPlan {
    /// Compiles for `rows` rows of `columns` elements.
    pub fn new(
        device: &CudaDevice,
        kind: Dtype,
        spec: RmsNormSpec,
        past: ResidualGradient,
        (rows, columns): (usize, usize),
    ) -> Result<Self, NativeError> {
        check_matrix(rows, columns)?;
        let tile = RowTile::for_row_pair(kind, columns);
        let blocks = block_count(tile, rows);
        let workers = blocks * tile.rows;
        let name = format!("rms_norm_gradient_{kind}");
        let (bytes, partial) = (rows * columns * kind.width(), 4 * workers * columns);
        let of_gain = if spec.gain_is_f32 { Dtype::F32 } else { kind };
        let mut reads = vec![("x", bytes), ("gain", of_gain.width() * columns), ("dy", bytes)];
        if past == ResidualGradient::Added {
            reads.push(("residual gradient", bytes));
        }
        let args = KernelArgs::new(reads, [("dx", bytes), ("partial", partial)], (rows, columns));
        let (macros, geometry) = (macros(&name, kind, (spec, past), tile), tile.geometry_of_blocks(blocks));
        let kernel = CudaKernel::prepare(device, CudaSource::RmsNormGradient, &name, macros, args, geometry)?;
        let described = tile.describe(&name, "row read twice");
        Ok(Self {
            kernel: kernel.with_description(format!("{described}, {blocks} blocks")),
            partial: DeviceMemory::allocate(device.stream(), partial)?,
            gain_gradient: column_sums::kernel(device, of_gain, workers, columns)?,
        })
    }

    /// Enqueues a launch; `past` is the gradient of the residual branch, if the plan has one.
    pub fn enqueue(
        &mut self,
        [x, gain, dy]: [&DeviceBuffer; 3],
        past: Option<&DeviceBuffer>,
        dx: &mut DeviceBuffer,
        dgain: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        let inputs = [x, gain, dy].into_iter().chain(past).map(|input| &input.memory);
        self.kernel.enqueue_all(inputs, [&mut dx.memory, &mut self.partial])?;
        self.gain_gradient.enqueue_all([&self.partial], [&mut dgain.memory])
    }

    /// Kernel names and launch configuration.
    pub fn algorithm(&self) -> String {
        format!("{}; then {}", self.kernel.algorithm(), self.gain_gradient.algorithm())
    }
}

/// Number of blocks: as many as are resident, unless a block would have so few rows that its partial sums dominate the
/// memory traffic.
fn block_count(tile: RowTile, rows: usize) -> usize {
    const RESIDENT_THREADS: usize = MULTIPROCESSORS * 768;
    const MIN_ROWS_PER_WORKER: usize = 4;
    (RESIDENT_THREADS / (tile.threads * tile.rows)).min(rows.div_ceil(tile.rows * MIN_ROWS_PER_WORKER)).max(1)
}

fn macros(name: &str, kind: Dtype, (spec, past): (RmsNormSpec, ResidualGradient), tile: RowTile) -> Vec<String> {
    let mut macros = tile.kernel_macros(name, kind);
    macros.push(format!("WEIGHT_F32={}", u8::from(spec.gain_is_f32)));
    macros.push(format!("ADD_RESIDUAL={}", u8::from(past == ResidualGradient::Added)));
    macros.push(format!("EPSILON={:e}f", spec.epsilon));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_row_tile() {
        for kind in Dtype::ALL {
            for columns in [1, 257, 768, 4096, 16384, 32768, 70001] {
                for (gain_is_f32, past) in [(true, ResidualGradient::None), (false, ResidualGradient::Added)] {
                    let spec = (RmsNormSpec { gain_is_f32, epsilon: 1e-6 }, past);
                    assert_compiles(
                        CudaSource::RmsNormGradient,
                        &macros("gradient", kind, spec, RowTile::for_row_pair(kind, columns)),
                    );
                }
            }
        }
    }

    #[test]
    fn every_block_has_rows() {
        let at = |rows, columns| block_count(RowTile::for_row_pair(Dtype::Bf16, columns), rows);
        assert_eq!((at(16384, 4096), at(1, 4096), at(5, 4096), at(16384, 32)), (396, 1, 2, 792));
    }
}
