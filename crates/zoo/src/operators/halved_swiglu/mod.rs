//! SwiGLU: the columns are halved into a and b, and silu(a) b is computed in f32; and its gradient.

mod burn;
#[cfg(feature = "cuda")]
mod native;
mod reference;

use crate::operators::number_types::{FLOATS, allow};
use crate::registry::table::Zoo;
use crate::{Cost, Operand, Operation, Signature, Slot, Spec, Suite, ZooError};

/// One direction. `n` is the width of the input, a and b together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum HalvedSwiglu {
    /// `swiglu_fwd`
    Forward,
    /// `swiglu_bwd`: the gradient of x, given x and that of the output.
    Backward,
}

impl HalvedSwiglu {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Forward, Self::Backward];
}

/// Registers them with the ways to run them.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators(HalvedSwiglu::ALL).burn().native();
}

impl Signature for HalvedSwiglu {
    fn name(&self) -> &'static str {
        match self {
            Self::Forward => "swiglu_fwd",
            Self::Backward => "swiglu_bwd",
        }
    }

    fn about(&self) -> &'static str {
        "SwiGLU of two halves, or its gradient alone"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "n"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        allow(self.name(), spec, FLOATS, &[])?;
        match spec.axis("n") {
            n if n.is_multiple_of(2) => Ok(()),
            n => Err(ZooError::Shape(format!("{}: n is {n}; it has to be even, to be halved", self.name()))),
        }
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        let x = Operand::normal(m, n, spec.element);
        match self {
            Self::Forward => vec![x],
            Self::Backward => vec![x, Operand::normal(m, n / 2, spec.element)],
        }
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        vec![match self {
            Self::Forward => Slot::new(m, n / 2, spec.element),
            Self::Backward => Slot::new(m, n, spec.element),
        }]
    }
}

impl Cost for HalvedSwiglu {
    // A sigmoid is four operations. Forward two products more; backward silu(a) and its slope, and three products.
    fn flops(&self, spec: &Spec) -> u64 {
        let each = match self {
            Self::Forward => 6,
            Self::Backward => 11,
        };
        each * spec.axis("m") * spec.axis("n") / 2
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let halves = match self {
            Self::Forward => 4,
            Self::Backward => 8,
        };
        halves * 4 * spec.axis("m") * spec.axis("n") / 2
    }
}

impl Operation for HalvedSwiglu {
    fn suite(&self) -> Suite {
        Suite::Gemm
    }
}
