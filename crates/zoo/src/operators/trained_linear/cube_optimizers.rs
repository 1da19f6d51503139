//! Optimizer step in one CubeCL kernel.

use super::optimizers::{LEARNING_RATE, adamw_settings};
use crate::cube_pass::{empty_like, kernel_dtype};
use crate::{CubeOf, ZooError};
use burn::tensor::{Tensor, TensorPrimitive};
use burn_cubecl::CubeRuntime;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use calorimeter_kernels::cube::{self, MatrixLayout, OptimizerState};

/// Weights after a step, and the moments of AdamW.
pub(crate) fn update_weights<R: CubeRuntime>(
    weight: Tensor<CubeOf<R>, 2>,
    gradient: Tensor<CubeOf<R>, 2>,
    moments: Option<[Tensor<CubeOf<R>, 2>; 2]>,
) -> Vec<Tensor<CubeOf<R>, 2>> {
    // Kernel errors depend on sizes and dtypes only, and `check_kernels` has run with the actual ones.
    step(weight, gradient, moments)
        .unwrap_or_else(|error| panic!("the kernel ran before with equal sizes and dtypes: {error}"))
}

/// Runs a step with the weights as gradient, so that unsupported sizes and dtypes are reported here.
pub(crate) fn check_kernels<R: CubeRuntime>(
    weight: &Tensor<CubeOf<R>, 2>,
    moments: Option<[Tensor<CubeOf<R>, 2>; 2]>,
) -> Result<(), ZooError> {
    step(weight.clone(), weight.clone(), moments).map(|_| ())
}

fn step<R: CubeRuntime>(
    weight: Tensor<CubeOf<R>, 2>,
    gradient: Tensor<CubeOf<R>, 2>,
    moments: Option<[Tensor<CubeOf<R>, 2>; 2]>,
) -> Result<Vec<Tensor<CubeOf<R>, 2>>, ZooError> {
    let [weight, gradient] = [weight, gradient].map(make_contiguous);
    let (client, new_weight) = (&weight.client, empty_like(&weight));
    let size =
        MatrixLayout { rows: weight.meta.shape()[0], cols: weight.meta.shape()[1], kind: kernel_dtype(weight.dtype)? };
    let Some(moments) = moments else {
        cube::sgd(client, size, LEARNING_RATE, &weight.handle, &gradient.handle, &new_weight.handle)?;
        return Ok(vec![tensor(new_weight)]);
    };
    let moments = moments.map(make_contiguous);
    let new_moments = moments.each_ref().map(empty_like);
    let settings = adamw_settings();
    let old = OptimizerState { weights: &weight.handle, moments: moments.each_ref().map(|moment| &moment.handle) };
    let new =
        OptimizerState { weights: &new_weight.handle, moments: new_moments.each_ref().map(|moment| &moment.handle) };
    cube::adamw(client, size, settings, old, &gradient.handle, new)?;
    let [mean, square] = new_moments;
    Ok([new_weight, mean, square].map(tensor).into())
}

fn make_contiguous<R: CubeRuntime>(tensor: Tensor<CubeOf<R>, 2>) -> CubeTensor<R> {
    into_contiguous(tensor.into_primitive().tensor())
}

fn tensor<R: CubeRuntime>(primitive: CubeTensor<R>) -> Tensor<CubeOf<R>, 2> {
    Tensor::from_primitive(TensorPrimitive::Float(primitive))
}
