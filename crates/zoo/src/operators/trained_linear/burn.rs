//! By burn's operations.

use super::{Given, Made, TrainedLinear, optimisers};
use crate::{BurnPass, Pass, Spec, Value};
use burn::tensor::Tensor;
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::{self, Float8Training};

impl BurnPass for TrainedLinear {
    fn pass<B: QuantBackend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let pass = *self;
        let inputs: Vec<Tensor<B, 2>> = inputs.into_iter().map(Value::float).collect();
        let recipe = spec.training.map(|recipe| recipe.training());
        Box::new(move || {
            let given = |wanted: Given| {
                let at = pass.given().iter().position(|given| *given == wanted);
                at.map(|at| inputs[at].clone())
            };
            results(pass, given, recipe).into_iter().map(Value::Float).collect()
        })
    }
}

/// What a pass computes of what it is given.
fn results<B: QuantBackend>(
    pass: TrainedLinear,
    given: impl Fn(Given) -> Option<Tensor<B, 2>>,
    recipe: Option<Float8Training>,
) -> Vec<Tensor<B, 2>> {
    let get = |wanted| given(wanted).expect("a pass is given what it needs");
    let training = recipe.unwrap_or(Float8Training::none());
    let gradient = || training::grad_weight(get(Given::GradOutput), get(Given::Input), training).transpose();
    let update = || {
        let weight = get(Given::Weight);
        let gradient = given(Given::GradWeight).unwrap_or_else(gradient);
        match given(Given::Moment(0)).zip(given(Given::Moment(1))) {
            Some((mean, square)) => optimisers::adamw(weight, gradient, [mean, square]).into(),
            None => vec![optimisers::sgd(weight, gradient)],
        }
    };
    let mut updated: Option<Vec<Tensor<B, 2>>> = None;
    let mut after = |at: usize| updated.get_or_insert_with(update)[at].clone();
    let each = pass.results().iter().map(|result| match result {
        Made::Output => training::output(get(Given::Input), get(Given::Weight).transpose(), training),
        Made::GradInput => training::grad_input(get(Given::GradOutput), get(Given::Weight).transpose(), training),
        Made::GradWeight => gradient(),
        Made::Weight => after(0),
        Made::Moment(of) => after(1 + of),
    });
    each.collect()
}
