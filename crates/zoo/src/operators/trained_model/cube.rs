//! Training passes of models with CubeCL kernels: one casts each operand of a linear layer to float8 in a single read,
//! one runs the optimizer step of each parameter. All other operations are burn's.

use super::architecture::Architecture;
use super::{ModelInput, TrainedModel};
use crate::operators::trained_linear::cube_optimizers;
use crate::{CubeOf, CubePass, Pass, Spec, TensorValue, ZooError};
use burn_cubecl::CubeRuntime;
use calorimeter_recipes::training::CastStrategy;

impl<A: Architecture> CubePass for TrainedModel<A> {
    fn pass<R: CubeRuntime>(
        &self,
        spec: &Spec,
        inputs: Vec<TensorValue<CubeOf<R>>>,
    ) -> Result<Pass<CubeOf<R>>, ZooError> {
        if self.pass.optimizer_flops().is_some() {
            let pass_inputs = self.pass_inputs(spec);
            let find = |input: ModelInput| pass_inputs.iter().position(|other| *other == input);
            let float = |index: usize| inputs[index].clone().float();
            for of in 0..self.parameters(spec).len() {
                let moments = find(ModelInput::Moment(0, of)).zip(find(ModelInput::Moment(1, of)));
                let parameter = float(find(ModelInput::Parameter(of)).expect("an optimizer has parameters"));
                cube_optimizers::check_kernels(&parameter, moments.map(|(mean, square)| [mean, square].map(float)))?;
            }
        }
        let training = spec.training.map(|recipe| recipe.training().with_cast_strategy(CastStrategy::Fused));
        Ok(self.burn_pass(spec, training, cube_optimizers::update_weights::<R>, inputs))
    }
}
