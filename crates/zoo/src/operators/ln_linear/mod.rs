//! A layer normalisation, then a linear layer.

use super::fusion_counts;
use super::layer_norm::LayerNorm;
use super::product::{size, weight};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite};
use crate::reference::dot;
use crate::{FusionModel, Matrix, Operand, Pass, Sample, Slot, Value};
use burn::tensor::backend::Backend;
use calorimeter_shapes::Axes;

/// `ln_linear`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LnLinear;

/// The normalisation alone, at this size.
fn first(spec: &Spec) -> Spec {
    let (m, k, _) = size(spec);
    let axes = Axes::new([("batch", 1), ("sequence", m), ("dimension", k)]).expect("three different names");
    Spec { axes, ..spec.clone() }
}

impl Operation for LnLinear {
    const ABOUT: &'static str = "layer normalisation with gain and bias, then a linear layer without, weights [n, k]";
    const SUITE: Suite = Suite::Fusion;

    fn all() -> Vec<Self> {
        vec![Self]
    }

    fn name(&self) -> &'static str {
        "ln_linear"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "k", "n"]
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (_, k, n) = size(spec);
        let mut inputs = LayerNorm.inputs(&first(spec));
        inputs.push(weight(n, k, k, spec));
        inputs
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (m, _, n) = size(spec);
        vec![Slot::new(m, n, spec.element)]
    }

    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        LayerNorm.flops(&first(spec)) + 2 * m * k * n
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let (m, k, _) = size(spec);
        LayerNorm.intermediate(&first(spec)) + m * k * fusion_counts::number_bytes(spec)
    }

    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        let (m, k, n) = size(spec);
        let kernels = [("layer_norm", 2 * m * k + 2 * k), ("matmul", m * k + n * k + m * n)];
        Some(fusion_counts::model(spec, &kernels, self.bytes(spec)))
    }

    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        spec.axis("k")
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let (norm, weight) = (first(spec), &inputs[3]);
        let cols: Vec<usize> = (0..inputs[0].cols).collect();
        sample.by_rows(|row| {
            let one = Sample { rows: vec![row], cols: cols.clone() };
            let x = LayerNorm.reference(&norm, inputs, 0, &one);
            sample.cols.iter().map(|&col| dot(&x, weight.row(col))).collect()
        })
    }

    // The normalised number and the product.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 2, 2 * spec.axis("k"))
    }

    fn pass<B: Backend>(&self, spec: &Spec, mut inputs: Vec<Value<B>>) -> Pass<B> {
        let weight = inputs.pop().expect("four inputs").float();
        let norm = LayerNorm.pass(&first(spec), inputs);
        Box::new(move || {
            let x = norm().into_iter().map(Value::float);
            x.map(|x| Value::Float(x.matmul(weight.clone().transpose()))).collect()
        })
    }
}
