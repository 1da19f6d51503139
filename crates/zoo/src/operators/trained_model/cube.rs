//! Training passes of models with CubeCL kernels: one casts each operand of a linear layer to float8 in a single read,
//! one runs the optimizer step of each parameter. All other operations are burn's.

use super::architecture::Architecture;
use super::{Given, TrainedModel};
use crate::operators::trained_linear::cube_optimizers;
use crate::{CubeOf, CubePass, Pass, Spec, Value, ZooError};
use burn_cubecl::CubeRuntime;
use calorimeter_recipes::training::Casting;

impl<A: Architecture> CubePass for TrainedModel<A> {
    fn pass<R: CubeRuntime>(&self, spec: &Spec, inputs: Vec<Value<CubeOf<R>>>) -> Result<Pass<CubeOf<R>>, ZooError> {
        if self.pass.updated().is_some() {
            let pass_inputs = self.given(spec);
            let find = |input: Given| pass_inputs.iter().position(|other| *other == input);
            let float = |index: usize| inputs[index].clone().float();
            for of in 0..self.parameters(spec).len() {
                let moments = find(Given::Moment(0, of)).zip(find(Given::Moment(1, of)));
                let parameter = float(find(Given::Parameter(of)).expect("an optimizer has parameters"));
                cube_optimizers::check(&parameter, moments.map(|(mean, square)| [mean, square].map(float)))?;
            }
        }
        let training = spec.training.map(|recipe| recipe.training().with_casting(Casting::AtOnce));
        Ok(self.by_burn(spec, training, cube_optimizers::update::<R>, inputs))
    }
}
