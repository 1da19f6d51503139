//! Products that no model of ours asks for: of f32 rounded to TF32, which some backends do unasked, and of e4m3 codes.

use calorimeter_kernels::Dtype;
use calorimeter_kernels::native::{
    Buffer, Float8Linear, Float8Output, Float8Sums, Linear, LinearShape, Machine, NativeError,
};
use calorimeter_timing::{Failure, Work};
use std::sync::Arc;

/// A square product.
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
    /// Of f32 numbers.
    pub fn tf32(machine: &Arc<Machine>, size: usize) -> Result<Self, NativeError> {
        let plan = Linear::with_tf32(machine, shape(size))?;
        // Data of every magnitude's mantissa: zeros would let the clock rise.
        let values: Vec<u8> =
            (0..size * size).flat_map(|i| (scrambled(i) as f32 / 16_777_216.0 - 0.5).to_le_bytes()).collect();
        Self::of(machine, Plan::Tf32(plan), &values, size * size * Dtype::F32.width())
    }

    /// Of codes, summed as fast as the device can.
    pub fn e4m3(machine: &Arc<Machine>, size: usize) -> Result<Self, NativeError> {
        let output = Float8Output::Plain(Dtype::Bf16);
        let plan = Float8Linear::new(machine, shape(size), output, Float8Sums::Fast)?;
        // Of either sign, between 2⁻⁴ and 2.
        let code = |i| (scrambled(i) >> 16 & 0x80) as u8 | (0x18 + (scrambled(i) >> 8) % 0x28) as u8;
        let codes: Vec<u8> = (0..size * size).map(code).collect();
        Self::of(machine, Plan::E4m3(plan), &codes, size * size * Dtype::Bf16.width())
    }

    fn of(machine: &Arc<Machine>, plan: Plan, operand: &[u8], y: usize) -> Result<Self, NativeError> {
        let (x, w, y) = (machine.upload(operand)?, machine.upload(operand)?, machine.allocate(y)?);
        Ok(Self { machine: machine.clone(), plan, x, w, y })
    }
}

fn shape(size: usize) -> LinearShape {
    LinearShape { m: size, k: size, n: size }
}

/// 24 bits.
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
