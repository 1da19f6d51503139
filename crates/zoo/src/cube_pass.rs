//! Passes that run CubeCL kernels on burn tensors.

use crate::{CubeOf, Pass, TensorValue, ZooError};
use burn::tensor::{DType, Tensor, TensorPrimitive};
use burn_cubecl::CubeRuntime;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use calorimeter_kernels::Dtype;
use calorimeter_kernels::cube::{CubeError, MatrixLayout};
use calorimeter_recipes::FloatType;
use cubecl::client::ComputeClient;
use cubecl::server::Handle;

/// Input of a CubeCL kernel.
#[derive(Debug, Clone, Copy)]
pub struct KernelInput<'a> {
    /// Memory of the tensor.
    pub handle: &'a Handle,
    /// Element type.
    pub dtype: Dtype,
}

/// Pass of a kernel with `N` inputs of one dtype and `M` outputs, each of the size and dtype of the first input.
///
/// The kernel runs once here, so that unsupported operands are an error now and not during measurement.
pub fn cube_pass<R: CubeRuntime, const N: usize, const M: usize>(
    inputs: Vec<TensorValue<CubeOf<R>>>,
    kernel: impl Fn(&ComputeClient<R>, MatrixLayout, [&Handle; N], [&Handle; M]) -> Result<(), CubeError> + Send + 'static,
) -> Result<Pass<CubeOf<R>>, ZooError> {
    let dtypes: Vec<DType> = inputs.iter().map(TensorValue::dtype).collect();
    if let Some(other) = dtypes.iter().find(|dtype| **dtype != dtypes[0]) {
        let (first, other) = (dtypes[0].name(), other.name());
        return Err(ZooError::Unsupported(format!("this CubeCL kernel does not mix {first} and {other}")));
    }
    cube_pass_mixed(inputs, move |client, size, inputs: [KernelInput; N], outputs| {
        kernel(client, size, inputs.map(|input| input.handle), outputs)
    })
}

/// Pass of a kernel whose inputs may differ in dtype. Its `M` outputs have the size and dtype of the first input.
///
/// The kernel runs once here, as in [`cube_pass`].
pub fn cube_pass_mixed<R: CubeRuntime, const N: usize, const M: usize>(
    inputs: Vec<TensorValue<CubeOf<R>>>,
    kernel: impl Fn(&ComputeClient<R>, MatrixLayout, [KernelInput; N], [&Handle; M]) -> Result<(), CubeError>
    + Send
    + 'static,
) -> Result<Pass<CubeOf<R>>, ZooError> {
    let inputs = inputs.into_iter().map(|input| {
        let tensor = into_contiguous(input.float().into_primitive().tensor());
        Ok((kernel_dtype(tensor.dtype)?, tensor))
    });
    let inputs: Vec<(Dtype, CubeTensor<R>)> = inputs.collect::<Result<_, ZooError>>()?;
    let Ok(inputs) = <[(Dtype, CubeTensor<R>); N]>::try_from(inputs) else {
        unreachable!("the number of inputs is the declared one")
    };
    let (kind, first) = &inputs[0];
    let size = MatrixLayout { rows: first.meta.shape()[0], cols: first.meta.shape()[1], kind: *kind };
    let run = move || -> Result<Vec<TensorValue<CubeOf<R>>>, CubeError> {
        let first = &inputs[0].1;
        let outputs: [CubeTensor<R>; M] = std::array::from_fn(|_| empty_like(first));
        let read = inputs.each_ref().map(|(kind, tensor)| KernelInput { handle: &tensor.handle, dtype: *kind });
        kernel(&first.client, size, read, outputs.each_ref().map(|output| &output.handle))?;
        Ok(outputs.map(|output| TensorValue::Float(Tensor::from_primitive(TensorPrimitive::Float(output)))).into())
    };
    run()?;
    // A kernel rejects operands by size and dtype only, and it has just accepted these.
    Ok(Box::new(move || run().unwrap_or_else(|error| panic!("kernel failed after a successful first run: {error}"))))
}

/// Allocates a contiguous tensor with the shape and dtype of another.
pub(crate) fn empty_like<R: CubeRuntime>(tensor: &CubeTensor<R>) -> CubeTensor<R> {
    let CubeTensor { client, device, meta, dtype, .. } = tensor;
    empty_device_contiguous_dtype(client.clone(), device.clone(), meta.shape().clone(), *dtype)
}

/// Converts a burn dtype to the dtype of our kernels; an error if they do not support it.
pub(crate) fn kernel_dtype(dtype: DType) -> Result<Dtype, ZooError> {
    Dtype::from_burn(dtype).ok_or_else(|| {
        ZooError::Unsupported(format!(
            "unsupported dtype {} of CubeCL kernels: expected f32, f16 or bf16",
            dtype.name()
        ))
    })
}

impl From<CubeError> for ZooError {
    fn from(error: CubeError) -> Self {
        match error {
            CubeError::Unsupported { .. } => Self::Unsupported(error.to_string()),
            other => Self::Device(other.to_string()),
        }
    }
}
