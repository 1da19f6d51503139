//! The gated activation of a transformer's MLP: silu(gate) * up.

use super::rows::{self, AXES, copies, count, floats, input, stored, whole};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite, burn_or_cube};
use crate::{Activation, Device, Fill, FusionModel, Implementation, Matrix, Operand, Pass, Sample, Slot, Value};
use burn::tensor::{DType, backend::Backend};
use calorimeter_recipes::FloatType;

/// `swiglu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Swiglu;

impl Operation for Swiglu {
    const ABOUT: &'static str = "silu of a gate, times another input";
    const SUITE: Suite = Suite::Ops;

    fn all() -> Vec<Self> {
        vec![Self]
    }

    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        vec![input(spec).filled(Fill::Offset), input(spec)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![whole(spec)]
    }

    // Negate, exp, add, divide, multiply: five for each number.
    fn flops(&self, spec: &Spec) -> u64 {
        5 * count(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        copies(spec, 3)
    }

    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        Some(FusionModel {
            operators: vec!["silu".into(), "multiply".into()],
            unfused_bytes: 5 * stored(spec),
            fused_bytes: self.bytes(spec),
        })
    }

    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let at = |input: usize, row: usize, col: usize| f64::from(inputs[input].row(row)[col]);
        sample.by_elements(|row, col| Activation::Silu.exact(at(0, row, col)) * at(1, row, col))
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        rows::element_wise(spec)
    }

    fn supported(&self, _: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        burn_or_cube(self.name(), implementation, device)
    }

    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [gate, up] = floats(inputs);
        Box::new(move || {
            let gate = Activation::Silu.apply(gate.clone().cast(DType::F32));
            vec![Value::Float((gate * up.clone().cast(DType::F32)).cast(dtype))]
        })
    }

    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn cube<R: burn_cubecl::CubeRuntime>(
        &self,
        _: &Spec,
        inputs: Vec<Value<crate::CubeOf<R>>>,
    ) -> Result<Pass<crate::CubeOf<R>>, crate::ZooError> {
        use calorimeter_kernels::cube;
        super::cubed::pass(inputs, |client, size, [gate, up], [out]| cube::swiglu(client, size, gate, up, out))
    }
}
