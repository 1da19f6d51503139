//! CubeCL softmax kernel.

use super::Softmax;
use crate::{CubeOf, CubePass, Pass, Spec, TensorValue, ZooError, cube_pass};
use burn_cubecl::CubeRuntime;

impl CubePass for Softmax {
    fn pass<R: CubeRuntime>(&self, _: &Spec, inputs: Vec<TensorValue<CubeOf<R>>>) -> Result<Pass<CubeOf<R>>, ZooError> {
        use calorimeter_kernels::cube;
        cube_pass(inputs, |client, size, [x], [out]| cube::softmax(client, size, x, out))
    }
}
