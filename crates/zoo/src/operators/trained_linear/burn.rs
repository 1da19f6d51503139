//! By burn's operations.

use super::optimizers::{self, Update};
use super::{Given, Made, TrainedLinear};
use crate::{BurnPass, Pass, Spec, Value, parts};
use burn::tensor::Tensor;
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::{self, Float8Backend, Float8Training};

impl BurnPass for TrainedLinear {
    fn pass<B: QuantBackend + Float8Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        by_burn(*self, spec.training.map(|recipe| recipe.training()), optimizers::update, inputs)
    }
}

/// A pass whose operands are cast as a training says, and whose weights follow their gradient by an update.
pub fn by_burn<B: QuantBackend + Float8Backend>(
    pass: TrainedLinear,
    training: Option<Float8Training>,
    update: Update<B>,
    inputs: Vec<Value<B>>,
) -> Pass<B> {
    let inputs: Vec<Tensor<B, 2>> = inputs.into_iter().map(Value::float).collect();
    Box::new(move || {
        let given = |wanted: Given| {
            let at = pass.given().iter().position(|given| *given == wanted);
            at.map(|at| inputs[at].clone())
        };
        let begin = |part| parts::begin_on(part, &inputs[0]);
        results(pass, given, begin, training, update).into_iter().map(Value::Float).collect()
    })
}

/// What a pass computes of what it is given.
fn results<B: QuantBackend + Float8Backend>(
    pass: TrainedLinear,
    given: impl Fn(Given) -> Option<Tensor<B, 2>>,
    begin: impl Fn(&'static str),
    training: Option<Float8Training>,
    update: Update<B>,
) -> Vec<Tensor<B, 2>> {
    let get = |wanted| given(wanted).expect("a pass is given what it needs");
    let training = training.unwrap_or(Float8Training::none());
    let gradient = || training::grad_weight(get(Given::GradOutput), get(Given::Input), training).transpose();
    let step = || {
        let moments = given(Given::Moment(0)).zip(given(Given::Moment(1)));
        let gradient = given(Given::GradWeight).unwrap_or_else(gradient);
        begin(parts::OPTIMIZER);
        update(get(Given::Weight), gradient, moments.map(Into::into))
    };
    let mut updated: Option<Vec<Tensor<B, 2>>> = None;
    let mut after = |at: usize| updated.get_or_insert_with(step)[at].clone();
    let each = pass.results().iter().map(|result| match result {
        Made::Output => {
            begin(parts::FORWARD);
            training::output(get(Given::Input), get(Given::Weight).transpose(), training)
        }
        Made::GradInput => {
            begin(parts::BACKWARD);
            training::grad_input(get(Given::GradOutput), get(Given::Weight).transpose(), training)
        }
        Made::GradWeight => gradient(),
        Made::Weight => after(0),
        Made::Moment(of) => after(1 + of),
    });
    each.collect()
}
