//! Quantization on devices, bit for bit equal to the host implementation, and GEMMs on packed weights.

#[cfg(feature = "cube")]
pub(crate) mod cast;
#[cfg(feature = "cube")]
#[allow(
    missing_docs,
    clippy::collapsible_if,
    reason = "CubeCL adds undocumented items, and compile-time conditions need nesting"
)]
mod cast_kernels;
#[cfg(feature = "cube")]
mod cube;
#[cfg(feature = "cpu")]
mod flex;
#[cfg(feature = "cube")]
mod fusion;
#[cfg(feature = "cube")]
mod gemm;
#[cfg(feature = "cube")]
#[allow(
    missing_docs,
    clippy::collapsible_if,
    reason = "CubeCL adds undocumented items, and compile-time conditions need nesting"
)]
mod kernels;
#[cfg(feature = "cube")]
mod launch;

use crate::packed_tensor::TensorPart;
use crate::{Dtype, Format, LayerSpec, PackedTensor};
use burn::tensor::backend::Backend;
use burn::tensor::ops::{FloatTensor, IntTensor};
use burn::tensor::{DType, Int, Tensor, TensorData, TensorPrimitive};
use calorimeter_kernels::LinearShape;
use std::ops::Range;

/// burn backend with quantization.
pub trait QuantBackend: Backend {
    /// Quantizes the rows of a float tensor. Scales and zero points are returned in f32, see [`Format::with_f32_scales`]. A
    /// group that holds an infinity or a NaN has scale NaN.
    fn quantize_tensor(tensor: FloatTensor<Self>, format: Format) -> PackedTensor<IntTensor<Self>>;

    /// Reads a part of a packed tensor for some rows, as floats.
    fn read_rows(
        stored: &PackedTensor<IntTensor<Self>>,
        rows: Range<usize>,
        reading: TensorPart,
        dtype: Dtype,
    ) -> FloatTensor<Self>;

    /// True if the device has a kernel for a layer: [`QuantBackend::dequant_gemm`] for an unquantized input,
    /// [`QuantBackend::int8_gemm`] for a quantized input.
    fn has_layer_kernel(_device: &Self::Device, _spec: &LayerSpec, _shape: LinearShape) -> bool {
        false
    }

    /// Dequantizing GEMM: returns `input · weightᵀ` in the dtype of the input, rounded once; `None` without a kernel.
    fn dequant_gemm(_input: FloatTensor<Self>, _weight: &PackedTensor<IntTensor<Self>>) -> Option<FloatTensor<Self>> {
        None
    }

    /// Int8 GEMM: returns `input · weightᵀ`, rounded to `steps` before and after each scale, input scale first; `None`
    /// without a kernel. The scales of the input are f32.
    fn int8_gemm(
        _input: &PackedTensor<IntTensor<Self>>,
        _weight: &PackedTensor<IntTensor<Self>>,
        _steps: Dtype,
        _dtype: Dtype,
    ) -> Option<FloatTensor<Self>> {
        None
    }
}

/// Packed tensor on a device.
#[derive(Debug, Clone)]
pub struct DeviceTensor<B: Backend>(PackedTensor<IntTensor<B>>);

impl<B: QuantBackend> DeviceTensor<B> {
    /// Quantizes a tensor on its device.
    pub fn quantize(tensor: Tensor<B, 2>, format: Format) -> Self {
        Self(B::quantize_tensor(tensor.into_primitive().tensor(), format))
    }

    /// Uploads a packed tensor from the host.
    pub fn upload(stored: PackedTensor<Vec<u32>>, device: &B::Device) -> Self {
        let upload = |words: Vec<u32>| {
            let shape = [words.len()];
            Tensor::<B, 1, Int>::from_data(TensorData::new(words, shape), (device, DType::U32)).into_primitive()
        };
        Self(stored.map(upload))
    }

    /// See [`QuantBackend::dequant_gemm`].
    pub fn dequant_gemm(&self, input: Tensor<B, 2>) -> Option<Tensor<B, 2>> {
        let product = B::dequant_gemm(input.into_primitive().tensor(), &self.0)?;
        Some(Tensor::from_primitive(TensorPrimitive::Float(product)))
    }

    /// See [`QuantBackend::int8_gemm`].
    pub fn int8_gemm(&self, input: &Self, steps: Dtype, dtype: Dtype) -> Option<Tensor<B, 2>> {
        let product = B::int8_gemm(&input.0, &self.0, steps, dtype)?;
        Some(Tensor::from_primitive(TensorPrimitive::Float(product)))
    }

    /// True if the tensor has scales.
    pub fn has_scales(&self) -> bool {
        self.0.format.scale_count(self.0.rows, self.0.cols) > 0
    }

    /// True if the tensor has second-level scales.
    pub fn has_outer_scales(&self) -> bool {
        self.0.outer_scales.is_some()
    }

    /// See [`Format::rounds_to_int8`].
    pub fn rounds_to_integers(&self) -> bool {
        self.0.format.rounds_to_int8()
    }

    /// Rows and columns.
    pub fn size(&self) -> (usize, usize) {
        (self.0.rows, self.0.cols)
    }

    /// Reads a part of the tensor for some rows, as floats.
    pub fn read_rows(&self, rows: Range<usize>, reading: TensorPart, dtype: Dtype) -> Tensor<B, 2> {
        Tensor::from_primitive(TensorPrimitive::Float(B::read_rows(&self.0, rows, reading, dtype)))
    }

    /// Downloads the packed words to the host.
    pub fn download(self) -> PackedTensor<Vec<u32>> {
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
