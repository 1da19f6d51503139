//! Tensor of any element type on a burn backend.

use crate::element_bytes::{decode, par_map};
use crate::{Matrix, Output, RotationAxis, ZooError};
use burn::tensor::{DType, Int, Tensor, TensorData, backend::Backend};
use calorimeter_recipes::{Dtype, Element, ElementCodec, FloatType};
use half::{bf16, f16};

/// Operand of a pass: matrix of floats or integers; the latter may be encoded 8-bit floats.
#[derive(Debug, Clone)]
pub enum TensorValue<B: Backend> {
    /// Float tensor.
    Float(Tensor<B, 2>),
    /// Integer tensor, or encoded values of eight bits.
    Int(Tensor<B, 2, Int>),
}

/// Operator with its inputs on a device; each call enqueues it once and returns its outputs.
pub type Pass<B> = Box<dyn Fn() -> Vec<TensorValue<B>> + Send>;

/// Returns the burn dtype of an element type; an error if burn has none.
pub(crate) fn burn_dtype(element: Element) -> Result<DType, ZooError> {
    match element {
        Element::Float(dtype) => Ok(dtype.burn()),
        Element::Signed(32) => Ok(DType::I32),
        element if element.bits() == 8 => Ok(DType::U8),
        element => Err(ZooError::Unsupported(format!("burn has no tensors of {element}"))),
    }
}

impl<B: Backend> TensorValue<B> {
    /// Uploads a matrix to a device.
    pub fn upload(matrix: &Matrix, element: Element, device: &B::Device) -> Result<Self, ZooError> {
        let (dtype, size) = (burn_dtype(element)?, [matrix.rows, matrix.cols]);
        if !B::supports_dtype(device, dtype) {
            let name = B::name(device);
            return Err(ZooError::Unsupported(format!("{element} is not available on {name}")));
        }
        let data = match element {
            Element::Float(Dtype::F32) => TensorData::new(par_map(&matrix.values, |value| value), size),
            Element::Float(Dtype::Bf16) => TensorData::new(par_map(&matrix.values, bf16::from_f32), size),
            Element::Float(Dtype::F16) => TensorData::new(par_map(&matrix.values, f16::from_f32), size),
            Element::Signed(32) => TensorData::new(par_map(&matrix.values, |value| value as i32), size),
            element => TensorData::new(par_map(&matrix.values, |value| element.encode(value) as u8), size),
        };
        Ok(match element {
            Element::Float(_) => Self::Float(Tensor::from_data(data, (device, dtype))),
            _ => Self::Int(Tensor::from_data(data, (device, dtype))),
        })
    }

    /// Rotates rows or columns of a float tensor into new memory; the last ones come first.
    ///
    /// `None` for integer tensors and single elements, which the host uploads instead.
    pub(crate) fn rotated(&self, along: RotationAxis, by: usize) -> Option<Self> {
        let Self::Float(tensor) = self else { return None };
        let [rows, cols] = tensor.dims();
        let by_columns = if by == 0 { rows == 1 } else { along == RotationAxis::Columns };
        let (dim, size) = if by_columns { (1, cols) } else { (0, rows) };
        if size < 2 {
            return None;
        }
        // A rotation by zero is also split and concatenated; otherwise it would share memory.
        let cut = if by == 0 { size / 2 } else { size - by };
        let mut parts = vec![tensor.clone().slice_dim(dim, cut..size), tensor.clone().slice_dim(dim, 0..cut)];
        if by == 0 {
            parts.reverse();
        }
        Some(Self::Float(Tensor::cat(parts, dim)))
    }

    /// Returns the burn dtype.
    pub fn dtype(&self) -> DType {
        match self {
            Self::Float(tensor) => tensor.dtype(),
            Self::Int(tensor) => tensor.dtype(),
        }
    }

    /// Returns the float tensor; panics unless the operator declared floats.
    pub fn float(self) -> Tensor<B, 2> {
        match self {
            Self::Float(tensor) => tensor,
            Self::Int(_) => unreachable!("the operator declared this input as floats"),
        }
    }

    /// Returns the integer tensor; panics unless the operator declared an integer or 8-bit type.
    pub fn int(self) -> Tensor<B, 2, Int> {
        match self {
            Self::Int(tensor) => tensor,
            Self::Float(_) => unreachable!("the operator declared this input as integers"),
        }
    }

    /// Downloads the tensor and decodes it to f32.
    pub fn download(self, element: Element) -> Result<Output, ZooError> {
        let (data, [rows, cols]) = match self {
            Self::Float(tensor) => (tensor.clone().try_into_data(), tensor.dims()),
            Self::Int(tensor) => (tensor.clone().try_into_data(), tensor.dims()),
        };
        let data = data.map_err(|error| ZooError::Device(format!("{error:?}")))?;
        let values = match (data.dtype, element) {
            (DType::F32, Element::Float(_)) => decode(&data.bytes, Element::Float(Dtype::F32)),
            (DType::BF16, Element::Float(_)) => decode(&data.bytes, Element::Float(Dtype::Bf16)),
            (DType::F16, Element::Float(_)) => decode(&data.bytes, Element::Float(Dtype::F16)),
            (DType::I32, Element::Signed(32)) => decode(&data.bytes, element),
            (DType::U8, element) if element.bits() == 8 => decode(&data.bytes, element),
            (_, Element::Float(_)) => {
                let floats = data.convert::<f32>().to_vec::<f32>();
                floats.map_err(|error| ZooError::Device(format!("{error:?}")))?
            }
            // Encoded values that the backend stores in wider integers.
            _ => {
                let codes = data.convert::<i64>().to_vec::<i64>();
                let codes = codes.map_err(|error| ZooError::Device(format!("{error:?}")))?;
                codes.into_iter().map(|code| element.decode(code as u32)).collect()
            }
        };
        Ok(Output { rows, cols, values })
    }

    /// Allocates a tensor of NaN. Freed just before a pass, its memory is reused by the pool for the output.
    pub fn poison(rows: u64, cols: u64, element: Element, device: &B::Device) -> Result<Self, ZooError> {
        let (dtype, size) = (burn_dtype(element)?, [rows as usize, cols as usize]);
        Ok(match element {
            Element::Float(_) => Self::Float(Tensor::full(size, f32::NAN, (device, dtype))),
            // All ones is NaN in e4m3 and e5m2.
            Element::Signed(32) => Self::Int(Tensor::full(size, -1, (device, dtype))),
            _ => Self::Int(Tensor::full(size, 255, (device, dtype))),
        })
    }
}
