//! A step of an optimizer by one kernel of ours, through CubeCL.

use super::optimizers::{LEARNING_RATE, settings};
use crate::cube_pass::{kind, like};
use crate::{CubeOf, ZooError};
use burn::tensor::{Tensor, TensorPrimitive};
use burn_cubecl::CubeRuntime;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use calorimeter_kernels::cube::{self, Matrix, Weights};

/// Weights after a step, and their moments where there are some.
pub fn update<R: CubeRuntime>(
    weight: Tensor<CubeOf<R>, 2>,
    gradient: Tensor<CubeOf<R>, 2>,
    moments: Option<[Tensor<CubeOf<R>, 2>; 2]>,
) -> Vec<Tensor<CubeOf<R>, 2>> {
    // What a kernel refuses depends on sizes and types alone, and with the same ones it has run in `check`.
    step(weight, gradient, moments).unwrap_or_else(|error| panic!("a kernel refuses what it has taken before: {error}"))
}

/// Takes a step of weights along themselves, so that what the kernels cannot take is an error here.
pub fn check<R: CubeRuntime>(
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
    let [weight, gradient] = [weight, gradient].map(contiguous);
    let (client, after) = (&weight.client, like(&weight));
    let size = Matrix { rows: weight.meta.shape()[0], cols: weight.meta.shape()[1], kind: kind(weight.dtype)? };
    let Some(moments) = moments else {
        cube::descent(client, size, LEARNING_RATE, &weight.handle, &gradient.handle, &after.handle)?;
        return Ok(vec![tensor(after)]);
    };
    let moments = moments.map(contiguous);
    let moments_after = moments.each_ref().map(like);
    let settings = settings();
    let before = Weights { weights: &weight.handle, moments: moments.each_ref().map(|moment| &moment.handle) };
    let written = Weights { weights: &after.handle, moments: moments_after.each_ref().map(|moment| &moment.handle) };
    cube::adamw(client, size, settings, before, &gradient.handle, written)?;
    let [mean, square] = moments_after;
    Ok([after, mean, square].map(tensor).into())
}

fn contiguous<R: CubeRuntime>(tensor: Tensor<CubeOf<R>, 2>) -> CubeTensor<R> {
    into_contiguous(tensor.into_primitive().tensor())
}

fn tensor<R: CubeRuntime>(primitive: CubeTensor<R>) -> Tensor<CubeOf<R>, 2> {
    Tensor::from_primitive(TensorPrimitive::Float(primitive))
}
