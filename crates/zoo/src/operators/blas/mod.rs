//! One routine of each level of BLAS, and the second vector one.

mod burn;
#[cfg(feature = "cuda")]
mod native;
mod reference;

use crate::host::rows::ByRows;
use crate::operators::product::{moves, size, weight};
use crate::operators::traffic::number_bytes;
use crate::registry::table::Zoo;
use crate::{Along, Cost, Fill, Moves, Operand, Operation, Signature, Slot, Spec, Suite};
use calorimeter_kernels::host::Rowwise;
use calorimeter_recipes::{Dtype, Element};

/// One of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Blas {
    /// The sum of `x y`, in f32 whatever the inputs are.
    Dot,
    /// `alpha x + y`, in new memory.
    Axpy,
    /// `A x` of a matrix `[m, k]`.
    Gemv,
    /// `A B` of matrices `[m, k]` and `[k, n]`.
    Matmul,
}

/// Exact in every float type.
const ALPHA: f32 = 2.5;

/// Registers them with the ways to run them.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([Blas::Dot]).burn().native().host(ByRows(Rowwise::Dot));
    zoo.operators([Blas::Axpy]).burn().native().host(ByRows(Rowwise::Axpy { factor: ALPHA }));
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

    fn about(&self) -> &'static str {
        "a routine of BLAS on row-major operands"
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
            // Nothing cancels, so that the one number there is has a size to be judged by.
            Self::Dot => vec![vector(n).filled(Fill::Uniform(0.0, 1.0)); 2],
            Self::Axpy => vec![vector(n); 2],
            Self::Gemv => vec![weight(m, k, k, spec), vector(k)],
            Self::Matmul => vec![Operand::normal(m, k, spec.element), weight(k, n, k, spec)],
        }
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (m, _, n) = size(spec);
        vec![match self {
            // The sum of a long vector is beyond the range of f16.
            Self::Dot => Slot::new(1, 1, Element::Float(Dtype::F32)),
            Self::Axpy => Slot::new(1, n, spec.element),
            Self::Gemv => Slot::new(1, m, spec.element),
            Self::Matmul => Slot::new(m, n, spec.element),
        }]
    }
}

impl Cost for Blas {
    // A product and a sum each.
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        2 * match self {
            Self::Dot | Self::Axpy => n,
            Self::Gemv => m * k,
            Self::Matmul => m * k * n,
        }
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let (n, bytes) = (spec.axis("n"), number_bytes(spec));
        match self {
            // Half precision is widened first.
            Self::Dot if bytes < 4 => 3 * 4 * n,
            Self::Dot | Self::Axpy => n * bytes,
            Self::Gemv | Self::Matmul => 0,
        }
    }

    fn products(&self) -> u32 {
        1
    }
}

impl Operation for Blas {
    fn suite(&self) -> Suite {
        Suite::Calibration
    }

    fn moves(&self, spec: &Spec) -> Moves {
        match self {
            Self::Dot | Self::Axpy => Moves::by_size(&self.inputs(spec), &self.outputs(spec)),
            Self::Gemv => Moves::new(spec.axis("m"), &[Along::Rows], &[Along::Columns]),
            Self::Matmul => moves(spec, &[Along::Rows], &[Along::Nothing, Along::Columns]),
        }
    }
}
