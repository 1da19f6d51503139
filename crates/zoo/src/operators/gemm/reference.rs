//! What it computes, in double precision, and how far a kernel may be from that.

use super::Gemm;
use crate::gate::Tolerance;
use crate::operators::minifloat;
use crate::operators::product::{column, products};
use crate::{Exact, Matrix, Sample, Spec};
use calorimeter_recipes::{Dtype, Element};

impl Exact for Gemm {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        spec.axis("k")
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let mut values = products(sample, |row| inputs[0].row(row).to_vec(), |col| column(&inputs[1], col));
        for (i, value) in values.iter_mut().enumerate() {
            let (row, col) = sample.position(i);
            if self.scaled() {
                *value *= f64::from(inputs[2].row(row)[0]) * f64::from(inputs[3].row(0)[col]);
            }
            if *self == Self::Accumulated {
                *value += f64::from(inputs[4].row(row)[col]);
            }
            if self.output(spec) == Element::E4m3 {
                *value = value.clamp(-f64::from(minifloat::LARGEST), f64::from(minifloat::LARGEST));
            }
        }
        values
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        let depth = spec.axis("k");
        match self.output(spec) {
            // Hopper's tensor cores keep 14 bits of a sum of e4m3 products, and 128 of them go into one: that errs by about
            // as much as a rounding to f16.
            Element::Float(Dtype::F32) if spec.element == Element::E4m3 => Tolerance::new(Dtype::F16, 1, depth),
            Element::Float(output) => Tolerance::new(output, 1, depth),
            // e4m3 rounds sixteen times as coarsely as bf16.
            _ => {
                let Tolerance { rel_l2, element } = Tolerance::new(Dtype::Bf16, 1, depth);
                Tolerance { rel_l2: 16.0 * rel_l2, element: 16.0 * element }
            }
        }
    }
}
