//! Matmuls that only probes use: f32 rounded to TF32, which some backends do by default, and e4m3.

use calorimeter_kernels::Dtype;
use calorimeter_kernels::native::{
    Buffer, Float8Linear, Float8Output, Float8Sums, Linear, LinearShape, Machine, NativeError,
};
use calorimeter_shapes::Shape;
use calorimeter_timing::{Failure, Work};
use std::ops::Range;
use std::sync::Arc;

/// Matmul of two different matrices.
pub struct Product {
    machine: Arc<Machine>,
    plan: Plan,
    x: Buffer,
    w: Buffer,
    y: Buffer,
}

enum Plan {
    Tf32(Linear),
    E4m3(Float8Linear),
}

impl Product {
    /// Creates a matmul of f32 matrices in TF32.
    pub fn tf32(machine: &Arc<Machine>, form: Shape) -> Result<Self, NativeError> {
        // Pseudo-random mantissas: zeros would reduce power and raise the clock.
        let number = |i| (scrambled(i) as f32 / 16_777_216.0 - 0.5).to_le_bytes();
        let plan = Plan::Tf32(Linear::with_tf32(machine, sizes(form))?);
        Self::of(machine, plan, form, number, Dtype::F32)
    }

    /// Creates a matmul of e4m3 matrices with fast accumulation.
    pub fn e4m3(machine: &Arc<Machine>, form: Shape) -> Result<Self, NativeError> {
        let output = Dtype::Bf16;
        // Values of both signs between 2⁻⁴ and 2.
        let code = |i| [(scrambled(i) >> 16 & 0x80) as u8 | (0x18 + (scrambled(i) >> 8) % 0x28) as u8];
        let plan = Float8Linear::new(machine, sizes(form), Float8Output::Plain(output), Float8Sums::Fast)?;
        Self::of(machine, Plan::E4m3(plan), form, code, output)
    }

    fn of<const BYTES: usize>(
        machine: &Arc<Machine>,
        plan: Plan,
        form: Shape,
        number: impl Fn(usize) -> [u8; BYTES],
        output: Dtype,
    ) -> Result<Self, NativeError> {
        let [m, k, n] = form.dims();
        let numbers = |range: Range<usize>| range.flat_map(&number).collect::<Vec<u8>>();
        // The second matrix continues the sequence of the first.
        let (x, w) = (machine.upload(&numbers(0..m * k))?, machine.upload(&numbers(m * k..m * k + n * k))?);
        Ok(Self { machine: machine.clone(), plan, x, w, y: machine.allocate(m * n * output.width())? })
    }
}

fn sizes(form: Shape) -> LinearShape {
    let [m, k, n] = form.dims();
    LinearShape { m, k, n }
}

/// Multiplicative hash with 24 bits.
fn scrambled(i: usize) -> u32 {
    (i as u32).wrapping_mul(2_654_435_761) >> 8
}

impl Work for Product {
    fn launch(&mut self) -> Result<(), Failure> {
        let Self { plan, x, w, y, .. } = self;
        match plan {
            Plan::Tf32(linear) => linear.enqueue(x, w, y)?,
            Plan::E4m3(linear) => linear.enqueue(&[x, w], y)?,
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(self.machine.synchronize()?)
    }
}
