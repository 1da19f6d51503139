//! CubeCL RMS normalization kernel.

use super::RmsNorm;
use crate::{CubeOf, CubePass, Pass, Spec, TensorValue, ZooError, cube_pass, normalize};
use burn_cubecl::CubeRuntime;

impl CubePass for RmsNorm {
    fn pass<R: CubeRuntime>(&self, _: &Spec, inputs: Vec<TensorValue<CubeOf<R>>>) -> Result<Pass<CubeOf<R>>, ZooError> {
        use calorimeter_kernels::cube;
        cube_pass(inputs, |client, size, [x, gain], [out]| {
            cube::rms_norm(client, size, x, gain, size.kind, normalize::EPSILON as f32, out)
        })
    }
}
