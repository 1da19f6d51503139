//! The weight of a linear layer as it is stored on the device, and the product that takes it.

use super::numbers::bytes;
use crate::ZooError;
use crate::packed::packed_form;
use calorimeter_kernels::native::{Buffer, Linear, LinearShape, Machine, NativeError, PackedLinear, PackedWeight};
use calorimeter_recipes::stored::Stored;
use calorimeter_recipes::{Element, Prepared, Treatment};
use std::sync::Arc;

/// A weight ready to be taken to the device: the very words that a recipe stores.
pub enum HostWeight {
    Plain(Vec<u8>),
    Packed(Stored<Vec<u8>>),
}

/// The same on the device.
pub enum DeviceWeight {
    Plain(Buffer),
    Packed(PackedWeight),
}

/// A plan of the product with it.
pub enum Product {
    Plain(Box<Linear>),
    Packed(PackedLinear),
}

impl HostWeight {
    /// From a weight that [`Treatment::prepare`] has made ready.
    pub fn new(weight: Prepared) -> Result<Self, ZooError> {
        match weight {
            Prepared::Dense(weight) => Ok(Self::Plain(bytes(weight.values(), Element::Float(weight.dtype())))),
            Prepared::Stored(stored) => {
                let bytes = |words: Vec<u32>| words.into_iter().flat_map(u32::to_le_bytes).collect();
                Ok(Self::Packed(stored.map(bytes)))
            }
            _ => Err(ZooError::Unsupported("`native` has no kernel for weights stored in blocks".into())),
        }
    }

    /// Copies it to the device.
    pub fn upload(&self, machine: &Arc<Machine>) -> Result<DeviceWeight, NativeError> {
        Ok(match self {
            Self::Plain(bytes) => DeviceWeight::Plain(machine.upload(bytes)?),
            Self::Packed(Stored { codes, scales, zeros, .. }) => DeviceWeight::Packed(PackedWeight {
                codes: machine.upload(codes)?,
                scales: machine.upload(scales)?,
                zeros: zeros.as_ref().map(|zeros| machine.upload(zeros)).transpose()?,
            }),
        })
    }
}

impl DeviceWeight {
    /// Bytes of all its parts.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Plain(weight) => weight.len() as u64,
            Self::Packed(weight) => weight.bytes() as u64,
        }
    }
}

impl Product {
    /// The product for weights that a treatment stores.
    pub fn new(machine: &Arc<Machine>, treatment: &Treatment, shape: LinearShape) -> Result<Self, NativeError> {
        Ok(match packed_form(treatment) {
            Some(form) => Self::Packed(PackedLinear::new(machine, form, shape)?),
            None => Self::Plain(Box::new(Linear::new(machine, treatment.dtype, shape)?)),
        })
    }

    /// Enqueues one run.
    pub fn enqueue(&mut self, x: &Buffer, w: &DeviceWeight, y: &mut Buffer) -> Result<(), ZooError> {
        match (self, w) {
            (Self::Plain(linear), DeviceWeight::Plain(w)) => Ok(linear.enqueue(x, w, y)?),
            (Self::Packed(linear), DeviceWeight::Packed(w)) => Ok(linear.enqueue(x, w, y)?),
            _ => Err(ZooError::Device("a weight that is not stored as its product takes it".into())),
        }
    }

    /// Bytes of the input.
    pub fn x_bytes(&self) -> usize {
        match self {
            Self::Plain(linear) => linear.x_bytes(),
            Self::Packed(linear) => linear.x_bytes(),
        }
    }

    /// Bytes of the output.
    pub fn y_bytes(&self) -> usize {
        match self {
            Self::Plain(linear) => linear.y_bytes(),
            Self::Packed(linear) => linear.y_bytes(),
        }
    }

    /// Which kernels run, and how they were chosen or cut up.
    pub fn algorithm(&self) -> String {
        match self {
            Self::Plain(linear) => linear.algorithm(),
            Self::Packed(linear) => linear.algorithm(),
        }
    }
}
