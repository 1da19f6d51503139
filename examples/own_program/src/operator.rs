//! `negation`: element-wise negation.

use calorimeter_zoo::burn::tensor::backend::Backend;
use calorimeter_zoo::gate::Tolerance;
use calorimeter_zoo::{
    BurnPass, Cost, ExactReference, Matrix, Operand, Operation, OutputSample, OutputSlot, Pass, Signature, Spec,
    TensorValue,
};

/// Negates every element.
#[derive(Debug)]
pub struct Negation;

impl Signature for Negation {
    fn name(&self) -> &'static str {
        "negation"
    }

    fn description(&self) -> &'static str {
        "element-wise negation"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        vec![Operand::normal(1, spec.axis("numbers"), spec.element)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        vec![OutputSlot::new(1, spec.axis("numbers"), spec.element)]
    }
}

impl Cost for Negation {
    fn flops(&self, spec: &Spec) -> u64 {
        spec.axis("numbers")
    }
}

impl Operation for Negation {}

impl ExactReference for Negation {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        1
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        sample.map_elements(|row, col| -f64::from(inputs[0].row(row)[col]))
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 1, 1)
    }
}

impl BurnPass for Negation {
    fn pass<B: Backend>(&self, _: &Spec, mut inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let x = inputs.pop().expect("one input").float();
        Box::new(move || vec![TensorValue::Float(x.clone().neg())])
    }
}
