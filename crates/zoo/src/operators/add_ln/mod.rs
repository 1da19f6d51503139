//! The residual sum of a transformer block with the layer normalisation that follows it.
//!
//! The normalised output is that of the sum before it is rounded for storing.

use super::layer_norm::{self, LayerNorm};
use super::rows::{AXES, count, floats, input, stored, whole};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite, burn_or_cube};
use crate::{Device, Fill, FusionModel, Implementation, Matrix, Operand, Pass, Sample, Slot, Value};
use burn::tensor::{DType, backend::Backend};
use calorimeter_recipes::FloatType;

/// `add_ln`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AddLn;

/// Which output is the sum; the other is normalised.
const SUM: usize = 0;

fn sum(inputs: &[Matrix], row: usize) -> Vec<f64> {
    inputs[0].row(row).iter().zip(inputs[1].row(row)).map(|(&x, &y)| f64::from(x) + f64::from(y)).collect()
}

impl Operation for AddLn {
    const ABOUT: &'static str = "the sum with a residual, and its layer normalisation with gain and bias";
    const SUITE: Suite = Suite::Ops;

    fn all() -> Vec<Self> {
        vec![Self]
    }

    fn name(&self) -> &'static str {
        "add_ln"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let [gain, bias] = layer_norm::gain_and_bias(spec);
        vec![input(spec).filled(Fill::Offset), input(spec), gain, bias]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![whole(spec); 2]
    }

    // A sum for each number, then a layer normalisation.
    fn flops(&self, spec: &Spec) -> u64 {
        count(spec) + LayerNorm.flops(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        LayerNorm.intermediate(spec)
    }

    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        Some(FusionModel {
            operators: vec!["add".into(), "layer_norm".into()],
            unfused_bytes: 3 * stored(spec) + LayerNorm.bytes(spec),
            fused_bytes: self.bytes(spec),
        })
    }

    fn depth(&self, _: &Spec, output: usize) -> u64 {
        if output == SUM { 2 } else { 5 }
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], output: usize, sample: &Sample) -> Vec<f64> {
        sample.by_whole_rows(|row| {
            let sum = sum(inputs, row);
            if output == SUM { sum } else { layer_norm::exact(&sum, &inputs[2], &inputs[3]) }
        })
    }

    fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance {
        if output == SUM { Tolerance::new(spec.dtype(), 1, 2) } else { layer_norm::tolerance(spec) }
    }

    fn supported(&self, _: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        burn_or_cube(self.name(), implementation, device)
    }

    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [x, residual, gain, bias] = floats(inputs);
        Box::new(move || {
            let sum = x.clone().cast(DType::F32) + residual.clone().cast(DType::F32);
            let normal = layer_norm::apply(sum.clone(), &gain, &bias);
            vec![Value::Float(sum.cast(dtype)), Value::Float(normal.cast(dtype))]
        })
    }

    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn cube<R: burn_cubecl::CubeRuntime>(
        &self,
        _: &Spec,
        inputs: Vec<Value<crate::CubeOf<R>>>,
    ) -> Result<Pass<crate::CubeOf<R>>, crate::ZooError> {
        use calorimeter_kernels::cube;
        super::cubed::pass(inputs, |client, size, [x, addend, gain, bias], [sum, out]| {
            let (epsilon, residual) = (crate::normalise::EPSILON as f32, Some(cube::Residual { addend, sum }));
            let norm = cube::LayerNorm { x, residual, gain, bias, epsilon, activation: None, out };
            cube::layer_norm(client, size, norm)
        })
    }
}
