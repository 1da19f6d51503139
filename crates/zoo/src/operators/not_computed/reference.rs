//! What it computes, in double precision, and how far a kernel may be from that.

use super::NotComputed;
use crate::gate::Tolerance;
use crate::{Exact, Matrix, Sample, Spec};

impl Exact for NotComputed {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        1
    }

    fn reference(&self, _: &Spec, _: &[Matrix], _: usize, _: &Sample) -> Vec<f64> {
        Vec::new()
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 1, 1)
    }
}
