//! The four kernels of STREAM: traffic with next to no arithmetic.

mod burn;
mod host;
#[cfg(feature = "cuda")]
mod native;
mod reference;

use crate::registry::table::Zoo;
use crate::{Cost, Operand, Operation, Signature, Slot, Spec, Suite};

/// One of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Stream {
    /// `c = a`.
    Copy,
    /// `b = q c`.
    Scale,
    /// `c = a + b`.
    Add,
    /// `a = b + q c`.
    Triad,
}

const FACTOR: f32 = std::f32::consts::PI;

impl Stream {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Copy, Self::Scale, Self::Add, Self::Triad];
}

/// Registers them with the ways to run them.
pub(super) fn register(zoo: &Zoo) {
    for stream in Stream::ALL {
        zoo.operators([stream]).burn().native().host(stream.on_the_host());
    }
}

impl Signature for Stream {
    fn name(&self) -> &'static str {
        match self {
            Self::Copy => "stream_copy",
            Self::Scale => "stream_scale",
            Self::Add => "stream_add",
            Self::Triad => "stream_triad",
        }
    }

    fn about(&self) -> &'static str {
        "a kernel of STREAM over so many elements"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["elements"]
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let one = Operand::normal(1, spec.axis("elements"), spec.element);
        match self {
            Self::Copy | Self::Scale => vec![one],
            Self::Add | Self::Triad => vec![one, one],
        }
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![Slot::new(1, spec.axis("elements"), spec.element)]
    }
}

impl Cost for Stream {
    fn flops(&self, spec: &Spec) -> u64 {
        let each = match self {
            Self::Copy => 0,
            Self::Scale | Self::Add => 1,
            Self::Triad => 2,
        };
        each * spec.axis("elements")
    }
}

impl Operation for Stream {
    fn suite(&self) -> Suite {
        Suite::Calibration
    }

    // The GEMM suite shows what memory gives, too.
    fn is_listed_in(&self, suite: Suite) -> bool {
        [Suite::Calibration, Suite::Gemm].contains(&suite)
    }
}
