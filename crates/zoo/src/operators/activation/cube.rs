//! CubeCL kernel for the activations.

use super::ElementwiseActivation;
use crate::{CubeOf, CubePass, Pass, Spec, TensorValue, ZooError, cube_pass};
use burn_cubecl::CubeRuntime;

impl CubePass for ElementwiseActivation {
    fn pass<R: CubeRuntime>(&self, _: &Spec, inputs: Vec<TensorValue<CubeOf<R>>>) -> Result<Pass<CubeOf<R>>, ZooError> {
        use calorimeter_kernels::cube;
        let activation = match self {
            Self::Gelu => cube::SmoothActivation::Gelu,
            Self::GeluTanh => cube::SmoothActivation::GeluTanh,
            Self::Silu => cube::SmoothActivation::Silu,
        };
        cube_pass(inputs, move |client, size, [x], [out]| cube::activate(client, size, activation, x, out))
    }
}
