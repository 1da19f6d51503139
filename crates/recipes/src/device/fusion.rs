//! Quantization on fusing backends: each operation is a custom operation, which fusion executes unfused.

use super::QuantBackend;
use crate::Dtype;
use crate::FloatType;
use crate::format::Format;
use crate::stored::{Reading, Stored};
use burn::tensor::ops::{FloatTensor, IntTensor};
use burn::tensor::{DType, Shape, TensorMetadata};
use burn_fusion::stream::{Operation, OperationStreams};
use burn_fusion::{Fusion, FusionBackend};
use burn_ir::{CustomOpIr, HandleContainer, OperationIr, TensorIr};
use std::marker::PhantomData;
use std::ops::Range;

impl<B: FusionBackend + QuantBackend> QuantBackend for Fusion<B> {
    fn quantize_codes(tensor: FloatTensor<Self>, format: Format) -> Stored<IntTensor<Self>> {
        let (shape, client) = (tensor.shape(), tensor.client.clone());
        let (rows, cols) = (shape[0], shape[1]);
        let outputs = Stored::sizes(format.unpacked(), rows, cols)
            .map(|words| TensorIr::uninit(client.create_empty_handle(), Shape::new([words]), DType::U32));
        let streams = OperationStreams::with_inputs([&tensor]);
        let ir = CustomOpIr::new("quantize", &[tensor.into_ir()], &outputs.as_parts().map(Clone::clone).into_parts());
        let operation =
            Quantize::<B> { input: ir.inputs[0].clone(), outputs: outputs.clone(), format, backend: PhantomData };
        let mut made = client.register(streams, OperationIr::Custom(ir), operation).into_iter();
        outputs.map(|_| made.next().expect("one output per declaration"))
    }

    fn read(stored: &Stored<IntTensor<Self>>, rows: Range<usize>, reading: Reading, dtype: Dtype) -> FloatTensor<Self> {
        let client = stored.codes.client.clone();
        let shape = Shape::new(stored.shape(&rows, reading));
        let output = TensorIr::uninit(client.create_empty_handle(), shape, dtype.burn());
        let streams = OperationStreams::with_inputs(stored.as_parts().into_parts());
        let inputs = stored.as_parts().map(|tensor| tensor.clone().into_ir());
        let ir =
            CustomOpIr::new("read", &inputs.as_parts().map(Clone::clone).into_parts(), std::slice::from_ref(&output));
        let operation = Read::<B> { inputs, output, rows, reading, dtype, backend: PhantomData };
        let mut made = client.register(streams, OperationIr::Custom(ir), operation);
        made.pop().expect("one output was declared")
    }

    fn has_product(device: &Self::Device, weight: &Format, input: DType, rows: usize) -> bool {
        B::has_product(device, weight, input, rows)
    }

    fn has_code_product(input: &Format, weight: &Format) -> bool {
        B::has_code_product(input, weight)
    }

    fn product(input: FloatTensor<Self>, weight: &Stored<IntTensor<Self>>) -> Option<FloatTensor<Self>> {
        let (shape, dtype) = (input.shape(), input.dtype());
        if !B::has_product(&input.client.device().clone(), &weight.format, dtype, shape[0]) {
            return None;
        }
        let client = input.client.clone();
        let output = TensorIr::uninit(client.create_empty_handle(), Shape::new([shape[0], weight.rows]), dtype);
        let parts = weight.as_parts().into_parts();
        let streams = OperationStreams::with_inputs(std::iter::once(&input).chain(parts));
        let (input, weight) = (input.into_ir(), weight.as_parts().map(|tensor| tensor.clone().into_ir()));
        let read: Vec<_> = std::iter::once(&input).chain(weight.as_parts().into_parts()).cloned().collect();
        let ir = CustomOpIr::new("product", &read, std::slice::from_ref(&output));
        let operation = Product::<B> { input, weight, output, backend: PhantomData };
        client.register(streams, OperationIr::Custom(ir), operation).pop()
    }

    fn product_of_codes(
        input: &Stored<IntTensor<Self>>,
        weight: &Stored<IntTensor<Self>>,
        steps: Dtype,
        dtype: Dtype,
    ) -> Option<FloatTensor<Self>> {
        if !B::has_code_product(&input.format, &weight.format) {
            return None;
        }
        let client = weight.codes.client.clone();
        let output =
            TensorIr::uninit(client.create_empty_handle(), Shape::new([input.rows, weight.rows]), dtype.burn());
        let both = [input, weight];
        let streams = OperationStreams::with_inputs(both.into_iter().flat_map(|stored| stored.as_parts().into_parts()));
        let [input, weight] = both.map(|stored| stored.as_parts().map(|tensor| tensor.clone().into_ir()));
        let parts = [&input, &weight].into_iter().flat_map(|stored| stored.as_parts().into_parts());
        let read: Vec<_> = parts.cloned().collect();
        let ir = CustomOpIr::new("product_of_codes", &read, std::slice::from_ref(&output));
        let operation = ProductOfCodes::<B> { input, weight, output, steps, dtype, backend: PhantomData };
        client.register(streams, OperationIr::Custom(ir), operation).pop()
    }
}

#[derive(Debug)]
struct Product<B> {
    input: TensorIr,
    weight: Stored<TensorIr>,
    output: TensorIr,
    backend: PhantomData<B>,
}

impl<B: FusionBackend + QuantBackend> Operation<B::FusionRuntime> for Product<B> {
    fn execute(&self, handles: &mut HandleContainer<B::Handle>) {
        let weight = self.weight.as_parts().map(|ir| handles.get_int_tensor::<B>(ir));
        let product = B::product(handles.get_float_tensor::<B>(&self.input), &weight);
        handles.register_float_tensor::<B>(&self.output.id, product.expect("kernel support was checked"));
    }
}

#[derive(Debug)]
struct ProductOfCodes<B> {
    input: Stored<TensorIr>,
    weight: Stored<TensorIr>,
    output: TensorIr,
    steps: Dtype,
    dtype: Dtype,
    backend: PhantomData<B>,
}

impl<B: FusionBackend + QuantBackend> Operation<B::FusionRuntime> for ProductOfCodes<B> {
    fn execute(&self, handles: &mut HandleContainer<B::Handle>) {
        let [input, weight] =
            [&self.input, &self.weight].map(|stored| stored.as_parts().map(|ir| handles.get_int_tensor::<B>(ir)));
        let product = B::product_of_codes(&input, &weight, self.steps, self.dtype);
        handles.register_float_tensor::<B>(&self.output.id, product.expect("kernel support was checked"));
    }
}

#[derive(Debug)]
struct Quantize<B> {
    input: TensorIr,
    outputs: Stored<TensorIr>,
    format: Format,
    backend: PhantomData<B>,
}

impl<B: FusionBackend + QuantBackend> Operation<B::FusionRuntime> for Quantize<B> {
    fn execute(&self, handles: &mut HandleContainer<B::Handle>) {
        let made = B::quantize_codes(handles.get_float_tensor::<B>(&self.input), self.format);
        for (declared, tensor) in self.outputs.as_parts().into_parts().into_iter().zip(made.into_parts()) {
            handles.register_int_tensor::<B>(&declared.id, tensor);
        }
    }
}

#[derive(Debug)]
struct Read<B> {
    inputs: Stored<TensorIr>,
    output: TensorIr,
    rows: Range<usize>,
    reading: Reading,
    dtype: Dtype,
    backend: PhantomData<B>,
}

impl<B: FusionBackend + QuantBackend> Operation<B::FusionRuntime> for Read<B> {
    fn execute(&self, handles: &mut HandleContainer<B::Handle>) {
        let stored = self.inputs.as_parts().map(|ir| handles.get_int_tensor::<B>(ir));
        let numbers = B::read(&stored, self.rows.clone(), self.reading, self.dtype);
        handles.register_float_tensor::<B>(&self.output.id, numbers);
    }
}
