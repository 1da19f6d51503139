//! Double-precision reference and tolerance of attention.

use super::{Attention, Form, Size, Stage};
use crate::gate::Tolerance;
use crate::reference::dot;
use crate::{Exact, Matrix, Sample, Spec};

impl Exact for Attention {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        let Size { sequence, width, .. } = Size::of(self.form, spec);
        match (self.form, self.stage) {
            (Form::HeadsInF32, _) => 2 * sequence,
            (_, Stage::Scores) => width,
            // A softmax needs its whole row, even if few of its columns are sampled.
            (_, Stage::Softmax) => Sample::depth_of_rows(sequence, sequence * width),
            (_, Stage::Mixed) => Sample::depth_of_rows(width, 2 * sequence * width),
        }
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let size = Size::of(self.form, spec);
        let (sequence, scale) = (size.sequence as usize, 1.0 / (size.width as f64).sqrt());
        sample.by_rows(|row| {
            // First row of the sequence and head that the query belongs to.
            let first = row - row % sequence;
            let query = inputs[0].exact_row(row);
            let score = |key: usize| dot(&query, inputs[1].row(first + key)) * scale;
            if self.stage == Stage::Scores {
                return sample.cols.iter().map(|&key| score(key)).collect();
            }
            let visible = if self.causal { row - first + 1 } else { sequence };
            let scores: Vec<f64> = (0..visible).map(score).collect();
            let max_score = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let exponentials: Vec<f64> = scores.iter().map(|score| (score - max_score).exp()).collect();
            let total: f64 = exponentials.iter().sum();
            if self.stage == Stage::Softmax {
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
        let Size { sequence, width, .. } = Size::of(self.form, spec);
        let (roundings, depth) = match (self.form, self.stage) {
            // Scores, softmax weights and the output are rounded, and the rounding error of a score grows with the
            // score. In the norm this amounts to six roundings.
            //
            // A single row may depend on one score of up to 4.5 standard deviations. Its rounding changes a weight of
            // one half by 1.1 roundings. Relative to the norm of a row over 128 positions, 0.15, and with a value of 3
            // in V, one element errs by up to 23 roundings. 4 * √36 = 24 bounds that.
            (Form::HeadsInF32, _) => {
                let of = |roundings| Tolerance::new(spec.dtype(), roundings, sequence + width);
                return Tolerance { element: of(36).element, ..of(6) };
            }
            // Scores are rounded twice, and the exponential of a score near 3 triples the error: 2 * 3² in quadrature.
            // The softmax adds four roundings, the matmul with V two.
            (_, Stage::Scores) => (2, width),
            (_, Stage::Softmax) => (22, width + sequence),
            (_, Stage::Mixed) => (24, width + sequence),
        };
        Tolerance::new(spec.dtype(), roundings, depth)
    }
}
