//! Matmuls that only probes use: f32 rounded to TF32, which some backends do by default, and e4m3.

use calorimeter_kernels::Dtype;
use calorimeter_kernels::native::{
    CudaDevice, DeviceBuffer, Float8Accumulation, Float8LinearPlan, Float8Output, LinearPlan, LinearShape, NativeError,
};
use calorimeter_shapes::Shape;
use calorimeter_timing::{Failure, Work};
use std::ops::Range;
use std::sync::Arc;

/// Matmul of two different matrices.
pub(super) struct ProbeMatmul {
    machine: Arc<CudaDevice>,
    kernel: ProbeMatmulKernel,
    x: DeviceBuffer,
    w: DeviceBuffer,
    y: DeviceBuffer,
}

enum ProbeMatmulKernel {
    Tf32(LinearPlan),
    E4m3(Float8LinearPlan),
}

impl ProbeMatmul {
    /// Creates a matmul of f32 matrices in TF32.
    pub(super) fn tf32(machine: &Arc<CudaDevice>, form: Shape) -> Result<Self, NativeError> {
        // Pseudo-random mantissas: zeros would reduce power and raise the clock.
        let number = |i| (hash24(i) as f32 / 16_777_216.0 - 0.5).to_le_bytes();
        let plan = ProbeMatmulKernel::Tf32(LinearPlan::with_tf32(machine, linear_shape(form))?);
        Self::new(machine, plan, form, number, Dtype::F32)
    }

    /// Creates a matmul of e4m3 matrices with fast accumulation.
    pub(super) fn e4m3(machine: &Arc<CudaDevice>, form: Shape) -> Result<Self, NativeError> {
        let output = Dtype::Bf16;
        // Values of both signs between 2⁻⁴ and 2.
        let code = |i| [(hash24(i) >> 16 & 0x80) as u8 | (0x18 + (hash24(i) >> 8) % 0x28) as u8];
        let plan =
            Float8LinearPlan::new(machine, linear_shape(form), Float8Output::Plain(output), Float8Accumulation::Fast)?;
        Self::new(machine, ProbeMatmulKernel::E4m3(plan), form, code, output)
    }

    fn new<const BYTES: usize>(
        machine: &Arc<CudaDevice>,
        plan: ProbeMatmulKernel,
        form: Shape,
        number: impl Fn(usize) -> [u8; BYTES],
        output: Dtype,
    ) -> Result<Self, NativeError> {
        let [m, k, n] = form.dims();
        let numbers = |range: Range<usize>| range.flat_map(&number).collect::<Vec<u8>>();
        // The second matrix continues the sequence of the first.
        let (x, w) = (machine.upload(&numbers(0..m * k))?, machine.upload(&numbers(m * k..m * k + n * k))?);
        Ok(Self { machine: machine.clone(), kernel: plan, x, w, y: machine.allocate(m * n * output.width())? })
    }
}

fn linear_shape(form: Shape) -> LinearShape {
    let [m, k, n] = form.dims();
    LinearShape { m, k, n }
}

/// Multiplicative hash with 24 bits.
fn hash24(i: usize) -> u32 {
    (i as u32).wrapping_mul(2_654_435_761) >> 8
}

impl Work for ProbeMatmul {
    fn launch(&mut self) -> Result<(), Failure> {
        let Self { kernel: plan, x, w, y, .. } = self;
        match plan {
            ProbeMatmulKernel::Tf32(linear) => linear.enqueue(x, w, y)?,
            ProbeMatmulKernel::E4m3(linear) => linear.enqueue(&[x, w], y)?,
        }
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), Failure> {
        Ok(self.machine.synchronize()?)
    }
}
