//! The four STREAM kernels: memory traffic with almost no arithmetic.
//!
//! Vectors are `[1, elements]`. `stream_copy` and `stream_scale` move 2 elements of traffic per output element,
//! `stream_add` and `stream_triad` move 3.

mod burn;
mod host;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::registry::table::Zoo;
use crate::{Cost, Operand, Operation, OutputSlot, Signature, Spec, Suite};

/// STREAM kernel, in the notation of the benchmark.
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
    /// All STREAM kernels.
    pub const ALL: [Self; 4] = [Self::Copy, Self::Scale, Self::Add, Self::Triad];
}

/// Registers the STREAM kernels with their implementations.
pub(super) fn register(zoo: &Zoo) {
    for stream in Stream::ALL {
        zoo.operators([stream]).burn().native().host(stream.host_opener());
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

    fn description(&self) -> &'static str {
        "STREAM kernel over a vector"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["elements"]
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let vector = Operand::normal(1, spec.axis("elements"), spec.element);
        match self {
            Self::Copy | Self::Scale => vec![vector],
            Self::Add | Self::Triad => vec![vector, vector],
        }
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        vec![OutputSlot::new(1, spec.axis("elements"), spec.element)]
    }
}

impl Cost for Stream {
    fn flops(&self, spec: &Spec) -> u64 {
        let per_element = match self {
            Self::Copy => 0,
            Self::Scale | Self::Add => 1,
            Self::Triad => 2,
        };
        per_element * spec.axis("elements")
    }
}

impl Operation for Stream {
    fn suite(&self) -> Suite {
        Suite::Calibration
    }

    // The GEMM suite also lists memory bandwidth.
    fn is_listed_in(&self, suite: Suite) -> bool {
        [Suite::Calibration, Suite::Gemm].contains(&suite)
    }
}
