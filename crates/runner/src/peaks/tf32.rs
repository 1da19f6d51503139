//! Products of f32 operands rounded to TF32, which no case of ours asks for and some backends do unasked.

use calorimeter_kernels::FloatKind;
use calorimeter_kernels::native::{Buffer, Linear, LinearShape, Machine, NativeError};
use calorimeter_timing::{Failure, Work};
use std::sync::Arc;

/// A square product.
pub struct Product {
    machine: Arc<Machine>,
    linear: Linear,
    x: Buffer,
    w: Buffer,
    y: Buffer,
}

impl Product {
    pub fn new(machine: &Arc<Machine>, size: usize) -> Result<Self, NativeError> {
        let linear = Linear::with_tf32(machine, LinearShape { m: size, k: size, n: size })?;
        // Data of every magnitude's mantissa: zeros would let the clock rise.
        let values: Vec<u8> = (0..size * size)
            .flat_map(|i| (((i as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / 16_777_216.0 - 0.5).to_le_bytes())
            .collect();
        let (x, w) = (machine.upload(&values)?, machine.upload(&values)?);
        let y = machine.allocate(size * size * FloatKind::F32.bytes())?;
        Ok(Self { machine: machine.clone(), linear, x, w, y })
    }
}

impl Work for Product {
    fn launch(&mut self) -> Result<(), Failure> {
        Ok(self.linear.enqueue(&self.x, &self.w, &mut self.y)?)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(self.machine.synchronize()?)
    }
}
