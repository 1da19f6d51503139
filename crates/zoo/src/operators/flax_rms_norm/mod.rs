//! Root-mean-square normalisation of rows with an f32 weight, computed in f32; and its gradients.

use super::inference::published_width;
use super::number_types::{BF16, F32, FLOATS, allow};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite, burn_alone, burn_or_cube};
use crate::{Counts, Device, Fill, Implementation, Matrix, Operand, Pass, Sample, Slot, Value, ZooError};
use burn::tensor::{DType, Tensor, backend::Backend};
use calorimeter_recipes::Dtype;
use calorimeter_recipes::FloatType;
use rayon::prelude::*;

/// One direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RmsNormPass {
    /// `rmsnorm_fwd`
    Forward,
    /// `rmsnorm_bwd`: the gradients of x and of the weight, given x, the weight and the gradient of the output.
    Backward,
    /// `inference_rmsnorm`: the forward pass, under the name that it has in inference.
    Inference,
}

/// flax's.
const EPSILON: f64 = 1e-6;

/// One over the root mean square of a row.
fn inverse_rms(row: &[f32]) -> f64 {
    let mean = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / row.len() as f64;
    1.0 / (mean + EPSILON).sqrt()
}

/// The same on a device.
fn inverse_rms_of_rows<B: Backend>(x: &Tensor<B, 2>) -> Tensor<B, 2> {
    let mean = x.clone().powi_scalar(2).mean_dim(1);
    (mean + EPSILON).sqrt().recip()
}

impl Operation for RmsNormPass {
    const ABOUT: &'static str = "root-mean-square normalisation of rows, or its gradients alone";
    const SUITE: Suite = Suite::Gemm;

    fn all() -> Vec<Self> {
        vec![Self::Forward, Self::Backward, Self::Inference]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Forward => "rmsnorm_fwd",
            Self::Backward => "rmsnorm_bwd",
            Self::Inference => "inference_rmsnorm",
        }
    }

    fn products(&self) -> u32 {
        0
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "n"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        allow(self.name(), spec, FLOATS, &[])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        let x = Operand::normal(m, n, spec.element);
        let weight = Operand::normal(1, n, F32).filled(Fill::Uniform(0.5, 1.5));
        match self {
            Self::Forward | Self::Inference => vec![x, weight],
            Self::Backward => vec![x, weight, x],
        }
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        let y = Slot::new(m, n, spec.element);
        match self {
            Self::Forward | Self::Inference => vec![y],
            Self::Backward => vec![y, Slot::new(1, n, F32)],
        }
    }

    // Square and sum, then for each row four operations; two products. Backward: three for the dot product with the
    // gradient, four of each row, three for x's gradient and three for the weight's.
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        match self {
            Self::Forward | Self::Inference => 4 * m * n + 4 * m,
            Self::Backward => 11 * m * n + 8 * m,
        }
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let tensors = match self {
            Self::Forward | Self::Inference => 4,
            Self::Backward => 9,
        };
        tensors * 4 * spec.axis("m") * spec.axis("n")
    }

    fn published(&self, spec: &Spec) -> Option<Counts> {
        let numbers = spec.axis("m") * spec.axis("n");
        let bytes = match self {
            Self::Inference => 3 * numbers * published_width(spec),
            _ if spec.element != BF16 => return None,
            // Forward the input counts twice.
            Self::Forward | Self::Backward => 6 * numbers,
        };
        Some(Counts { flops: None, bytes: Some(bytes) })
    }

    fn depth(&self, spec: &Spec, output: usize) -> u64 {
        if output == 1 { spec.axis("m") } else { 8 }
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], output: usize, sample: &Sample) -> Vec<f64> {
        let (x, weight) = (&inputs[0], inputs[1].row(0));
        if output == 1 {
            let scales: Vec<f64> = (0..x.rows).into_par_iter().map(|row| inverse_rms(x.row(row))).collect();
            let term = |row: usize, col: usize| f64::from(x.row(row)[col]) * f64::from(inputs[2].row(row)[col]);
            let of_col = |col: usize| (0..x.rows).map(|row| scales[row] * term(row, col)).sum();
            return sample.cols.par_iter().map(|&col| of_col(col)).collect();
        }
        sample.by_rows(|row| {
            let scale = inverse_rms(x.row(row));
            let at = |col: usize| (f64::from(x.row(row)[col]), f64::from(weight[col]));
            let Some(dy) = inputs.get(2).map(|dy| dy.row(row)) else {
                return sample.cols.iter().map(|&col| at(col).0 * scale * at(col).1).collect();
            };
            let terms = dy.iter().enumerate().map(|(col, &dy)| at(col).0 * at(col).1 * f64::from(dy));
            let shift = scale.powi(3) * terms.sum::<f64>() / dy.len() as f64;
            sample.cols.iter().map(|&col| scale * at(col).1 * f64::from(dy[col]) - shift * at(col).0).collect()
        })
    }

    fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        match output {
            0 => Tolerance::new(spec.dtype(), 1, n),
            _ => Tolerance::new(Dtype::F32, 4, m.max(n)),
        }
    }

    fn supported(&self, spec: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        match (self, implementation) {
            (Self::Backward, _) => burn_alone(self.name(), implementation, device),
            (_, Implementation::Cube) if spec.element != F32 && device != Device::Mock => {
                let why = "CubeCL's kernel takes a weight of the input's type, and here the weight is f32";
                Err(format!("{} of {}: {why}; `eager` and `fused` run it", self.name(), spec.element))
            }
            _ => burn_or_cube(self.name(), implementation, device),
        }
    }

    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let inputs: Vec<_> = inputs.into_iter().map(Value::float).collect();
        Box::new(move || {
            let x = inputs[0].clone().cast(DType::F32);
            let scale = inverse_rms_of_rows(&x);
            let weight = inputs[1].clone();
            let Some(dy) = inputs.get(2) else {
                return vec![Value::Float((x * scale * weight).cast(dtype))];
            };
            let dy = dy.clone().cast(DType::F32);
            let weighted = dy.clone() * weight;
            let shift = (weighted.clone() * x.clone()).mean_dim(1) * scale.clone().powi_scalar(3);
            let dx = weighted * scale.clone() - x.clone() * shift;
            let dweight = (x * scale * dy).sum_dim(0);
            vec![Value::Float(dx.cast(dtype)), Value::Float(dweight)]
        })
    }

    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn cube<R: burn_cubecl::CubeRuntime>(
        &self,
        _: &Spec,
        inputs: Vec<Value<crate::CubeOf<R>>>,
    ) -> Result<Pass<crate::CubeOf<R>>, ZooError> {
        use calorimeter_kernels::cube;
        match self {
            Self::Forward | Self::Inference => super::cubed::pass(inputs, |client, size, [x, weight], [out]| {
                cube::rms_norm(client, size, x, weight, EPSILON as f32, out)
            }),
            Self::Backward => Err(crate::operator::no_cube(self.name())),
        }
    }
}
