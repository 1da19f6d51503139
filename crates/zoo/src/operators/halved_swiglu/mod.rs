//! `swiglu_fwd` and `swiglu_bwd`: SwiGLU of the two halves of each row, computed in f32.
//!
//! x is `[m, n]` with halves a and b along the columns. Forward: y = silu(a) * b, `[m, n / 2]`. Backward, for the
//! gradient g of y: da = g * b * silu'(a) and db = g * silu(a), next to each other in `[m, n]`.

mod burn;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::operators::dtypes::{FLOATS, check_dtypes};
use crate::registry::table::Zoo;
use crate::{Cost, Operand, Operation, OutputSlot, Signature, Spec, Suite, ZooError};

/// SwiGLU operator. `n` is the width of x, both halves together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum HalvedSwiglu {
    /// `swiglu_fwd`: forward pass.
    Forward,
    /// `swiglu_bwd`: gradient of x, given x and the output gradient.
    Backward,
}

impl HalvedSwiglu {
    /// Both operators.
    pub const ALL: [Self; 2] = [Self::Forward, Self::Backward];
}

/// Registers the SwiGLU operators with their implementations.
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

    fn description(&self) -> &'static str {
        "SwiGLU of the two halves of each row, or its gradient"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "n"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        check_dtypes(self.name(), spec, FLOATS, &[])?;
        match spec.axis("n") {
            n if n.is_multiple_of(2) => Ok(()),
            n => Err(ZooError::Shape(format!("{}: n is {n}; expected an even number", self.name()))),
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

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        vec![match self {
            Self::Forward => OutputSlot::new(m, n / 2, spec.element),
            Self::Backward => OutputSlot::new(m, n, spec.element),
        }]
    }
}

impl Cost for HalvedSwiglu {
    // A sigmoid is four operations. Forward adds two multiplications; backward adds silu(a), its derivative and three
    // multiplications.
    fn flops(&self, spec: &Spec) -> u64 {
        let per_element = match self {
            Self::Forward => 6,
            Self::Backward => 11,
        };
        per_element * spec.axis("m") * spec.axis("n") / 2
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
