//! CubeCL layer normalization kernel with a residual input.

use super::AddLn;
use crate::{CubeOf, CubePass, Pass, Spec, TensorValue, ZooError, cube_pass};
use burn_cubecl::CubeRuntime;

impl CubePass for AddLn {
    fn pass<R: CubeRuntime>(&self, _: &Spec, inputs: Vec<TensorValue<CubeOf<R>>>) -> Result<Pass<CubeOf<R>>, ZooError> {
        use calorimeter_kernels::cube;
        cube_pass(inputs, |client, size, [x, addend, gain, bias], [sum, out]| {
            let (epsilon, residual) = (crate::normalize::EPSILON as f32, Some(cube::Residual { addend, sum }));
            let norm = cube::LayerNormArgs { x, residual, gain, bias, epsilon, activation: None, out };
            cube::layer_norm(client, size, norm)
        })
    }
}
