//! Quantization on fusing backends: each operation is a custom operation, which fusion executes unfused.

use super::QuantBackend;
use super::gemm::int8_layer;
use crate::packed_tensor::{TensorPart, part_shape};
use crate::{Dtype, FloatType, Format, LayerSpec, PackedTensor};
use burn::tensor::ops::{FloatTensor, IntTensor};
use burn::tensor::{DType, Shape, TensorMetadata};
use burn_fusion::stream::{Operation, OperationStreams};
use burn_fusion::{Fusion, FusionBackend};
use burn_ir::{CustomOpIr, HandleContainer, OperationIr, TensorIr};
use calorimeter_kernels::LinearShape;
use std::marker::PhantomData;
use std::ops::Range;

impl<B: FusionBackend + QuantBackend> QuantBackend for Fusion<B> {
    fn quantize_tensor(tensor: FloatTensor<Self>, format: Format) -> PackedTensor<IntTensor<Self>> {
        let (shape, client) = (tensor.shape(), tensor.client.clone());
        let (rows, cols) = (shape[0], shape[1]);
        let outputs = PackedTensor::word_counts(format.with_f32_scales(), rows, cols)
            .map(|words| TensorIr::uninit(client.create_empty_handle(), Shape::new([words]), DType::U32));
        let streams = OperationStreams::with_inputs([&tensor]);
        let ir = CustomOpIr::new("quantize", &[tensor.into_ir()], &outputs.as_refs().map(Clone::clone).into_parts());
        let operation =
            QuantizeOp::<B> { input: ir.inputs[0].clone(), outputs: outputs.clone(), format, backend: PhantomData };
        let mut made = client.register(streams, OperationIr::Custom(ir), operation).into_iter();
        outputs.map(|_| made.next().expect("one output per declaration"))
    }

    fn read_rows(
        stored: &PackedTensor<IntTensor<Self>>,
        rows: Range<usize>,
        reading: TensorPart,
        dtype: Dtype,
    ) -> FloatTensor<Self> {
        let client = stored.codes.client.clone();
        let shape = Shape::new(part_shape(stored, &rows, reading));
        let output = TensorIr::uninit(client.create_empty_handle(), shape, dtype.burn());
        let streams = OperationStreams::with_inputs(stored.as_refs().into_parts());
        let inputs = stored.as_refs().map(|tensor| tensor.clone().into_ir());
        let ir =
            CustomOpIr::new("read", &inputs.as_refs().map(Clone::clone).into_parts(), std::slice::from_ref(&output));
        let operation = ReadRowsOp::<B> { inputs, output, rows, reading, dtype, backend: PhantomData };
        let mut made = client.register(streams, OperationIr::Custom(ir), operation);
        made.pop().expect("one output was declared")
    }

    fn has_layer_kernel(device: &Self::Device, spec: &LayerSpec, shape: LinearShape) -> bool {
        B::has_layer_kernel(device, spec, shape)
    }

    fn dequant_gemm(input: FloatTensor<Self>, weight: &PackedTensor<IntTensor<Self>>) -> Option<FloatTensor<Self>> {
        let (shape, dtype) = (input.shape(), input.dtype());
        let spec = LayerSpec::weight_only(Dtype::from_burn(dtype)?, weight.format);
        let sizes = LinearShape { m: shape[0], k: weight.cols, n: weight.rows };
        if !B::has_layer_kernel(input.client.device(), &spec, sizes) {
            return None;
        }
        let client = input.client.clone();
        let output = TensorIr::uninit(client.create_empty_handle(), Shape::new([shape[0], weight.rows]), dtype);
        let parts = weight.as_refs().into_parts();
        let streams = OperationStreams::with_inputs(std::iter::once(&input).chain(parts));
        let (input, weight) = (input.into_ir(), weight.as_refs().map(|tensor| tensor.clone().into_ir()));
        let read: Vec<_> = std::iter::once(&input).chain(weight.as_refs().into_parts()).cloned().collect();
        let ir = CustomOpIr::new("product", &read, std::slice::from_ref(&output));
        let operation = DequantGemmOp::<B> { input, weight, output, backend: PhantomData };
        client.register(streams, OperationIr::Custom(ir), operation).pop()
    }

    fn int8_gemm(
        input: &PackedTensor<IntTensor<Self>>,
        weight: &PackedTensor<IntTensor<Self>>,
        steps: Dtype,
        dtype: Dtype,
    ) -> Option<FloatTensor<Self>> {
        let client = weight.codes.client.clone();
        let (spec, sizes) = int8_layer(input, weight, steps, dtype)?;
        if !B::has_layer_kernel(client.device(), &spec, sizes) {
            return None;
        }
        let output =
            TensorIr::uninit(client.create_empty_handle(), Shape::new([input.rows, weight.rows]), dtype.burn());
        let both = [input, weight];
        let streams = OperationStreams::with_inputs(both.into_iter().flat_map(|stored| stored.as_refs().into_parts()));
        let [input, weight] = both.map(|stored| stored.as_refs().map(|tensor| tensor.clone().into_ir()));
        let parts = [&input, &weight].into_iter().flat_map(|stored| stored.as_refs().into_parts());
        let read: Vec<_> = parts.cloned().collect();
        let ir = CustomOpIr::new("product_of_codes", &read, std::slice::from_ref(&output));
        let operation = Int8GemmOp::<B> { input, weight, output, steps, dtype, backend: PhantomData };
        client.register(streams, OperationIr::Custom(ir), operation).pop()
    }
}

#[derive(Debug)]
struct DequantGemmOp<B> {
    input: TensorIr,
    weight: PackedTensor<TensorIr>,
    output: TensorIr,
    backend: PhantomData<B>,
}

impl<B: FusionBackend + QuantBackend> Operation<B::FusionRuntime> for DequantGemmOp<B> {
    fn execute(&self, handles: &mut HandleContainer<B::Handle>) {
        let weight = self.weight.as_refs().map(|ir| handles.get_int_tensor::<B>(ir));
        let product = B::dequant_gemm(handles.get_float_tensor::<B>(&self.input), &weight);
        handles.register_float_tensor::<B>(&self.output.id, product.expect("kernel support was checked"));
    }
}

#[derive(Debug)]
struct Int8GemmOp<B> {
    input: PackedTensor<TensorIr>,
    weight: PackedTensor<TensorIr>,
    output: TensorIr,
    steps: Dtype,
    dtype: Dtype,
    backend: PhantomData<B>,
}

impl<B: FusionBackend + QuantBackend> Operation<B::FusionRuntime> for Int8GemmOp<B> {
    fn execute(&self, handles: &mut HandleContainer<B::Handle>) {
        let [input, weight] =
            [&self.input, &self.weight].map(|stored| stored.as_refs().map(|ir| handles.get_int_tensor::<B>(ir)));
        let product = B::int8_gemm(&input, &weight, self.steps, self.dtype);
        handles.register_float_tensor::<B>(&self.output.id, product.expect("kernel support was checked"));
    }
}

#[derive(Debug)]
struct QuantizeOp<B> {
    input: TensorIr,
    outputs: PackedTensor<TensorIr>,
    format: Format,
    backend: PhantomData<B>,
}

impl<B: FusionBackend + QuantBackend> Operation<B::FusionRuntime> for QuantizeOp<B> {
    fn execute(&self, handles: &mut HandleContainer<B::Handle>) {
        let made = B::quantize_tensor(handles.get_float_tensor::<B>(&self.input), self.format);
        for (declared, tensor) in self.outputs.as_refs().into_parts().into_iter().zip(made.into_parts()) {
            handles.register_int_tensor::<B>(&declared.id, tensor);
        }
    }
}

#[derive(Debug)]
struct ReadRowsOp<B> {
    inputs: PackedTensor<TensorIr>,
    output: TensorIr,
    rows: Range<usize>,
    reading: TensorPart,
    dtype: Dtype,
    backend: PhantomData<B>,
}

impl<B: FusionBackend + QuantBackend> Operation<B::FusionRuntime> for ReadRowsOp<B> {
    fn execute(&self, handles: &mut HandleContainer<B::Handle>) {
        let stored = self.inputs.as_refs().map(|ir| handles.get_int_tensor::<B>(ir));
        let numbers = B::read_rows(&stored, self.rows.clone(), self.reading, self.dtype);
        handles.register_float_tensor::<B>(&self.output.id, numbers);
    }
}
