//! Normalisation of rows by their root mean square, with gain.

use super::rows::{AXES, copies, count, floats, input, whole};
use crate::gate::Tolerance;
use crate::normalise;
use crate::operator::{Operation, Spec, Suite, burn_or_cube};
use crate::{Device, Fill, Implementation, Matrix, Operand, Pass, Sample, Slot, Value};
use burn::tensor::{DType, backend::Backend};
use calorimeter_recipes::FloatType;

/// `rms_norm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RmsNorm;

impl Operation for RmsNorm {
    const ABOUT: &'static str = "normalisation of rows by their root mean square, with gain";
    const SUITE: Suite = Suite::Ops;

    fn all() -> Vec<Self> {
        vec![Self]
    }

    fn name(&self) -> &'static str {
        "rms_norm"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let gain = Operand::normal(1, spec.axis("dimension"), spec.element).filled(Fill::Uniform(0.5, 1.5));
        vec![input(spec).filled(Fill::Offset), gain]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![whole(spec)]
    }

    // Square and sum; scale and gain: four for each number.
    fn flops(&self, spec: &Spec) -> u64 {
        4 * count(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        copies(spec, 2)
    }

    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let gain = inputs[1].exact_row(0);
        sample.by_whole_rows(|row| {
            let normal = normalise::rms_norm_exact(&inputs[0].exact_row(row));
            normal.iter().zip(&gain).map(|(x, gain)| x * gain).collect()
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 1, spec.axis("dimension").max(16))
    }

    fn supported(&self, _: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        burn_or_cube(self.name(), implementation, device)
    }

    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [x, gain] = floats(inputs);
        Box::new(move || {
            let normal = normalise::rms_norm(x.clone().cast(DType::F32));
            vec![Value::Float((normal * gain.clone().cast(DType::F32)).cast(dtype))]
        })
    }

    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn cube<R: burn_cubecl::CubeRuntime>(
        &self,
        _: &Spec,
        inputs: Vec<Value<crate::CubeOf<R>>>,
    ) -> Result<Pass<crate::CubeOf<R>>, crate::ZooError> {
        use calorimeter_kernels::cube;
        super::cubed::pass(inputs, |client, size, [x, gain], [out]| {
            cube::rms_norm(client, size, x, gain, normalise::EPSILON as f32, out)
        })
    }
}
