//! Layer normalisation with gain and bias over rows.

use super::rows::{AXES, copies, count, floats, input, whole};
use crate::gate::Tolerance;
use crate::normalise;
use crate::operator::{Operation, Spec, Suite, burn_or_cube};
use crate::{Device, Fill, Implementation, Matrix, Operand, Pass, Sample, Slot, Value};
use burn::tensor::{DType, Tensor, backend::Backend};
use calorimeter_recipes::FloatType;

/// `layer_norm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayerNorm;

/// Gain and bias, one number for each column.
pub(super) fn gain_and_bias(spec: &Spec) -> [Operand; 2] {
    let row = Operand::normal(1, spec.axis("dimension"), spec.element);
    [row.filled(Fill::Uniform(0.5, 1.5)), row]
}

/// Normalises rows of f32.
pub(super) fn apply<B: Backend>(x: Tensor<B, 2>, gain: &Tensor<B, 2>, bias: &Tensor<B, 2>) -> Tensor<B, 2> {
    normalise::layer_norm(x) * gain.clone().cast(DType::F32) + bias.clone().cast(DType::F32)
}

/// Normalises a row in double precision.
pub(super) fn exact(x: &[f64], gain: &Matrix, bias: &Matrix) -> Vec<f64> {
    let affine = gain.row(0).iter().zip(bias.row(0)).map(|(&gain, &bias)| (f64::from(gain), f64::from(bias)));
    normalise::layer_norm_exact(x).into_iter().zip(affine).map(|(x, (gain, bias))| x * gain + bias).collect()
}

pub(super) fn tolerance(spec: &Spec) -> Tolerance {
    // The numbers of a short row may lie close together, which magnifies the rounding of their mean.
    let depth = match spec.axis("dimension") {
        ..8 => 8192,
        dimension => dimension.max(64),
    };
    Tolerance::new(spec.dtype(), 1, depth)
}

impl Operation for LayerNorm {
    const ABOUT: &'static str = "layer normalisation of rows, with gain and bias";
    const SUITE: Suite = Suite::Ops;

    fn all() -> Vec<Self> {
        vec![Self]
    }

    fn name(&self) -> &'static str {
        "layer_norm"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let [gain, bias] = gain_and_bias(spec);
        vec![input(spec).filled(Fill::Offset), gain, bias]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![whole(spec)]
    }

    // Sum; difference; square and sum; scale, gain and bias: seven for each number.
    fn flops(&self, spec: &Spec) -> u64 {
        7 * count(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        copies(spec, 3)
    }

    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        sample.by_whole_rows(|row| exact(&inputs[0].exact_row(row), &inputs[1], &inputs[2]))
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        tolerance(spec)
    }

    fn supported(&self, _: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        burn_or_cube(self.name(), implementation, device)
    }

    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [x, gain, bias] = floats(inputs);
        Box::new(move || vec![Value::Float(apply(x.clone().cast(DType::F32), &gain, &bias).cast(dtype))])
    }

    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn cube<R: burn_cubecl::CubeRuntime>(
        &self,
        _: &Spec,
        inputs: Vec<Value<crate::CubeOf<R>>>,
    ) -> Result<Pass<crate::CubeOf<R>>, crate::ZooError> {
        use calorimeter_kernels::cube;
        super::cubed::pass(inputs, |client, size, [x, gain, bias], [out]| {
            let epsilon = normalise::EPSILON as f32;
            let norm = cube::LayerNorm { x, residual: None, gain, bias, epsilon, activation: None, out };
            cube::layer_norm(client, size, norm)
        })
    }
}
