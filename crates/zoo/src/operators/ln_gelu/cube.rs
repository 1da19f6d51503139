//! CubeCL layer normalization kernel with a GELU epilogue.

use super::LnGelu;
use crate::{CubeOf, CubePass, Pass, Spec, TensorValue, ZooError, cube_pass};
use burn_cubecl::CubeRuntime;

impl CubePass for LnGelu {
    fn pass<R: CubeRuntime>(&self, _: &Spec, inputs: Vec<TensorValue<CubeOf<R>>>) -> Result<Pass<CubeOf<R>>, ZooError> {
        use calorimeter_kernels::cube;
        cube_pass(inputs, |client, size, [x, gain, bias], [out]| {
            let (epsilon, activation) = (crate::normalize::EPSILON as f32, Some(cube::SmoothActivation::Gelu));
            let norm = cube::LayerNormArgs { x, residual: None, gain, bias, epsilon, activation, out };
            cube::layer_norm(client, size, norm)
        })
    }
}
