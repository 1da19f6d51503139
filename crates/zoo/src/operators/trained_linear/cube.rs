//! Training passes with CubeCL kernels: one casts each operand to float8 in a single read, one runs the optimizer step.
//! Matmuls are burn's.

use super::burn::by_burn;
use super::{Given, TrainedLinear, cube_optimizers};
use crate::{CubeOf, CubePass, Pass, Spec, Value, ZooError};
use burn_cubecl::CubeRuntime;
use calorimeter_recipes::training::Casting;

impl CubePass for TrainedLinear {
    fn pass<R: CubeRuntime>(&self, spec: &Spec, inputs: Vec<Value<CubeOf<R>>>) -> Result<Pass<CubeOf<R>>, ZooError> {
        if self.updated().is_some() {
            let find = |input: Given| self.given().iter().position(|other| *other == input);
            let float = |index: usize| inputs[index].clone().float();
            let moments = find(Given::Moment(0)).zip(find(Given::Moment(1)));
            let weight = float(find(Given::Weight).expect("an optimizer has weights"));
            cube_optimizers::check(&weight, moments.map(|(mean, square)| [mean, square].map(float)))?;
        }
        let training = spec.training.map(|recipe| recipe.training().with_casting(Casting::AtOnce));
        Ok(by_burn(*self, training, cube_optimizers::update::<R>, inputs))
    }
}
