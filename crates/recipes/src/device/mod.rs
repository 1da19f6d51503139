//! Quantizing and reading back on devices, with the bits that the slice implementation gives.

#[cfg(feature = "cube")]
mod access;
#[cfg(feature = "cube")]
pub(crate) mod cast;
#[cfg(feature = "cube")]
#[allow(
    missing_docs,
    clippy::collapsible_if,
    reason = "CubeCL adds undocumented items, and tells what is known at compile time by nesting"
)]
mod cast_kernels;
#[cfg(feature = "cube")]
#[allow(
    missing_docs,
    clippy::collapsible_if,
    reason = "CubeCL adds undocumented items, and tells what is known at compile time by nesting"
)]
mod code_kernel;
#[cfg(feature = "cube")]
mod codes;
#[cfg(feature = "cube")]
mod cube;
#[cfg(feature = "cpu")]
mod flex;
#[cfg(feature = "cube")]
mod fusion;
#[cfg(feature = "cube")]
#[allow(
    missing_docs,
    clippy::collapsible_if,
    reason = "CubeCL adds undocumented items, and tells what is known at compile time by nesting"
)]
mod kernels;
#[cfg(feature = "cube")]
mod matrix;
#[cfg(feature = "cube")]
#[allow(
    missing_docs,
    clippy::collapsible_if,
    clippy::if_same_then_else,
    reason = "CubeCL adds undocumented items, and tells what is known at compile time by nesting"
)]
mod matrix_kernel;
#[cfg(feature = "cube")]
mod product;
#[cfg(feature = "cube")]
#[allow(
    missing_docs,
    clippy::if_same_then_else,
    reason = "CubeCL adds undocumented items; what is known at compile time is told apart from what is not"
)]
mod product_kernel;
#[cfg(feature = "cube")]
#[allow(missing_docs, reason = "CubeCL adds undocumented items")]
mod staged_kernel;
#[cfg(feature = "cube")]
mod tile_kernel;

use crate::Dtype;
use crate::format::Format;
use crate::stored::{Reading, Stored};
use burn::tensor::backend::Backend;
use burn::tensor::ops::{FloatTensor, IntTensor};
use burn::tensor::{DType, Int, Tensor, TensorData, TensorPrimitive};
use std::ops::Range;

/// A burn backend on which tensors can be quantized.
pub trait QuantBackend: Backend {
    /// Quantizes the rows of a float tensor. Scales and zeros come back in f32, see [`Format::unpacked`]. A group that
    /// holds an infinity or a NaN gets the scale NaN.
    fn quantize_codes(tensor: FloatTensor<Self>, format: Format) -> Stored<IntTensor<Self>>;

    /// Reads some rows of a stored tensor as floats.
    fn read(stored: &Stored<IntTensor<Self>>, rows: Range<usize>, reading: Reading, dtype: Dtype) -> FloatTensor<Self>;

    /// Whether a device has a kernel for [`QuantBackend::product`] with an input of a type and so many rows.
    fn has_product(_device: &Self::Device, _weight: &Format, _input: DType, _rows: usize) -> bool {
        false
    }

    /// Whether there are kernels for [`QuantBackend::product_of_codes`].
    fn has_code_product(_input: &Format, _weight: &Format) -> bool {
        false
    }

    /// `input · weightᵀ` in the input's type, rounded once, by a kernel that takes the weight as it is stored, where there
    /// is one; see [`Format::has_product`].
    fn product(_input: FloatTensor<Self>, _weight: &Stored<IntTensor<Self>>) -> Option<FloatTensor<Self>> {
        None
    }

    /// `input · weightᵀ` of codes with codes, under the scales of both: rounded to `steps` before and after each of them, the
    /// input's first. By a kernel, where there is one; see [`Format::has_code_product`].
    fn product_of_codes(
        _input: &Stored<IntTensor<Self>>,
        _weight: &Stored<IntTensor<Self>>,
        _steps: Dtype,
        _dtype: Dtype,
    ) -> Option<FloatTensor<Self>> {
        None
    }
}

/// A quantized tensor on a device.
#[derive(Debug, Clone)]
pub struct DeviceTensor<B: Backend>(Stored<IntTensor<B>>);

impl<B: QuantBackend> DeviceTensor<B> {
    /// Quantizes a tensor where it is.
    pub fn quantize(tensor: Tensor<B, 2>, format: Format) -> Self {
        Self(B::quantize_codes(tensor.into_primitive().tensor(), format))
    }

    /// Takes a tensor that was stored on the host to a device.
    pub fn upload(stored: Stored<Vec<u32>>, device: &B::Device) -> Self {
        let upload = |words: Vec<u32>| {
            let shape = [words.len()];
            Tensor::<B, 1, Int>::from_data(TensorData::new(words, shape), (device, DType::U32)).into_primitive()
        };
        Self(stored.map(upload))
    }

    /// See [`QuantBackend::product`].
    pub fn product(&self, input: Tensor<B, 2>) -> Option<Tensor<B, 2>> {
        let product = B::product(input.into_primitive().tensor(), &self.0)?;
        Some(Tensor::from_primitive(TensorPrimitive::Float(product)))
    }

    /// See [`QuantBackend::product_of_codes`].
    pub fn product_of_codes(&self, input: &Self, steps: Dtype, dtype: Dtype) -> Option<Tensor<B, 2>> {
        let product = B::product_of_codes(&input.0, &self.0, steps, dtype)?;
        Some(Tensor::from_primitive(TensorPrimitive::Float(product)))
    }

    /// Whether there are scales.
    pub fn has_scales(&self) -> bool {
        self.0.format.scales(self.0.rows, self.0.cols) > 0
    }

    /// Whether there is a second level of scales.
    pub fn has_outer_scales(&self) -> bool {
        self.0.outer.is_some()
    }

    /// See [`Format::rounds_to_integers`].
    pub fn rounds_to_integers(&self) -> bool {
        self.0.format.rounds_to_integers()
    }

    /// Rows and columns.
    pub fn size(&self) -> (usize, usize) {
        (self.0.rows, self.0.cols)
    }

    /// Reads some rows as floats.
    pub fn read(&self, rows: Range<usize>, reading: Reading, dtype: Dtype) -> Tensor<B, 2> {
        Tensor::from_primitive(TensorPrimitive::Float(B::read(&self.0, rows, reading, dtype)))
    }

    /// The stored words, read back to the host.
    pub fn download(self) -> Stored<Vec<u32>> {
        self.0.map(|words| {
            let words = Tensor::<B, 1, Int>::from_primitive(words).into_data();
            words.convert::<u32>().to_vec().expect("the words were just converted to u32")
        })
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> u64 {
        self.0.format.bytes(self.0.rows, self.0.cols)
    }
}
