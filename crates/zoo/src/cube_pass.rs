//! Passes by the kernels of `calorimeter_kernels::cube` on burn's tensors.

use super::rows;
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

/// A kernel that is given `N` inputs and writes `M` outputs, each of the first input's size. It runs once at once, so
/// that what it cannot take is an error here.
pub(super) fn pass<R: CubeRuntime, const N: usize, const M: usize>(
    inputs: Vec<Value<CubeOf<R>>>,
    kernel: impl Fn(&ComputeClient<R>, Matrix, [&Handle; N], [&Handle; M]) -> Result<(), CubeError> + Send + 'static,
) -> Result<Pass<CubeOf<R>>, ZooError> {
    let inputs = rows::floats::<_, N>(inputs).map(|input| into_contiguous(input.into_primitive().tensor()));
    let first = &inputs[0];
    if let Some(other) = inputs.iter().find(|input| input.dtype != first.dtype) {
        let (first, other) = (first.dtype.name(), other.dtype.name());
        return Err(ZooError::Unsupported(format!("CubeCL kernels of ours do not mix {first} and {other}")));
    }
    let size = Matrix { rows: first.meta.shape()[0], cols: first.meta.shape()[1], kind: kind(first.dtype)? };
    let run = move || -> Result<Vec<Value<CubeOf<R>>>, CubeError> {
        let outputs: [CubeTensor<R>; M] = std::array::from_fn(|_| like(&inputs[0]));
        let (read, written) = (inputs.each_ref().map(|x| &x.handle), outputs.each_ref().map(|y| &y.handle));
        kernel(&inputs[0].client, size, read, written)?;
        Ok(outputs.map(|output| Value::Float(Tensor::from_primitive(TensorPrimitive::Float(output)))).into())
    };
    run()?;
    // What a kernel refuses depends on its operands' sizes and types alone, and with the same ones it has just run.
    Ok(Box::new(move || run().unwrap_or_else(|error| panic!("a kernel refuses what it has taken before: {error}"))))
}

/// Memory for a tensor of the same size and type.
fn like<R: CubeRuntime>(tensor: &CubeTensor<R>) -> CubeTensor<R> {
    let CubeTensor { client, device, meta, dtype, .. } = tensor;
    empty_device_contiguous_dtype(client.clone(), device.clone(), meta.shape().clone(), *dtype)
}

fn kind(dtype: DType) -> Result<Dtype, ZooError> {
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
            CubeError::TooLarge { .. } | CubeError::TooSmall { .. } => Self::Device(error.to_string()),
        }
    }
}
