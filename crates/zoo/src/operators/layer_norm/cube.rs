//! CubeCL layer normalization kernel.

use super::LayerNorm;
use crate::{CubeOf, CubePass, Pass, Spec, TensorValue, ZooError, cube_pass, normalize};
use burn_cubecl::CubeRuntime;

impl CubePass for LayerNorm {
    fn pass<R: CubeRuntime>(&self, _: &Spec, inputs: Vec<TensorValue<CubeOf<R>>>) -> Result<Pass<CubeOf<R>>, ZooError> {
        use calorimeter_kernels::cube;
        cube_pass(inputs, |client, size, [x, gain, bias], [out]| {
            let epsilon = normalize::EPSILON as f32;
            let norm = cube::LayerNormArgs { x, residual: None, gain, bias, epsilon, activation: None, out };
            cube::layer_norm(client, size, norm)
        })
    }
}
