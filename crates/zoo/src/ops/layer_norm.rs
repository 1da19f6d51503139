//! Layer normalisation with gain and bias over rows.

use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite};
use crate::{Fill, Matrix, Operand, Pass, Sample, Slot, Value};
use burn::tensor::{DType, backend::Backend};

/// `layer_norm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayerNorm;

pub(super) const EPSILON: f64 = 1e-5;

/// Rows and columns of a batch of sequences.
pub(super) fn size(spec: &Spec) -> (u64, u64) {
    (spec.axis("batch") * spec.axis("sequence"), spec.axis("dimension"))
}

pub(super) const AXES: &[&str] = &["batch", "sequence", "dimension"];

impl Operation for LayerNorm {
    const ABOUT: &'static str = "layer normalisation of rows, with gain and bias";
    const SUITE: Suite = Suite::Ops;

    fn all() -> Vec<Self> {
        vec![Self]
    }

    fn name(&self) -> &'static str {
        "layer_norm"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (rows, cols) = size(spec);
        vec![
            Operand::normal(rows, cols, spec.element).filled(Fill::Offset),
            Operand::normal(1, cols, spec.element).filled(Fill::Uniform(0.5, 1.5)),
            Operand::normal(1, cols, spec.element),
        ]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (rows, cols) = size(spec);
        vec![Slot::new(rows, cols, spec.element)]
    }

    // Sum; difference; square and sum; scale, gain and bias: eight for each number.
    fn flops(&self, spec: &Spec) -> u64 {
        let (rows, cols) = size(spec);
        8 * rows * cols
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let (rows, cols) = size(spec);
        3 * 4 * rows * cols
    }

    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let (gain, bias) = (inputs[1].row(0), inputs[2].row(0));
        sample.by_rows(|row| {
            let x = inputs[0].row(row);
            let n = x.len() as f64;
            let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
            let variance = x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
            let scale = 1.0 / (variance + EPSILON).sqrt();
            let one = |col: usize| (f64::from(x[col]) - mean) * scale * f64::from(gain[col]) + f64::from(bias[col]);
            sample.cols.iter().map(|&col| one(col)).collect()
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 1, spec.axis("dimension"))
    }

    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [x, gain, bias] =
            inputs.try_into().map(|inputs: [Value<B>; 3]| inputs.map(Value::float)).expect("three inputs");
        Box::new(move || {
            let x = x.clone().cast(DType::F32);
            let centred = x.clone() - x.mean_dim(1);
            let variance = centred.clone().powi_scalar(2).mean_dim(1);
            let normal = centred / (variance + EPSILON).sqrt();
            let y = normal * gain.clone().cast(DType::F32) + bias.clone().cast(DType::F32);
            vec![Value::Float(y.cast(dtype))]
        })
    }
}
