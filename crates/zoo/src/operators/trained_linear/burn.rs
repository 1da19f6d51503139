//! Training passes of a linear layer by burn's operations.

use super::optimizers::{self, OptimizerUpdate};
use super::{PassInput, PassOutput, TrainedLinear};
use crate::{BurnPass, Pass, Spec, TensorValue, parts};
use burn::tensor::Tensor;
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::{self, Float8Backend, Float8Training};

impl BurnPass for TrainedLinear {
    fn pass<B: QuantBackend + Float8Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        burn_pass(*self, spec.training.map(|recipe| recipe.training()), optimizers::update_weights, inputs)
    }
}

/// Pass with matmul operands cast as `training` says and an optimizer given by `update`.
pub(super) fn burn_pass<B: QuantBackend + Float8Backend>(
    pass: TrainedLinear,
    training: Option<Float8Training>,
    update: OptimizerUpdate<B>,
    inputs: Vec<TensorValue<B>>,
) -> Pass<B> {
    let inputs: Vec<Tensor<B, 2>> = inputs.into_iter().map(TensorValue::float).collect();
    Box::new(move || {
        let find = |input: PassInput| {
            let index = pass.pass_inputs().iter().position(|other| *other == input);
            index.map(|index| inputs[index].clone())
        };
        let begin = |part| parts::begin_on(part, &inputs[0]);
        compute_outputs(pass, find, begin, training, update).into_iter().map(TensorValue::Float).collect()
    })
}

/// Computes the outputs of a pass from its inputs, which `find` returns.
fn compute_outputs<B: QuantBackend + Float8Backend>(
    pass: TrainedLinear,
    find: impl Fn(PassInput) -> Option<Tensor<B, 2>>,
    begin: impl Fn(&'static str),
    training: Option<Float8Training>,
    update: OptimizerUpdate<B>,
) -> Vec<Tensor<B, 2>> {
    let get = |input| find(input).expect("the pass has this input");
    let training = training.unwrap_or(Float8Training::unquantized());
    let gradient = || training::grad_weight(get(PassInput::GradOutput), get(PassInput::Input), training).transpose();
    let step = || {
        let moments = find(PassInput::Moment(0)).zip(find(PassInput::Moment(1)));
        let gradient = find(PassInput::GradWeight).unwrap_or_else(gradient);
        begin(parts::OPTIMIZER);
        update(get(PassInput::Weight), gradient, moments.map(Into::into))
    };
    let mut updated: Option<Vec<Tensor<B, 2>>> = None;
    let mut update_output = |index: usize| updated.get_or_insert_with(step)[index].clone();
    let outputs = pass.pass_outputs().iter().map(|result| match result {
        PassOutput::Output => {
            begin(parts::FORWARD);
            training::output(get(PassInput::Input), get(PassInput::Weight).transpose(), training)
        }
        PassOutput::GradInput => {
            begin(parts::BACKWARD);
            training::grad_input(get(PassInput::GradOutput), get(PassInput::Weight).transpose(), training)
        }
        PassOutput::GradWeight => gradient(),
        PassOutput::Weight => update_output(0),
        PassOutput::Moment(moment) => update_output(1 + moment),
    });
    outputs.collect()
}
