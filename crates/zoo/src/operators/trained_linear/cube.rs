//! Training passes with CubeCL kernels: one casts each operand to float8 in a single read, one runs the optimizer step.
//! Matmuls are burn's.

use super::burn::burn_pass;
use super::{PassInput, TrainedLinear, cube_optimizers};
use crate::{CubeOf, CubePass, Pass, Spec, TensorValue, ZooError};
use burn_cubecl::CubeRuntime;
use calorimeter_recipes::training::CastStrategy;

impl CubePass for TrainedLinear {
    fn pass<R: CubeRuntime>(
        &self,
        spec: &Spec,
        inputs: Vec<TensorValue<CubeOf<R>>>,
    ) -> Result<Pass<CubeOf<R>>, ZooError> {
        if self.optimizer_flops().is_some() {
            let find = |input: PassInput| self.pass_inputs().iter().position(|other| *other == input);
            let float = |index: usize| inputs[index].clone().float();
            let moments = find(PassInput::Moment(0)).zip(find(PassInput::Moment(1)));
            let weight = float(find(PassInput::Weight).expect("an optimizer has weights"));
            cube_optimizers::check_kernels(&weight, moments.map(|(mean, square)| [mean, square].map(float)))?;
        }
        let training = spec.training.map(|recipe| recipe.training().with_cast_strategy(CastStrategy::Fused));
        Ok(burn_pass(*self, training, cube_optimizers::update_weights::<R>, inputs))
    }
}
