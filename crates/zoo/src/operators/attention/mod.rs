//! What every attention computes: scores of queries and keys, their softmax, the mixture of values.

use super::fusion_counts;
use crate::gate::Tolerance;
use crate::operator::Spec;
use crate::reference::dot;
use crate::{FusionModel, Matrix, Operand, Pass, Sample, Slot, Value};
use burn::tensor::activation::softmax;
use burn::tensor::{Bool, Tensor, backend::Backend};

/// How far an operator goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// To the scaled scores.
    Scores,
    /// To their softmax.
    Softmax,
    /// To the mixture of values.
    Mixed,
}

/// Attention at a size. Queries, keys, values and mixtures are matrices `[batch * heads * sequence, width]`, scores are
/// `[batch * heads * sequence, sequence]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attention {
    pub batch: u64,
    pub heads: u64,
    pub sequence: u64,
    pub width: u64,
    /// Whether a position sees no later one.
    pub causal: bool,
    pub stage: Stage,
}

impl Attention {
    pub fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let one = Operand::normal(self.rows(), self.width, spec.element);
        vec![one; if self.stage == Stage::Mixed { 3 } else { 2 }]
    }

    pub fn output(&self, spec: &Spec) -> Slot {
        let cols = if self.stage == Stage::Mixed { self.width } else { self.sequence };
        Slot::new(self.rows(), cols, spec.element)
    }

    /// Products and sums, the scale, and for a softmax maximum, difference, exponential, sum, quotient: of the pairs that
    /// see each other alone.
    pub fn flops(&self) -> u64 {
        let seen = if self.causal { self.sequence * (self.sequence + 1) / 2 } else { self.sequence.pow(2) };
        let each = match self.stage {
            Stage::Scores => 2 * self.width + 1,
            Stage::Softmax => 2 * self.width + 6,
            Stage::Mixed => 4 * self.width + 6,
        };
        self.batch * self.heads * seen * each
    }

    /// Scores, scaled, masked and through the steps of a softmax: three matrices of them live at a time.
    pub fn intermediate(&self, spec: &Spec) -> u64 {
        3 * self.pairs() * fusion_counts::number_bytes(spec)
    }

    /// The mask is not counted: it is the same for all heads, and small.
    pub fn fusion(&self, spec: &Spec, fused: u64) -> FusionModel {
        let (q, pairs) = (self.rows() * self.width, self.pairs());
        let mut kernels = vec![("matmul", 2 * q + pairs), ("scale", 2 * pairs)];
        if self.causal {
            kernels.push(("mask", 2 * pairs));
        }
        if self.stage >= Stage::Softmax {
            kernels.push(("softmax", 2 * pairs));
        }
        if self.stage == Stage::Mixed {
            kernels.push(("matmul", pairs + 2 * q));
        }
        fusion_counts::model(spec, &kernels, fused)
    }

    pub fn depth(&self) -> u64 {
        match self.stage {
            Stage::Scores => self.width,
            // A softmax needs its whole row, whatever is sampled of it.
            Stage::Softmax => Sample::depth_of_rows(self.sequence, self.sequence * self.width),
            Stage::Mixed => Sample::depth_of_rows(self.width, 2 * self.sequence * self.width),
        }
    }

    pub fn reference(&self, inputs: &[Matrix], sample: &Sample) -> Vec<f64> {
        let sequence = self.sequence as usize;
        sample.by_rows(|row| {
            // Keys and values of the row's own sequence.
            let first = row - row % sequence;
            let query = inputs[0].exact_row(row);
            let score = |key: usize| dot(&query, inputs[1].row(first + key)) * self.scale();
            if self.stage == Stage::Scores {
                return sample.cols.iter().map(|&key| score(key)).collect();
            }
            let seen = if self.causal { row - first + 1 } else { sequence };
            let scores: Vec<f64> = (0..seen).map(score).collect();
            let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
            let sum: f64 = powers.iter().sum();
            if self.stage == Stage::Softmax {
                return sample.cols.iter().map(|&key| powers.get(key).map_or(0.0, |power| power / sum)).collect();
            }
            let mut mixed = vec![0.0; sample.cols.len()];
            for (key, power) in powers.iter().enumerate() {
                let value = inputs[2].row(first + key);
                mixed.iter_mut().zip(&sample.cols).for_each(|(out, &col)| *out += power * f64::from(value[col]));
            }
            mixed.iter().map(|out| out / sum).collect()
        })
    }

    /// Scores are rounded twice, and the exponential of a score near 3 triples its error: nine times two in quadrature.
    /// Then four steps of a softmax, and two of the mixture.
    pub fn tolerance(&self, spec: &Spec) -> Tolerance {
        let (roundings, depth) = match self.stage {
            Stage::Scores => (2, self.width),
            Stage::Softmax => (22, self.width + self.sequence),
            Stage::Mixed => (24, self.width + self.sequence),
        };
        Tolerance::new(spec.dtype(), roundings, depth)
    }

    pub fn pass<B: Backend>(&self, inputs: Vec<Value<B>>) -> Pass<B> {
        let Self { stage, .. } = *self;
        let [batch, heads, sequence, width] =
            [self.batch, self.heads, self.sequence, self.width].map(|axis| axis as usize);
        let (rows, scale) = (batch * heads * sequence, self.scale());
        let inputs: Vec<Tensor<B, 4>> =
            inputs.into_iter().map(|input| input.float().reshape([batch, heads, sequence, width])).collect();
        // True where it hides: one mask for all heads, made once.
        let mask = self.causal.then(|| {
            let mask = Tensor::<B, 2, Bool>::tril_mask([sequence, sequence], 0, &inputs[0].device());
            mask.unsqueeze::<4>().expand([batch, heads, sequence, sequence])
        });
        Box::new(move || {
            let scores = inputs[0].clone().matmul(inputs[1].clone().transpose()) * scale;
            if stage == Stage::Scores {
                return vec![Value::Float(scores.reshape([rows, sequence]))];
            }
            let seen = match &mask {
                Some(mask) => scores.mask_fill(mask.clone(), f32::NEG_INFINITY),
                None => scores,
            };
            let shares = softmax(seen, 3);
            vec![Value::Float(match stage {
                Stage::Mixed => shares.matmul(inputs[2].clone()).reshape([rows, width]),
                _ => shares.reshape([rows, sequence]),
            })]
        })
    }

    fn rows(&self) -> u64 {
        self.batch * self.heads * self.sequence
    }

    fn pairs(&self) -> u64 {
        self.rows() * self.sequence
    }

    fn scale(&self) -> f64 {
        1.0 / (self.width as f64).sqrt()
    }
}
