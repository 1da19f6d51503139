//! Attention: softmax(Q K^T / sqrt(d)) V for each head, step by step. Rows are the positions of every head of every batch.

use super::number_types::{FLOATS, allow};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec};
use crate::{Matrix, Operand, Pass, Sample, Slot, Value, ZooError};
use burn::tensor::{Bool, DType, Tensor, activation, backend::Backend};
use calorimeter_case::Suite;
use calorimeter_recipes::FloatType;

/// What a position attends to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HeadAttention {
    /// `attention`: every position.
    Full,
    /// `attention_causal`: itself and those before it.
    Causal,
}

/// Heads of all batches, positions, numbers of a position.
fn size(spec: &Spec) -> (u64, u64, u64) {
    (spec.axis("batch") * spec.axis("heads"), spec.axis("sequence"), spec.axis("head_dim"))
}

impl Operation for HeadAttention {
    const ABOUT: &'static str = "attention of each head, its steps apart";
    const SUITE: Suite = Suite::Gemm;

    fn all() -> Vec<Self> {
        vec![Self::Full, Self::Causal]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Full => "attention",
            Self::Causal => "attention_causal",
        }
    }

    fn products(&self) -> u32 {
        2
    }

    fn axes(&self) -> &'static [&'static str] {
        &["batch", "heads", "sequence", "head_dim"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        allow(self.name(), spec, FLOATS, &[])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (heads, sequence, d) = size(spec);
        vec![Operand::normal(heads * sequence, d, spec.element); 3]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (heads, sequence, d) = size(spec);
        vec![Slot::new(heads * sequence, d, spec.element)]
    }

    // Two products, and for each score: a scale, a maximum, a difference, an exponential, a sum and a quotient.
    fn flops(&self, spec: &Spec) -> u64 {
        let (heads, sequence, d) = size(spec);
        let scores = match self {
            Self::Full => sequence * sequence,
            Self::Causal => sequence * (sequence + 1) / 2,
        };
        heads * scores * (4 * d + 6)
    }

    // Scores and weights in the type of the inputs and in f32, whether they are masked or not.
    fn intermediate(&self, spec: &Spec) -> u64 {
        let (heads, sequence, _) = size(spec);
        heads * sequence * sequence * (2 * spec.dtype().bytes() + 2 * 4)
    }

    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        2 * spec.axis("sequence")
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let (_, sequence, d) = size(spec);
        let scale = 1.0 / (d as f64).sqrt();
        sample.by_rows(|row| {
            let query = inputs[0].row(row);
            let first = row - row % sequence as usize;
            let last = if *self == Self::Causal { row + 1 } else { first + sequence as usize };
            let score = |key: usize| {
                let products = query.iter().zip(inputs[1].row(key)).map(|(&q, &k)| f64::from(q) * f64::from(k));
                scale * products.sum::<f64>()
            };
            let scores: Vec<f64> = (first..last).map(score).collect();
            let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
            let total: f64 = weights.iter().sum();
            let value = |key: usize, col: usize| f64::from(inputs[2].row(key)[col]);
            let one =
                |col: usize| (first..last).zip(&weights).map(|(key, weight)| weight * value(key, col)).sum::<f64>();
            sample.cols.iter().map(|&col| one(col) / total).collect()
        })
    }

    // Scores, weights and output are rounded; a score's rounding counts for more, the larger it is. On the whole that is
    // worth six roundings. A single row may hang on one score, which lies up to 4.5 standard deviations from zero and is
    // rounded in proportion: that moves a weight of one half by 1.1 roundings, against 0.15 for the norm of a whole row
    // of 128 positions and a value of 3, so that one number may be off by 23. Four times the root of 36 is 24.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        let of = |roundings| Tolerance::new(spec.dtype(), roundings, spec.axis("sequence") + spec.axis("head_dim"));
        Tolerance { element: of(36).element, ..of(6) }
    }

    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let scale = (spec.axis("head_dim") as f64).sqrt();
        let shape = ["batch", "heads", "sequence", "head_dim"].map(|axis| spec.axis(axis) as usize);
        let [_, _, sequence, d] = shape;
        let inputs: Vec<Tensor<B, 2>> = inputs.into_iter().map(Value::float).collect();
        let later = (*self == Self::Causal)
            .then(|| Tensor::<B, 2, Bool>::tril_mask([sequence, sequence], 0, &inputs[0].device()).unsqueeze());
        Box::new(move || {
            let [q, k, v] = [0, 1, 2].map(|input| inputs[input].clone().reshape(shape));
            // The softmax is in f32, the products are in the type of the inputs.
            let mut scores = q.matmul(k.swap_dims(2, 3)).cast(DType::F32).div_scalar(scale);
            if let Some(later) = &later {
                scores = scores.mask_fill(later.clone(), f32::NEG_INFINITY);
            }
            let y = activation::softmax(scores, 3).cast(dtype).matmul(v);
            let rows = y.dims()[..3].iter().product();
            vec![Value::Float(y.reshape([rows, d]))]
        })
    }
}
