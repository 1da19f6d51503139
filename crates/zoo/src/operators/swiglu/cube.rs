//! CubeCL kernel for silu(gate) * up.

use super::Swiglu;
use crate::{CubeOf, CubePass, Pass, Spec, TensorValue, ZooError, cube_pass};
use burn_cubecl::CubeRuntime;

impl CubePass for Swiglu {
    fn pass<R: CubeRuntime>(&self, _: &Spec, inputs: Vec<TensorValue<CubeOf<R>>>) -> Result<Pass<CubeOf<R>>, ZooError> {
        use calorimeter_kernels::cube;
        cube_pass(inputs, |client, size, [gate, up], [out]| cube::swiglu(client, size, gate, up, out))
    }
}
