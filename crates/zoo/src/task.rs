//! What a case computes: a model under a recipe, or an operator.

use crate::gate::{Judged, Mismatch};
use crate::{
    Device, Implementation, Machines, Matrix, OperatorProblem, Output, Problem, Reference, Setup, Tensors, Workload,
    ZooError, backends, support,
};
use calorimeter_recipes::{Dtype, Treatment, Variant};

/// A model or an operator at a size.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// A model, which recipes apply to.
    Model(Problem),
    /// An operator, which has only its baseline.
    Operator(OperatorProblem),
}

/// The inputs of a task on the host: every arm of a comparison gets the same bits.
#[derive(Debug, Clone, PartialEq)]
pub enum Inputs {
    /// Of a model.
    Model(Tensors),
    /// Of an operator.
    Operator(Vec<Matrix>),
}

impl Task {
    /// What a variant does to it, if the combination can be run; known without touching a device.
    pub fn support(
        &self,
        variant: Variant,
        implementation: Implementation,
        device: Device,
    ) -> Result<Treatment, ZooError> {
        match self {
            Self::Model(problem) => support(problem, variant, implementation, device),
            Self::Operator(OperatorProblem { operator, spec, .. }) => {
                if variant != Variant::BASELINE {
                    return Err(ZooError::Unsupported(format!("recipes are for models; {operator} is an operator")));
                }
                operator.check(spec)?;
                operator.supported(spec, implementation, device)?;
                Ok(Treatment::none(spec.dtype()))
            }
        }
    }

    /// Floating-point operations of one pass.
    pub fn flops(&self) -> u64 {
        match self {
            Self::Model(problem) => problem.flops(),
            Self::Operator(OperatorProblem { operator, spec, .. }) => operator.flops(spec),
        }
    }

    /// The least traffic of one pass.
    pub fn bytes(&self, treatment: &Treatment) -> u64 {
        match self {
            Self::Model(problem) => problem.bytes(treatment),
            Self::Operator(OperatorProblem { operator, spec, .. }) => operator.bytes(spec),
        }
    }

    /// An estimate of the device memory that running it takes.
    pub fn memory(&self, treatment: &Treatment) -> u64 {
        match self {
            Self::Model(problem) => problem.memory(treatment),
            Self::Operator(problem) => problem.memory(),
        }
    }

    /// Bytes of its stored weights; an operator has none.
    pub fn weight_bytes(&self, treatment: &Treatment) -> Option<u64> {
        match self {
            Self::Model(problem) => Some(problem.weight_bytes(treatment)),
            Self::Operator(_) => None,
        }
    }

    /// The float type that it computes in.
    pub fn dtype(&self) -> Dtype {
        match self {
            Self::Model(problem) => problem.dtype,
            Self::Operator(problem) => problem.spec.dtype(),
        }
    }

    /// Its inputs, the same for the same seed.
    pub fn inputs(&self) -> Inputs {
        match self {
            Self::Model(problem) => Inputs::Model(problem.tensors()),
            Self::Operator(problem) => Inputs::Operator(problem.inputs()),
        }
    }

    /// What a correct implementation computes, for each output.
    pub fn references(&self, inputs: &Inputs, treatment: &Treatment) -> Result<Vec<Reference>, ZooError> {
        match (self, inputs) {
            (Self::Model(problem), Inputs::Model(tensors)) => Ok(vec![problem.reference(tensors, treatment)?]),
            (Self::Operator(problem), Inputs::Operator(inputs)) => Ok(problem.references(inputs)),
            _ => Err(foreign()),
        }
    }

    /// Compares outputs with their references.
    pub fn judge(
        &self,
        treatment: &Treatment,
        outputs: &[Output],
        references: &[Reference],
        may_use_tf32: bool,
    ) -> Result<Judged, Mismatch> {
        match (self, outputs, references) {
            (Self::Model(problem), [output], [reference]) => problem.judge(treatment, output, reference, may_use_tf32),
            (Self::Operator(problem), _, _) => problem.judge(outputs, references, may_use_tf32),
            _ => Err(Mismatch::Size { got: outputs.len(), expected: references.len() }),
        }
    }

    /// Makes it runnable.
    pub fn open(
        &self,
        inputs: &Inputs,
        treatment: &Treatment,
        setup: Setup,
        machines: &mut Machines,
    ) -> Result<Box<dyn Workload>, ZooError> {
        match (self, inputs) {
            (Self::Model(problem), Inputs::Model(tensors)) => {
                backends::open(problem, tensors, treatment, setup, machines)
            }
            (Self::Operator(problem), Inputs::Operator(inputs)) => {
                backends::open_operator(problem, inputs, setup, machines)
            }
            _ => Err(foreign()),
        }
    }
}

fn foreign() -> ZooError {
    ZooError::Device("inputs of another task".into())
}
