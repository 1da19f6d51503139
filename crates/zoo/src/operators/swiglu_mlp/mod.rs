//! The gated MLP of large models: silu(x Wg) * (x Wu), then Wd.

use super::fusion_counts;
use super::linear_bias::SILU_FLOPS;
use super::product::{size, weight};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite};
use crate::reference::dot;
use crate::{Activation, FusionModel, Matrix, Operand, Pass, Sample, Slot, Value};
use burn::tensor::backend::Backend;

/// `swiglu_mlp`: m rows, k numbers wide outside and n inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SwigluMlp;

impl Operation for SwigluMlp {
    const ABOUT: &'static str = "gated MLP: k wide, n hidden, gate and up weights [n, k], down weights [k, n]";
    const SUITE: Suite = Suite::Fusion;

    fn all() -> Vec<Self> {
        vec![Self]
    }

    fn name(&self) -> &'static str {
        "swiglu_mlp"
    }

    fn products(&self) -> u32 {
        2
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "k", "n"]
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, k, n) = size(spec);
        let wide = weight(n, k, k, spec);
        vec![Operand::normal(m, k, spec.element), wide, wide, weight(k, n, n, spec)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (m, k, _) = size(spec);
        vec![Slot::new(m, k, spec.element)]
    }

    // Three products, a SiLU and the gating.
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        6 * m * k * n + (SILU_FLOPS + 1) * m * n
    }

    // Gate, up, and one of the SiLU's steps.
    fn intermediate(&self, spec: &Spec) -> u64 {
        let (m, _, n) = size(spec);
        3 * m * n * fusion_counts::number_bytes(spec)
    }

    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        let (m, k, n) = size(spec);
        let product = m * k + n * k + m * n;
        let kernels =
            [("matmul", product), ("matmul", product), ("silu", 2 * m * n), ("mul", 3 * m * n), ("matmul", product)];
        Some(fusion_counts::model(spec, &kernels, self.bytes(spec)))
    }

    // The hidden layer of a row is computed whole, whatever is sampled of its output.
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        let (_, k, n) = size(spec);
        Sample::depth_of_rows(k, 3 * k * n)
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let [x, gate, up, down] = inputs else { unreachable!("the operator has four inputs") };
        sample.by_rows(|row| {
            let x = x.exact_row(row);
            let hidden: Vec<f64> =
                (0..gate.rows).map(|i| Activation::Silu.exact(dot(&x, gate.row(i))) * dot(&x, up.row(i))).collect();
            sample.cols.iter().map(|&col| dot(&hidden, down.row(col))).collect()
        })
    }

    // Gate, its SiLU (two), up, their product, the output.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        let (_, k, n) = size(spec);
        Tolerance::new(spec.dtype(), 6, 2 * k + n)
    }

    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let [x, gate, up, down] =
            inputs.try_into().map(|inputs: [Value<B>; 4]| inputs.map(Value::float)).expect("four inputs");
        Box::new(move || {
            let gate = Activation::Silu.apply(x.clone().matmul(gate.clone().transpose()));
            let hidden = gate * x.clone().matmul(up.clone().transpose());
            vec![Value::Float(hidden.matmul(down.clone().transpose()))]
        })
    }
}
