//! By kernels of ours, through CubeCL: operands of linear layers cast to float8 in one reading each, and the optimizer's step of
//! each parameter in another; what else there is, is burn's.

use super::architecture::Architecture;
use super::{Given, TrainedModel};
use crate::operators::trained_linear::cube_optimizers;
use crate::{CubeOf, CubePass, Pass, Spec, Value, ZooError};
use burn_cubecl::CubeRuntime;
use calorimeter_recipes::training::Casting;

impl<A: Architecture> CubePass for TrainedModel<A> {
    fn pass<R: CubeRuntime>(&self, spec: &Spec, inputs: Vec<Value<CubeOf<R>>>) -> Result<Pass<CubeOf<R>>, ZooError> {
        if self.pass.updated().is_some() {
            let given = self.given(spec);
            let find = |wanted: Given| given.iter().position(|given| *given == wanted);
            let float = |at: usize| inputs[at].clone().float();
            for of in 0..self.parameters(spec).len() {
                let moments = find(Given::Moment(0, of)).zip(find(Given::Moment(1, of)));
                let parameter = float(find(Given::Parameter(of)).expect("an optimizer is given parameters"));
                cube_optimizers::check(&parameter, moments.map(|(mean, square)| [mean, square].map(float)))?;
            }
        }
        let training = spec.training.map(|recipe| recipe.training().with_casting(Casting::AtOnce));
        Ok(self.by_burn(spec, training, cube_optimizers::update::<R>, inputs))
    }
}
