//! e4m3 matmuls whose second operand is not contiguous along k.

use std::sync::Arc;

use super::{
    CudaDevice, CudaKernel, DeviceBuffer, Float8Accumulation, Float8LinearPlan, Float8Output, LinearShape, NativeError,
    transposed_b_gemm,
};

/// Plan of y[m, n] = x[m, k] · w[k, n] for e4m3 values in row-major matrices, with promoted accumulators.
///
/// On Hopper and for few rows, a native kernel transposes w in registers. Otherwise [`CudaKernel::transpose_bytes`]
/// transposes w for [`Float8LinearPlan`]. k and n must be multiples of 16.
#[derive(Debug)]
pub struct Float8MatmulPlan {
    gemm: Float8MatmulKernel,
    output: Float8Output,
}

#[derive(Debug)]
enum Float8MatmulKernel {
    FusedTranspose(CudaKernel),
    SeparateTranspose { turn: CudaKernel, turned: DeviceBuffer, linear: Box<Float8LinearPlan> },
}

impl Float8MatmulPlan {
    /// Selects the implementation and compiles.
    pub fn new(device: &Arc<CudaDevice>, shape: LinearShape, output: Float8Output) -> Result<Self, NativeError> {
        let gemm = if transposed_b_gemm::is_faster(shape, device.compute_capability()) {
            Float8MatmulKernel::FusedTranspose(transposed_b_gemm::kernel(device, shape, output)?)
        } else {
            let turn = CudaKernel::transpose_bytes(device, shape.k, shape.n)?;
            let turned = device.allocate(turn.output_bytes(0))?;
            let linear = Float8LinearPlan::new(device, shape, output, Float8Accumulation::Promoted)?;
            Float8MatmulKernel::SeparateTranspose { turn, turned, linear: Box::new(linear) }
        };
        Ok(Self { gemm, output })
    }

    /// Enqueues a launch. Inputs: x, w; if scaled, m row scales and n column scales; then the addend.
    pub fn enqueue(&mut self, inputs: &[&DeviceBuffer], y: &mut DeviceBuffer) -> Result<(), NativeError> {
        NativeError::check_input_count(self.output.inputs(), inputs.len())?;
        match &mut self.gemm {
            Float8MatmulKernel::FusedTranspose(product) => product.enqueue(inputs.iter().copied(), [y]),
            Float8MatmulKernel::SeparateTranspose { turn, turned, linear } => {
                turn.enqueue([inputs[1]], [&mut *turned])?;
                let mut inputs = inputs.to_vec();
                inputs[1] = turned;
                linear.enqueue(&inputs, y)
            }
        }
    }

    /// Kernels and the algorithm of cuBLASLt.
    pub fn algorithm(&self) -> String {
        match &self.gemm {
            Float8MatmulKernel::FusedTranspose(product) => product.algorithm(),
            Float8MatmulKernel::SeparateTranspose { turn, linear, .. } => {
                format!("{}; then {}", turn.algorithm(), linear.algorithm())
            }
        }
    }
}
