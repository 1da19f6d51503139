//! Cross-entropy of logits with classes given by their numbers.

use super::loss;
use super::rows::{AXES, copies, count, input, size};
use super::softmax::exponentials;
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite, floats};
use crate::{Fill, Matrix, Operand, Pass, Sample, Slot, Value, ZooError};
use burn::tensor::{DType, backend::Backend};
use calorimeter_recipes::Element;

/// `cross_entropy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CrossEntropy;

/// Inputs are made as f32, which holds whole numbers up to here.
const CLASSES: u64 = 1 << 24;

impl Operation for CrossEntropy {
    const ABOUT: &'static str = "the mean cross-entropy of rows of logits with the numbers of their classes, in f32";
    const SUITE: Suite = Suite::Ops;

    fn all() -> Vec<Self> {
        vec![Self]
    }

    fn name(&self) -> &'static str {
        "cross_entropy"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        let classes = spec.axis("dimension");
        // With one class the loss is zero whatever the logits are, and nothing could be found wrong.
        if !(2..=CLASSES).contains(&classes) {
            return Err(ZooError::Shape(format!(
                "cross_entropy: dimension is {classes}; it is the number of classes, from 2 to {CLASSES}"
            )));
        }
        floats(self.name(), spec)
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (rows, classes) = size(spec);
        let targets = Operand::normal(rows, 1, Element::Signed(32)).filled(Fill::Below(classes as u32));
        vec![input(spec).filled(Fill::Far), targets]
    }

    fn outputs(&self, _: &Spec) -> Vec<Slot> {
        vec![loss::output()]
    }

    // Maximum, difference, exp, sum: four for each number; logarithm, difference, sum for each row; and the mean.
    fn flops(&self, spec: &Spec) -> u64 {
        let (rows, _) = size(spec);
        4 * count(spec) + 3 * rows + 1
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        copies(spec, 2)
    }

    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        count(spec)
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, _: &Sample) -> Vec<f64> {
        let [logits, targets] = inputs else { unreachable!("two inputs are declared") };
        let row = |row: usize| {
            let (exponentials, sum) = exponentials(logits.row(row));
            sum.ln() - exponentials[targets.row(row)[0] as usize].ln()
        };
        vec![loss::mean_exact(logits.rows, row)]
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        loss::tolerance(spec)
    }

    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let [logits, targets]: [Value<B>; 2] =
            inputs.try_into().expect("an operator is given as many inputs as it declares");
        let (logits, targets) = (logits.float(), targets.codes());
        Box::new(move || {
            let logits = logits.clone().cast(DType::F32);
            let below = logits.clone() - logits.max_dim(1);
            let sum = below.clone().exp().sum_dim(1);
            vec![Value::Float(loss::mean(sum.log() - below.gather(1, targets.clone())))]
        })
    }
}
