//! A tensor of any number type on a burn backend.

use crate::{Matrix, Output, ZooError};
use burn::tensor::{DType, Int, Tensor, TensorData, backend::Backend};
use calorimeter_recipes::FloatType;
use calorimeter_recipes::{Codes, Element};

/// What passes read and write: a matrix of floats, or one of whole numbers, which may be codes of a smaller float type.
#[derive(Debug, Clone)]
pub enum Value<B: Backend> {
    /// Of a float type.
    Float(Tensor<B, 2>),
    /// Whole numbers, or codes of eight bits.
    Codes(Tensor<B, 2, Int>),
}

/// An operator with its inputs on a device: each call enqueues it once and answers its outputs.
pub type Pass<B> = Box<dyn Fn() -> Vec<Value<B>> + Send>;

/// How burn stores an element type; the error says that it does not.
pub fn stored(element: Element) -> Result<DType, ZooError> {
    match element {
        Element::Float(dtype) => Ok(dtype.burn()),
        Element::Signed(32) => Ok(DType::I32),
        element if element.bits() == 8 => Ok(DType::U8),
        element => Err(ZooError::Unsupported(format!("burn has no tensors of {element}"))),
    }
}

impl<B: Backend> Value<B> {
    /// Puts a matrix on a device.
    pub fn upload(matrix: &Matrix, element: Element, device: &B::Device) -> Result<Self, ZooError> {
        let (dtype, size) = (stored(element)?, [matrix.rows, matrix.cols]);
        if !B::supports_dtype(device, dtype) {
            let name = B::name(device);
            return Err(ZooError::Unsupported(format!("{element} is not available on {name}")));
        }
        Ok(match element {
            Element::Float(_) => {
                let data = TensorData::new(matrix.values.to_vec(), size);
                Self::Float(Tensor::from_data(data, (device, dtype)))
            }
            Element::Signed(32) => {
                let values: Vec<i32> = matrix.values.iter().map(|&value| value as i32).collect();
                Self::Codes(Tensor::from_data(TensorData::new(values, size), (device, dtype)))
            }
            element => {
                let codes: Vec<u8> = matrix.values.iter().map(|&value| element.encode(value) as u8).collect();
                Self::Codes(Tensor::from_data(TensorData::new(codes, size), (device, dtype)))
            }
        })
    }

    /// How burn stores it.
    pub fn dtype(&self) -> DType {
        match self {
            Self::Float(tensor) => tensor.dtype(),
            Self::Codes(tensor) => tensor.dtype(),
        }
    }

    /// The float tensor; an operator knows which of its inputs are floats.
    pub fn float(self) -> Tensor<B, 2> {
        match self {
            Self::Float(tensor) => tensor,
            Self::Codes(_) => unreachable!("the operator declared this input as floats"),
        }
    }

    /// The whole numbers; an operator knows which of its inputs are.
    pub fn codes(self) -> Tensor<B, 2, Int> {
        match self {
            Self::Codes(tensor) => tensor,
            Self::Float(_) => unreachable!("the operator declared this input as codes"),
        }
    }

    /// Reads it back as numbers.
    pub fn download(self, element: Element) -> Result<Output, ZooError> {
        let failed = |error: String| ZooError::Device(error);
        match self {
            Self::Float(tensor) => {
                let [rows, cols] = tensor.dims();
                let data = tensor.try_into_data().map_err(|error| failed(format!("{error:?}")))?;
                let values = data.convert::<f32>().to_vec().map_err(|error| failed(format!("{error:?}")))?;
                Ok(Output { rows, cols, values })
            }
            Self::Codes(tensor) => {
                let [rows, cols] = tensor.dims();
                let data = tensor.try_into_data().map_err(|error| failed(format!("{error:?}")))?;
                let codes: Vec<i64> = data.convert::<i64>().to_vec().map_err(|error| failed(format!("{error:?}")))?;
                let values = codes.into_iter().map(|code| element.decode(code as u32)).collect();
                Ok(Output { rows, cols, values })
            }
        }
    }

    /// Memory of its size that holds no number: freed just before a pass, it is what the pool hands out for the output.
    pub fn poison(rows: u64, cols: u64, element: Element, device: &B::Device) -> Result<Self, ZooError> {
        let (dtype, size) = (stored(element)?, [rows as usize, cols as usize]);
        Ok(match element {
            Element::Float(_) => Self::Float(Tensor::full(size, f32::NAN, (device, dtype))),
            // All ones is NaN in e4m3 and e5m2.
            Element::Signed(32) => Self::Codes(Tensor::full(size, -1, (device, dtype))),
            _ => Self::Codes(Tensor::full(size, 255, (device, dtype))),
        })
    }
}
