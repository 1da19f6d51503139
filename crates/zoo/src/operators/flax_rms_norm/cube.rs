//! CubeCL RMS normalization kernel.

use super::{EPSILON, FlaxRmsNorm};
use crate::{CubeOf, CubePass, Pass, Spec, TensorValue, ZooError, cube_pass_mixed};
use burn_cubecl::CubeRuntime;

impl CubePass for FlaxRmsNorm {
    fn pass<R: CubeRuntime>(&self, _: &Spec, inputs: Vec<TensorValue<CubeOf<R>>>) -> Result<Pass<CubeOf<R>>, ZooError> {
        use calorimeter_kernels::cube;
        // Only the forward operators are registered with `cube`. The weight is f32 for every dtype of x.
        cube_pass_mixed(inputs, |client, size, [x, weight], [out]| {
            cube::rms_norm(client, size, x.handle, weight.handle, weight.dtype, EPSILON as f32, out)
        })
    }
}
