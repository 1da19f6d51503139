//! Double-precision reference and tolerance of attention.

use super::{Attention, AttentionKind, AttentionSize, AttentionStage};
use crate::gate::Tolerance;
use crate::reference::dot;
use crate::{ExactReference, Matrix, OutputSample, Spec};

impl ExactReference for Attention {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        let AttentionSize { sequence, width, .. } = AttentionSize::new(self.kind, spec);
        match (self.kind, self.stage) {
            (AttentionKind::MultiHeadF32Softmax, _) => 2 * sequence,
            (_, AttentionStage::Scores) => width,
            // A softmax needs its whole row, even if few of its columns are sampled.
            (_, AttentionStage::Softmax) => OutputSample::depth_for_row_cost(sequence, sequence * width),
            (_, AttentionStage::Output) => OutputSample::depth_for_row_cost(width, 2 * sequence * width),
        }
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        let size = AttentionSize::new(self.kind, spec);
        let (sequence, scale) = (size.sequence as usize, 1.0 / (size.width as f64).sqrt());
        sample.map_rows(|row| {
            // First row of the sequence and head that the query belongs to.
            let first = row - row % sequence;
            let query = inputs[0].exact_row(row);
            let score = |key: usize| dot(&query, inputs[1].row(first + key)) * scale;
            if self.stage == AttentionStage::Scores {
                return sample.cols.iter().map(|&key| score(key)).collect();
            }
            let visible = if self.causal { row - first + 1 } else { sequence };
            let scores: Vec<f64> = (0..visible).map(score).collect();
            let max_score = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let exponentials: Vec<f64> = scores.iter().map(|score| (score - max_score).exp()).collect();
            let total: f64 = exponentials.iter().sum();
            if self.stage == AttentionStage::Softmax {
                return sample
                    .cols
                    .iter()
                    .map(|&key| exponentials.get(key).map_or(0.0, |exponential| exponential / total))
                    .collect();
            }
            let mut output = vec![0.0; sample.cols.len()];
            for (key, exponential) in exponentials.iter().enumerate() {
                let value = inputs[2].row(first + key);
                output.iter_mut().zip(&sample.cols).for_each(|(sum, &col)| *sum += exponential * f64::from(value[col]));
            }
            output.iter().map(|sum| sum / total).collect()
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        let AttentionSize { sequence, width, .. } = AttentionSize::new(self.kind, spec);
        let (roundings, depth) = match (self.kind, self.stage) {
            // Scores, softmax weights and the output are rounded, and the rounding error of a score grows with the
            // score. In the norm this amounts to six roundings.
            //
            // A single row may depend on one score of up to 4.5 standard deviations. Its rounding changes a weight of
            // one half by 1.1 roundings. Relative to the norm of a row over 128 positions, 0.15, and with a value of 3
            // in V, one element errs by up to 23 roundings. 4 * √36 = 24 bounds that.
            (AttentionKind::MultiHeadF32Softmax, _) => {
                let of = |roundings| Tolerance::new(spec.dtype(), roundings, sequence + width);
                return Tolerance { element: of(36).element, ..of(6) };
            }
            // Scores are rounded twice, and the exponential of a score near 3 triples the error: 2 * 3² in quadrature.
            // The softmax adds four roundings, the matmul with V two.
            (_, AttentionStage::Scores) => (2, width),
            (_, AttentionStage::Softmax) => (22, width + sequence),
            (_, AttentionStage::Output) => (24, width + sequence),
        };
        Tolerance::new(spec.dtype(), roundings, depth)
    }
}
