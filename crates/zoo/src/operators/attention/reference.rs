//! What it computes, in double precision, and how far a kernel may be from that.

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
            // A softmax needs its whole row, whatever is sampled of it.
            (_, Stage::Softmax) => Sample::depth_of_rows(sequence, sequence * width),
            (_, Stage::Mixed) => Sample::depth_of_rows(width, 2 * sequence * width),
        }
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let size = Size::of(self.form, spec);
        let (sequence, scale) = (size.sequence as usize, 1.0 / (size.width as f64).sqrt());
        sample.by_rows(|row| {
            // Keys and values of the row's own sequence.
            let first = row - row % sequence;
            let query = inputs[0].exact_row(row);
            let score = |key: usize| dot(&query, inputs[1].row(first + key)) * scale;
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

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        let Size { sequence, width, .. } = Size::of(self.form, spec);
        let (roundings, depth) = match (self.form, self.stage) {
            // Scores, weights and output are rounded; a score's rounding counts for more, the larger it is. On the whole
            // that is worth six roundings. A single row may hang on one score, which lies up to 4.5 standard deviations
            // from zero and is rounded in proportion: that moves a weight of one half by 1.1 roundings, against 0.15 for
            // the norm of a whole row of 128 positions and a value of 3, so that one number may be off by 23. Four times
            // the root of 36 is 24.
            (Form::HeadsInF32, _) => {
                let of = |roundings| Tolerance::new(spec.dtype(), roundings, sequence + width);
                return Tolerance { element: of(36).element, ..of(6) };
            }
            // Scores are rounded twice, and the exponential of a score near 3 triples its error: nine times two in
            // quadrature. Then four steps of a softmax, and two of the mixture.
            (_, Stage::Scores) => (2, width),
            (_, Stage::Softmax) => (22, width + sequence),
            (_, Stage::Mixed) => (24, width + sequence),
        };
        Tolerance::new(spec.dtype(), roundings, depth)
    }
}
