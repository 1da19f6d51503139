//! Element by element: what stands between the products of a model in training (`add`) and in inference (the others).

mod burn;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cube;
#[cfg(feature = "cuda")]
mod native;
pub(super) mod reference;

use crate::host::rows::ByRows;
use crate::operators::number_types::{FLOATS, allow};
use crate::registry::table::Zoo;
use crate::{Cost, Operand, Operation, Signature, Slot, Spec, Suite, ZooError};
use calorimeter_kernels::host::Rowwise;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Elementwise {
    /// `add`
    TrainingAdd,
    /// `inference_add`
    Add,
    /// `inference_silu_mul`: silu(x) y.
    SiluMul,
    /// `inference_sigmoid`
    Sigmoid,
}

impl Elementwise {
    /// Those that add.
    pub const SUMS: [Self; 2] = [Self::TrainingAdd, Self::Add];

    fn operands(self) -> u64 {
        if self == Self::Sigmoid { 1 } else { 2 }
    }
}

/// Registers them with the ways to run them.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators(Elementwise::SUMS).burn().cube().native().host(ByRows(Rowwise::Add));
    zoo.operators([Elementwise::SiluMul]).burn().cube().native().host(ByRows(Rowwise::SiluMul));
    zoo.operators([Elementwise::Sigmoid]).burn().native().host(ByRows(Rowwise::Sigmoid));
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

    fn about(&self) -> &'static str {
        "one operation on every number of one matrix or two"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "n"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        allow(self.name(), spec, FLOATS, &[])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let one = Operand::normal(spec.axis("m"), spec.axis("n"), spec.element);
        (0..self.operands()).map(|_| one).collect()
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![Slot::new(spec.axis("m"), spec.axis("n"), spec.element)]
    }
}

impl Cost for Elementwise {
    // A sigmoid is a sign, an exponential, a sum and a quotient.
    fn flops(&self, spec: &Spec) -> u64 {
        let each = match self {
            Self::TrainingAdd | Self::Add => 1,
            Self::SiluMul => 6,
            Self::Sigmoid => 4,
        };
        each * spec.axis("m") * spec.axis("n")
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let numbers = spec.axis("m") * spec.axis("n");
        match self {
            Self::TrainingAdd | Self::Add => 0,
            // The sigmoid is computed in f32.
            Self::Sigmoid => 4 * numbers,
            Self::SiluMul => (4 + 2 * spec.dtype().bytes()) * numbers,
        }
    }
}

impl Operation for Elementwise {
    fn suite(&self) -> Suite {
        Suite::Gemm
    }
}
