//! Backends that fuse: each of the two operations is one that fusion passes on as it is.

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
    fn quantise(tensor: FloatTensor<Self>, format: Format) -> Stored<IntTensor<Self>> {
        let (shape, client) = (tensor.shape(), tensor.client.clone());
        let (rows, cols) = (shape[0], shape[1]);
        let outputs = Stored::sizes(format.unpacked(), rows, cols)
            .map(|words| TensorIr::uninit(client.create_empty_handle(), Shape::new([words]), DType::U32));
        let streams = OperationStreams::with_inputs([&tensor]);
        let ir = CustomOpIr::new("quantise", &[tensor.into_ir()], &outputs.as_parts().map(Clone::clone).into_parts());
        let operation =
            Quantise::<B> { input: ir.inputs[0].clone(), outputs: outputs.clone(), format, of: PhantomData };
        let mut made = client.register(streams, OperationIr::Custom(ir), operation).into_iter();
        outputs.map(|_| made.next().expect("an output for each that was declared"))
    }

    fn read(stored: &Stored<IntTensor<Self>>, rows: Range<usize>, reading: Reading, dtype: Dtype) -> FloatTensor<Self> {
        let client = stored.codes.client.clone();
        let shape = Shape::new(stored.shape(&rows, reading));
        let output = TensorIr::uninit(client.create_empty_handle(), shape, dtype.burn());
        let streams = OperationStreams::with_inputs(stored.as_parts().into_parts());
        let inputs = stored.as_parts().map(|tensor| tensor.clone().into_ir());
        let ir =
            CustomOpIr::new("read", &inputs.as_parts().map(Clone::clone).into_parts(), std::slice::from_ref(&output));
        let operation = Read::<B> { inputs, output, rows, reading, dtype, of: PhantomData };
        let mut made = client.register(streams, OperationIr::Custom(ir), operation);
        made.pop().expect("one output was declared")
    }
}

#[derive(Debug)]
struct Quantise<B> {
    input: TensorIr,
    outputs: Stored<TensorIr>,
    format: Format,
    of: PhantomData<B>,
}

impl<B: FusionBackend + QuantBackend> Operation<B::FusionRuntime> for Quantise<B> {
    fn execute(&self, handles: &mut HandleContainer<B::Handle>) {
        let made = B::quantise(handles.get_float_tensor::<B>(&self.input), self.format);
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
    of: PhantomData<B>,
}

impl<B: FusionBackend + QuantBackend> Operation<B::FusionRuntime> for Read<B> {
    fn execute(&self, handles: &mut HandleContainer<B::Handle>) {
        let stored = self.inputs.as_parts().map(|ir| handles.get_int_tensor::<B>(ir));
        let numbers = B::read(&stored, self.rows.clone(), self.reading, self.dtype);
        handles.register_float_tensor::<B>(&self.output.id, numbers);
    }
}
