//! Softmax over rows.

use super::rows::{AXES, copies, count, floats, input, whole};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite, burn_or_cube};
use crate::{Device, Fill, Implementation, Matrix, Operand, Pass, Sample, Slot, Value};
use burn::tensor::{DType, activation, backend::Backend};
use calorimeter_recipes::Dtype;
use calorimeter_recipes::FloatType;

/// `softmax`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Softmax;

/// A row of logits in double precision: the exponentials of their distance to the largest, and the sum of those.
pub(super) fn exponentials(logits: &[f32]) -> (Vec<f64>, f64) {
    let largest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let exponentials: Vec<f64> = logits.iter().map(|&x| (f64::from(x) - largest).exp()).collect();
    let sum = exponentials.iter().sum();
    (exponentials, sum)
}

impl Operation for Softmax {
    const ABOUT: &'static str = "softmax of rows";
    const SUITE: Suite = Suite::Ops;

    fn all() -> Vec<Self> {
        vec![Self]
    }

    fn name(&self) -> &'static str {
        "softmax"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        vec![input(spec).filled(Fill::Far)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![whole(spec)]
    }

    // Maximum, difference, exp, sum, quotient: five for each number.
    fn flops(&self, spec: &Spec) -> u64 {
        5 * count(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        copies(spec, 2)
    }

    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        sample.by_whole_rows(|row| {
            let (exponentials, sum) = exponentials(inputs[0].row(row));
            exponentials.into_iter().map(|x| x / sum).collect()
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        let dimension = spec.axis("dimension");
        let Tolerance { rel_l2, element } = Tolerance::new(spec.dtype(), 1, dimension.max(16));
        // The numbers of a long row are so small that f16 rounds them in fixed steps of 2^-24.
        let step = if spec.dtype() == Dtype::F16 { 2f64.powi(-24) * dimension as f64 } else { 0.0 };
        Tolerance { rel_l2: rel_l2 + 0.3 * step, element: element + 0.5 * step }
    }

    fn supported(&self, _: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        burn_or_cube(self.name(), implementation, device)
    }

    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [x] = floats(inputs);
        Box::new(move || vec![Value::Float(activation::softmax(x.clone().cast(DType::F32), 1).cast(dtype))])
    }

    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn cube<R: burn_cubecl::CubeRuntime>(
        &self,
        _: &Spec,
        inputs: Vec<Value<crate::CubeOf<R>>>,
    ) -> Result<Pass<crate::CubeOf<R>>, crate::ZooError> {
        use calorimeter_kernels::cube;
        super::cubed::pass(inputs, |client, size, [x], [out]| cube::softmax(client, size, x, out))
    }
}
