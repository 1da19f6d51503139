//! Training passes of a linear layer by burn's operations.

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

/// Pass with matmul operands cast as `training` says and an optimizer given by `update`.
pub fn by_burn<B: QuantBackend + Float8Backend>(
    pass: TrainedLinear,
    training: Option<Float8Training>,
    update: Update<B>,
    inputs: Vec<Value<B>>,
) -> Pass<B> {
    let inputs: Vec<Tensor<B, 2>> = inputs.into_iter().map(Value::float).collect();
    Box::new(move || {
        let find = |input: Given| {
            let index = pass.given().iter().position(|other| *other == input);
            index.map(|index| inputs[index].clone())
        };
        let begin = |part| parts::begin_on(part, &inputs[0]);
        results(pass, find, begin, training, update).into_iter().map(Value::Float).collect()
    })
}

/// Computes the outputs of a pass from its inputs, which `find` returns.
fn results<B: QuantBackend + Float8Backend>(
    pass: TrainedLinear,
    find: impl Fn(Given) -> Option<Tensor<B, 2>>,
    begin: impl Fn(&'static str),
    training: Option<Float8Training>,
    update: Update<B>,
) -> Vec<Tensor<B, 2>> {
    let get = |input| find(input).expect("the pass has this input");
    let training = training.unwrap_or(Float8Training::none());
    let gradient = || training::grad_weight(get(Given::GradOutput), get(Given::Input), training).transpose();
    let step = || {
        let moments = find(Given::Moment(0)).zip(find(Given::Moment(1)));
        let gradient = find(Given::GradWeight).unwrap_or_else(gradient);
        begin(parts::OPTIMIZER);
        update(get(Given::Weight), gradient, moments.map(Into::into))
    };
    let mut updated: Option<Vec<Tensor<B, 2>>> = None;
    let mut update_output = |index: usize| updated.get_or_insert_with(step)[index].clone();
    let outputs = pass.results().iter().map(|result| match result {
        Made::Output => {
            begin(parts::FORWARD);
            training::output(get(Given::Input), get(Given::Weight).transpose(), training)
        }
        Made::GradInput => {
            begin(parts::BACKWARD);
            training::grad_input(get(Given::GradOutput), get(Given::Weight).transpose(), training)
        }
        Made::GradWeight => gradient(),
        Made::Weight => update_output(0),
        Made::Moment(moment) => update_output(1 + moment),
    });
    outputs.collect()
}
