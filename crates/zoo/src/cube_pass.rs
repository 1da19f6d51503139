//! Passes by CubeCL kernels on burn's tensors.

use crate::{CubeOf, Pass, Value, ZooError};
use burn::tensor::{DType, Tensor, TensorPrimitive};
use burn_cubecl::CubeRuntime;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use calorimeter_kernels::Dtype;
use calorimeter_kernels::cube::{CubeError, Matrix};
use cubecl::client::ComputeClient;
use cubecl::server::Handle;

/// An input of a kernel.
#[derive(Debug, Clone, Copy)]
pub struct Read<'a> {
    /// Its memory.
    pub handle: &'a Handle,
    /// The type of its numbers.
    pub kind: Dtype,
}

/// A kernel that is given `N` inputs of one type and writes `M` outputs, each of the first input's size. It runs once at
/// once, so that what it cannot take is an error here.
pub fn cube_pass<R: CubeRuntime, const N: usize, const M: usize>(
    inputs: Vec<Value<CubeOf<R>>>,
    kernel: impl Fn(&ComputeClient<R>, Matrix, [&Handle; N], [&Handle; M]) -> Result<(), CubeError> + Send + 'static,
) -> Result<Pass<CubeOf<R>>, ZooError> {
    let dtypes: Vec<DType> = inputs.iter().map(Value::dtype).collect();
    if let Some(other) = dtypes.iter().find(|dtype| **dtype != dtypes[0]) {
        let (first, other) = (dtypes[0].name(), other.name());
        return Err(ZooError::Unsupported(format!("this CubeCL kernel does not mix {first} and {other}")));
    }
    cube_pass_mixed(inputs, move |client, size, inputs: [Read; N], outputs| {
        kernel(client, size, inputs.map(|input| input.handle), outputs)
    })
}

/// The same for a kernel whose inputs may be of different types; its outputs are of the first one's.
pub fn cube_pass_mixed<R: CubeRuntime, const N: usize, const M: usize>(
    inputs: Vec<Value<CubeOf<R>>>,
    kernel: impl Fn(&ComputeClient<R>, Matrix, [Read; N], [&Handle; M]) -> Result<(), CubeError> + Send + 'static,
) -> Result<Pass<CubeOf<R>>, ZooError> {
    let inputs = inputs.into_iter().map(|input| {
        let tensor = into_contiguous(input.float().into_primitive().tensor());
        Ok((kind(tensor.dtype)?, tensor))
    });
    let inputs: Vec<(Dtype, CubeTensor<R>)> = inputs.collect::<Result<_, ZooError>>()?;
    let Ok(inputs) = <[(Dtype, CubeTensor<R>); N]>::try_from(inputs) else {
        unreachable!("an operator is given as many inputs as it declares")
    };
    let (kind, first) = &inputs[0];
    let size = Matrix { rows: first.meta.shape()[0], cols: first.meta.shape()[1], kind: *kind };
    let run = move || -> Result<Vec<Value<CubeOf<R>>>, CubeError> {
        let first = &inputs[0].1;
        let outputs: [CubeTensor<R>; M] = std::array::from_fn(|_| like(first));
        let read = inputs.each_ref().map(|(kind, tensor)| Read { handle: &tensor.handle, kind: *kind });
        kernel(&first.client, size, read, outputs.each_ref().map(|output| &output.handle))?;
        Ok(outputs.map(|output| Value::Float(Tensor::from_primitive(TensorPrimitive::Float(output)))).into())
    };
    run()?;
    // What a kernel refuses depends on its operands' sizes and types alone, and with the same ones it has just run.
    Ok(Box::new(move || run().unwrap_or_else(|error| panic!("a kernel refuses what it has taken before: {error}"))))
}

/// Memory for a tensor of the same size and type.
pub fn like<R: CubeRuntime>(tensor: &CubeTensor<R>) -> CubeTensor<R> {
    let CubeTensor { client, device, meta, dtype, .. } = tensor;
    empty_device_contiguous_dtype(client.clone(), device.clone(), meta.shape().clone(), *dtype)
}

/// The type of a tensor's numbers, where kernels take it.
pub fn kind(dtype: DType) -> Result<Dtype, ZooError> {
    match dtype {
        DType::F32 => Ok(Dtype::F32),
        DType::F16 => Ok(Dtype::F16),
        DType::BF16 => Ok(Dtype::Bf16),
        other => Err(ZooError::Unsupported(format!("CubeCL kernels of ours take no {}", other.name()))),
    }
}

impl From<CubeError> for ZooError {
    fn from(error: CubeError) -> Self {
        match error {
            CubeError::Unsupported { .. } => Self::Unsupported(error.to_string()),
            other => Self::Device(other.to_string()),
        }
    }
}
