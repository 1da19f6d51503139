//! `dot`, `axpy`, `gemv` and `matmul`: BLAS routines of levels 1, 2 and 3 on row-major operands.
//!
//! Vectors are `[1, n]` or `[1, k]`. These operators calibrate the device: `dot`, `axpy` and `gemv` are bound by
//! memory, `matmul` by FLOP/s.

mod burn;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::host::rowwise::HostRowwise;
use crate::operators::matmul::{set_rotation, size, weight};
use crate::operators::traffic::element_bytes;
use crate::registry::table::Zoo;
use crate::{Cost, Fill, Operand, Operation, OutputSlot, RotationAxis, SetRotation, Signature, Spec, Suite};
use calorimeter_kernels::host::RowwiseOperator;
use calorimeter_recipes::{Dtype, Element};

/// BLAS routine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Blas {
    /// Σ x y, in f32 for every input dtype.
    Dot,
    /// alpha x + y, written to a new vector.
    Axpy,
    /// A x with A of shape `[m, k]`.
    Gemv,
    /// A B with A of shape `[m, k]` and B of shape `[k, n]`.
    Matmul,
}

/// Factor of `axpy`; exact in every float dtype.
const ALPHA: f32 = 2.5;

/// Registers the BLAS routines with their implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([Blas::Dot]).burn().native().host(HostRowwise(RowwiseOperator::Dot));
    zoo.operators([Blas::Axpy]).burn().native().host(HostRowwise(RowwiseOperator::Axpy { factor: ALPHA }));
    zoo.operators([Blas::Gemv, Blas::Matmul]).burn().native();
}

impl Signature for Blas {
    fn name(&self) -> &'static str {
        match self {
            Self::Dot => "dot",
            Self::Axpy => "axpy",
            Self::Gemv => "gemv",
            Self::Matmul => "matmul",
        }
    }

    fn description(&self) -> &'static str {
        "BLAS routine on row-major operands"
    }

    fn axes(&self) -> &'static [&'static str] {
        match self {
            Self::Dot | Self::Axpy => &["n"],
            Self::Gemv => &["m", "k"],
            Self::Matmul => &["m", "k", "n"],
        }
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, k, n) = size(spec);
        let vector = |length| Operand::normal(1, length, spec.element);
        match self {
            // Positive values do not cancel, so that the relative error of the single result is well defined.
            Self::Dot => vec![vector(n).with_fill(Fill::Uniform(0.0, 1.0)); 2],
            Self::Axpy => vec![vector(n); 2],
            Self::Gemv => vec![weight(m, k, k, spec), vector(k)],
            Self::Matmul => vec![Operand::normal(m, k, spec.element), weight(k, n, k, spec)],
        }
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        let (m, _, n) = size(spec);
        vec![match self {
            // The sum of a long vector exceeds the range of f16.
            Self::Dot => OutputSlot::new(1, 1, Element::Float(Dtype::F32)),
            Self::Axpy => OutputSlot::new(1, n, spec.element),
            Self::Gemv => OutputSlot::new(1, m, spec.element),
            Self::Matmul => OutputSlot::new(m, n, spec.element),
        }]
    }
}

impl Cost for Blas {
    // One multiply-add per term.
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        2 * match self {
            Self::Dot | Self::Axpy => n,
            Self::Gemv => m * k,
            Self::Matmul => m * k * n,
        }
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let (n, bytes) = (spec.axis("n"), element_bytes(spec));
        match self {
            // Half-precision inputs are converted to f32 first.
            Self::Dot if bytes < 4 => 3 * 4 * n,
            Self::Dot | Self::Axpy => n * bytes,
            Self::Gemv | Self::Matmul => 0,
        }
    }

    fn matmuls(&self) -> u32 {
        1
    }
}

impl Operation for Blas {
    fn suite(&self) -> Suite {
        Suite::Calibration
    }

    fn set_rotation(&self, spec: &Spec) -> SetRotation {
        match self {
            Self::Dot | Self::Axpy => SetRotation::from_sizes(&self.inputs(spec), &self.outputs(spec)),
            Self::Gemv => SetRotation::new(spec.axis("m"), &[RotationAxis::Rows], &[RotationAxis::Columns]),
            Self::Matmul => set_rotation(spec, &[RotationAxis::Rows], &[RotationAxis::Fixed, RotationAxis::Columns]),
        }
    }
}
