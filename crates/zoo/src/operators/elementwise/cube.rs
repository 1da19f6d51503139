//! CubeCL kernels for the addition and silu(x) y.

use super::Elementwise;
use crate::{CubeOf, CubePass, Pass, Spec, TensorValue, ZooError, cube_pass};
use burn_cubecl::CubeRuntime;

impl CubePass for Elementwise {
    fn pass<R: CubeRuntime>(&self, _: &Spec, inputs: Vec<TensorValue<CubeOf<R>>>) -> Result<Pass<CubeOf<R>>, ZooError> {
        use calorimeter_kernels::cube;
        match self {
            Self::TrainingAdd | Self::Add => {
                cube_pass(inputs, |client, size, [x, y], [out]| cube::add(client, size, x, y, out))
            }
            Self::SiluMul => cube_pass(inputs, |client, size, [x, y], [out]| cube::swiglu(client, size, x, y, out)),
            Self::Sigmoid => unreachable!("registered without `cube`"),
        }
    }
}
