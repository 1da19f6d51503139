//! `rmsnorm_fwd`, `inference_rmsnorm` and `rmsnorm_bwd`: RMS normalization as in Flax, with an f32 weight and computed
//! in f32.
//!
//! Forward: y = x * r * weight with r = 1 / √(mean(x²) + 1e-6) per row; x and y are `[m, n]`, the weight is `[1, n]`.
//! Backward, for the gradient g of y: dx = r * g * weight - x * r³ * mean(x * g * weight), and dweight = Σ over rows of
//! x * r * g, in f32.

mod burn;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cube;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::host::rowwise::HostRowwise;
use crate::operators::dtypes::{F32, FLOATS, check_dtypes};
use crate::registry::table::Zoo;
use crate::{Cost, Fill, Operand, Operation, OutputSlot, Signature, Spec, Suite, ZooError};
use calorimeter_kernels::host::RowwiseOperator;

/// RMS normalization operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FlaxRmsNorm {
    /// `rmsnorm_fwd`: forward pass.
    Forward,
    /// `rmsnorm_bwd`: gradients of x and of the weight, given x, the weight and the output gradient.
    Backward,
    /// `inference_rmsnorm`: forward pass, listed under its inference name.
    Inference,
}

/// Epsilon of Flax.
const EPSILON: f64 = 1e-6;

/// Registers the RMS normalizations with their implementations.
pub(super) fn register(zoo: &Zoo) {
    let host = HostRowwise(RowwiseOperator::RmsNorm { epsilon: EPSILON as f32 });
    zoo.operators([FlaxRmsNorm::Forward]).burn().cube().native().host(host);
    zoo.operators([FlaxRmsNorm::Backward]).burn().native();
    zoo.operators([FlaxRmsNorm::Inference]).burn().cube().native().host(host);
}

impl Signature for FlaxRmsNorm {
    fn name(&self) -> &'static str {
        match self {
            Self::Forward => "rmsnorm_fwd",
            Self::Backward => "rmsnorm_bwd",
            Self::Inference => "inference_rmsnorm",
        }
    }

    fn description(&self) -> &'static str {
        "RMS normalization of rows with an f32 weight, or its gradients"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "n"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        check_dtypes(self.name(), spec, FLOATS, &[])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        let x = Operand::normal(m, n, spec.element);
        let weight = Operand::normal(1, n, F32).with_fill(Fill::Uniform(0.5, 1.5));
        match self {
            Self::Forward | Self::Inference => vec![x, weight],
            Self::Backward => vec![x, weight, x],
        }
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        let y = OutputSlot::new(m, n, spec.element);
        match self {
            Self::Forward | Self::Inference => vec![y],
            Self::Backward => vec![y, OutputSlot::new(1, n, F32)],
        }
    }
}

impl Cost for FlaxRmsNorm {
    // Forward: square and sum, four operations per row, two multiplications. Backward: three for the dot product with
    // the output gradient, four per row, three for dx and three for dweight.
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
}

impl Operation for FlaxRmsNorm {
    fn suite(&self) -> Suite {
        Suite::Gemm
    }
}
