//! The mean of squared differences.

use super::loss;
use super::rows::{AXES, copies, count, floats, input};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite};
use crate::{Fill, Matrix, Operand, Pass, Sample, Slot, Value};
use burn::tensor::{DType, backend::Backend};

/// `mse_loss`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MseLoss;

impl Operation for MseLoss {
    const ABOUT: &'static str = "the mean of the squared differences of two inputs, in f32";
    const SUITE: Suite = Suite::Ops;

    fn all() -> Vec<Self> {
        vec![Self]
    }

    fn name(&self) -> &'static str {
        "mse_loss"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        // With both around zero, a sum of squares would have the same mean as a squared difference.
        vec![input(spec).filled(Fill::Offset); 2]
    }

    fn outputs(&self, _: &Spec) -> Vec<Slot> {
        vec![loss::output()]
    }

    // Difference, square, sum: three for each number; and the mean.
    fn flops(&self, spec: &Spec) -> u64 {
        3 * count(spec) + 1
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        copies(spec, 3)
    }

    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        2 * count(spec)
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, _: &Sample) -> Vec<f64> {
        let [x, y] = inputs else { unreachable!("two inputs are declared") };
        let square = |(&x, &y): (&f32, &f32)| (f64::from(x) - f64::from(y)).powi(2);
        let row = |row: usize| x.row(row).iter().zip(y.row(row)).map(square).sum::<f64>() / x.cols as f64;
        vec![loss::mean_exact(x.rows, row)]
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        loss::tolerance(spec)
    }

    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let [x, y] = floats(inputs);
        Box::new(move || {
            let difference = x.clone().cast(DType::F32) - y.clone().cast(DType::F32);
            vec![Value::Float(loss::mean(difference.powi_scalar(2)))]
        })
    }
}
