//! Quantization on the CPU, through burn's Flex backend.

use super::QuantBackend;
use crate::Dtype;
use crate::PackedTensor;
use crate::format::Format;
use crate::packed_tensor::{TensorPart, part_shape, read_rows};
use crate::quantize::quantize;
use burn::tensor::ops::{FloatTensor, IntTensor};
use burn::tensor::{DType, TensorData};
use burn_flex::{Flex, FlexTensor};
use half::{bf16, f16};
use std::borrow::Cow;
use std::ops::Range;

impl QuantBackend for Flex {
    fn quantize_tensor(tensor: FloatTensor<Self>, format: Format) -> PackedTensor<IntTensor<Self>> {
        let tensor = tensor.to_contiguous();
        let cols = tensor.layout().shape().num_dims().checked_sub(1).map_or(1, |last| tensor.layout().shape()[last]);
        let quantized = quantize(&to_f32(&tensor), cols, format);
        quantized.with_f32_scales().to_packed().map(|words| {
            let shape = [words.len()];
            FlexTensor::from_data(TensorData::new(words, shape))
        })
    }

    fn read_rows(
        stored: &PackedTensor<IntTensor<Self>>,
        rows: Range<usize>,
        reading: TensorPart,
        dtype: Dtype,
    ) -> FloatTensor<Self> {
        let words = |tensor: &FlexTensor| tensor.to_contiguous();
        let contiguous = stored.as_refs().map(words);
        let shape = part_shape(stored, &rows, reading);
        let words = contiguous.as_refs().map(|tensor| tensor.as_slice::<u32>().expect("words are contiguous u32"));
        let values = read_rows(&words, rows, reading);
        FlexTensor::from_data(match dtype {
            Dtype::F32 => TensorData::new(values, shape),
            Dtype::F16 => TensorData::new(values.into_iter().map(f16::from_f32).collect::<Vec<_>>(), shape),
            Dtype::Bf16 => TensorData::new(values.into_iter().map(bf16::from_f32).collect::<Vec<_>>(), shape),
        })
    }
}

/// Converts a contiguous tensor to f32.
fn to_f32(tensor: &FlexTensor) -> Cow<'_, [f32]> {
    let is_slice = "a contiguous tensor is a slice of its dtype";
    match tensor.dtype() {
        DType::F16 => tensor.as_slice::<f16>().expect(is_slice).iter().map(|x| x.to_f32()).collect(),
        DType::BF16 => tensor.as_slice::<bf16>().expect(is_slice).iter().map(|x| x.to_f32()).collect(),
        _ => tensor.as_slice::<f32>().expect(is_slice).into(),
    }
}
