//! Elementwise operations between the GEMMs of a model: `add` (training), `inference_add`, `inference_silu_mul` and
//! `inference_sigmoid`.
//!
//! All matrices are `[m, n]`. Traffic: each input read once, the output written once.

mod burn;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cube;
#[cfg(feature = "native")]
mod native;
pub(super) mod reference;

use crate::host::rowwise::HostRowwise;
use crate::operators::dtypes::{FLOATS, check_dtypes};
use crate::registry::table::Zoo;
use crate::{Cost, Operand, Operation, OutputSlot, Signature, Spec, Suite, ZooError};
use calorimeter_kernels::host::RowwiseOperator;

/// Elementwise operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Elementwise {
    /// `add`: x + y.
    TrainingAdd,
    /// `inference_add`: x + y.
    Add,
    /// `inference_silu_mul`: silu(x) y.
    SiluMul,
    /// `inference_sigmoid`: 1 / (1 + e^-x).
    Sigmoid,
}

impl Elementwise {
    /// The two additions.
    pub const ADDITIONS: [Self; 2] = [Self::TrainingAdd, Self::Add];

    fn operand_count(self) -> u64 {
        if self == Self::Sigmoid { 1 } else { 2 }
    }
}

/// Registers the elementwise operations with their implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators(Elementwise::ADDITIONS).burn().cube().native().host(HostRowwise(RowwiseOperator::Add));
    zoo.operators([Elementwise::SiluMul]).burn().cube().native().host(HostRowwise(RowwiseOperator::SiluMul));
    zoo.operators([Elementwise::Sigmoid]).burn().native().host(HostRowwise(RowwiseOperator::Sigmoid));
}

impl Signature for Elementwise {
    fn name(&self) -> &'static str {
        match self {
            Self::TrainingAdd => "add",
            Self::Add => "inference_add",
            Self::SiluMul => "inference_silu_mul",
            Self::Sigmoid => "inference_sigmoid",
        }
    }

    fn description(&self) -> &'static str {
        "elementwise operation on one or two matrices"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "n"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        check_dtypes(self.name(), spec, FLOATS, &[])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let matrix = Operand::normal(spec.axis("m"), spec.axis("n"), spec.element);
        (0..self.operand_count()).map(|_| matrix).collect()
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        vec![OutputSlot::new(spec.axis("m"), spec.axis("n"), spec.element)]
    }
}

impl Cost for Elementwise {
    // A sigmoid is a negation, an exponential, an addition and a division.
    fn flops(&self, spec: &Spec) -> u64 {
        let per_element = match self {
            Self::TrainingAdd | Self::Add => 1,
            Self::SiluMul => 6,
            Self::Sigmoid => 4,
        };
        per_element * spec.axis("m") * spec.axis("n")
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let elements = spec.axis("m") * spec.axis("n");
        match self {
            Self::TrainingAdd | Self::Add => 0,
            // The sigmoid is computed in f32.
            Self::Sigmoid => 4 * elements,
            Self::SiluMul => (4 + 2 * spec.dtype().bytes()) * elements,
        }
    }
}

impl Operation for Elementwise {
    fn suite(&self) -> Suite {
        Suite::Gemm
    }
}
