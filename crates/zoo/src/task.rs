//! What a case computes: a model under a recipe, or an operator.

use crate::foreign::{Foreign, ForeignProblem};
use crate::gate::{Evidence, Judged, Mismatch};
use crate::{
    FusionModel, Implementation, Matrix, Model, Operator, OperatorProblem, Output, Problem, Reference, Spec, Suite,
    Tensors, ZooError,
};
use calorimeter_recipes::{Dtype, Element, Treatment, Variant};
use calorimeter_shapes::{Axes, Shape};
use std::borrow::Cow;
use std::fmt;

/// Which computation, without its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// A model.
    Model(Model),
    /// An operator.
    Operator(Operator),
    /// Work of others, as their programs do it.
    Foreign(Foreign),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(model) => model.fmt(f),
            Self::Operator(operator) => operator.fmt(f),
            Self::Foreign(foreign) => foreign.fmt(f),
        }
    }
}

/// A model or an operator at a size, or work of others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Task {
    /// A model, which recipes apply to.
    Model(Problem),
    /// An operator, which has only its baseline, but for those of training.
    Operator(OperatorProblem),
    /// Work of others, each of whose programs is an implementation.
    Foreign(ForeignProblem),
}

/// The inputs of a task on the host: every arm of a comparison gets the same bits.
#[derive(Debug, Clone, PartialEq)]
pub enum Inputs {
    /// Of a model.
    Model(Tensors),
    /// Of an operator.
    Operator(Vec<Matrix>),
    /// Of work of others, which is given bytes that follow from the seed.
    Foreign,
}

impl Task {
    /// A subject at a size; the error says what it cannot be.
    pub fn new(
        subject: Subject,
        axes: &Axes,
        element: Element,
        output: Option<Element>,
        seed: u64,
    ) -> Result<Self, ZooError> {
        match subject {
            Subject::Model(model) => {
                let shape = Shape::try_from(axes).map_err(|error| ZooError::Shape(format!("{model}: {error}")))?;
                let Element::Float(dtype) = element else {
                    let what = format!("{model} runs in f32, f16 and bf16, not {element}; recipes quantize it");
                    return Err(ZooError::Unsupported(what));
                };
                if let Some(output) = output {
                    return Err(ZooError::Unsupported(format!(
                        "{model} has no output type of its own such as {output}"
                    )));
                }
                Ok(Self::Model(Problem { model, shape, dtype, seed }))
            }
            Subject::Operator(operator) => {
                let spec = Spec { axes: axes.clone(), element, output, training: None };
                operator.check_axes(&spec)?;
                Ok(Self::Operator(OperatorProblem { operator, spec, seed }))
            }
            Subject::Foreign(foreign) => ForeignProblem::new(foreign, axes.clone(), seed).map(Self::Foreign),
        }
    }

    /// Which computation it is.
    pub fn subject(&self) -> Subject {
        match self {
            Self::Model(problem) => Subject::Model(problem.model),
            Self::Operator(problem) => Subject::Operator(problem.operator),
            Self::Foreign(problem) => Subject::Foreign(problem.foreign),
        }
    }

    /// Its size.
    pub fn axes(&self) -> Axes {
        match self {
            Self::Model(problem) => Axes::from(problem.shape),
            Self::Operator(problem) => problem.spec.axes.clone(),
            Self::Foreign(problem) => problem.axes.clone(),
        }
    }

    /// What its inputs are stored as.
    pub fn element(&self) -> Element {
        match self {
            Self::Model(problem) => Element::Float(problem.dtype),
            Self::Operator(problem) => problem.spec.element,
            Self::Foreign(problem) => problem.foreign.element(),
        }
    }

    /// What a variant does to it; the error says what would make it run.
    pub fn treatment(&self, variant: Variant) -> Result<Treatment, ZooError> {
        match self {
            Self::Model(problem) => Ok(variant.treatment(problem.dtype)?),
            Self::Operator(OperatorProblem { operator, spec, .. }) if operator.suite() == Suite::Training => {
                Ok(variant.in_training(spec.dtype())?)
            }
            Self::Operator(OperatorProblem { spec, .. }) if variant == Variant::BASELINE => {
                Ok(Treatment::none(spec.dtype()))
            }
            Self::Operator(OperatorProblem { operator, .. }) => {
                Err(ZooError::Unsupported(format!("recipes are for models; {operator} is an operator")))
            }
            Self::Foreign(_) if variant == Variant::BASELINE => Ok(Treatment::none(self.dtype())),
            Self::Foreign(problem) => {
                Err(ZooError::Unsupported(format!("recipes are for models; {} is work of others", problem.foreign)))
            }
        }
    }

    /// The same under a treatment, which says how an operator of training multiplies.
    pub(crate) fn under(&self, treatment: &Treatment) -> Cow<'_, Self> {
        match self {
            Self::Operator(OperatorProblem { operator, spec, seed }) if spec.training != treatment.training => {
                let spec = Spec { training: treatment.training, ..spec.clone() };
                Cow::Owned(Self::Operator(OperatorProblem { operator: *operator, spec, seed: *seed }))
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// What its outputs are stored as, where that was chosen.
    pub fn output(&self) -> Option<Element> {
        match self {
            Self::Model(_) | Self::Foreign(_) => None,
            Self::Operator(problem) => problem.spec.output,
        }
    }

    /// Whether it is computed at all, at this size and in these numbers; what is not has no counts either.
    pub fn exists(&self) -> bool {
        match self {
            Self::Model(problem) => problem.model.check(problem.shape).is_ok(),
            Self::Operator(OperatorProblem { operator, spec, .. }) => operator.check(spec).is_ok(),
            Self::Foreign(_) => true,
        }
    }

    /// Whether it moves data between memories or devices.
    pub fn is_link(&self) -> bool {
        match self {
            Self::Model(_) | Self::Foreign(_) => false,
            Self::Operator(problem) => problem.operator.is_link(),
        }
    }

    /// Rows that a pass of training is given.
    pub fn tokens(&self) -> Option<u64> {
        match self {
            Self::Model(_) | Self::Foreign(_) => None,
            Self::Operator(OperatorProblem { operator, spec, .. }) => operator.tokens(spec),
        }
    }

    /// What comes one after another in a pass.
    pub fn parts(&self) -> &'static [&'static str] {
        match self {
            Self::Model(_) | Self::Foreign(_) => &[],
            Self::Operator(problem) => problem.operator.parts(),
        }
    }

    /// What fusing it should save.
    pub fn fusion(&self) -> Option<FusionModel> {
        match self {
            Self::Model(_) | Self::Foreign(_) => None,
            Self::Operator(OperatorProblem { operator, spec, .. }) => operator.fusion(spec),
        }
    }

    /// Rows, output columns and depth of its matrix products, where they are known.
    pub fn products(&self) -> Vec<[u64; 3]> {
        match self {
            Self::Model(problem) => {
                let layout = problem.layout();
                layout.linears.iter().map(|&(n, k)| [layout.input.0, n, k]).collect()
            }
            Self::Operator(OperatorProblem { spec, .. }) => {
                let sides = ["m", "n", "k"].map(|axis| spec.axes.get(axis));
                if let [Some(m), Some(n), Some(k)] = sides { vec![[m, n, k]] } else { Vec::new() }
            }
            Self::Foreign(_) => Vec::new(),
        }
    }

    /// Floating-point operations of one pass, where they are known.
    pub fn flops(&self) -> Option<u64> {
        match self {
            Self::Model(problem) => Some(problem.flops()),
            Self::Operator(OperatorProblem { operator, spec, .. }) => Some(operator.flops(spec)),
            Self::Foreign(problem) => problem.flops(),
        }
    }

    /// The least traffic of one pass, where it is known.
    pub fn bytes(&self, treatment: &Treatment) -> Option<u64> {
        match self {
            Self::Model(problem) => Some(problem.bytes(treatment)),
            Self::Operator(OperatorProblem { operator, spec, .. }) => Some(operator.bytes(spec)),
            Self::Foreign(problem) => problem.bytes(),
        }
    }

    /// An estimate of the device memory that running it takes; of work of others that is what it is given.
    pub fn memory(&self, treatment: &Treatment) -> Option<u64> {
        match &*self.under(treatment) {
            Self::Model(problem) => Some(problem.memory(treatment)),
            Self::Operator(problem) => Some(problem.memory()),
            Self::Foreign(problem) => problem.buffer_bytes(),
        }
    }

    /// Bytes of its stored weights; an operator has none.
    pub fn weight_bytes(&self, treatment: &Treatment) -> Option<u64> {
        match self {
            Self::Model(problem) => Some(problem.weight_bytes(treatment)),
            Self::Operator(_) | Self::Foreign(_) => None,
        }
    }

    /// The float type that it computes in.
    pub fn dtype(&self) -> Dtype {
        match self {
            Self::Model(problem) => problem.dtype,
            Self::Operator(problem) => problem.spec.dtype(),
            Self::Foreign(problem) => match problem.foreign.element() {
                Element::Float(dtype) => dtype,
                _ => Dtype::F32,
            },
        }
    }

    /// What its matrix products multiply, or would.
    pub fn factors(&self, treatment: &Treatment, implementation: Implementation) -> Element {
        match &*self.under(treatment) {
            Self::Model(problem) => Element::Float(problem.dtype),
            Self::Operator(OperatorProblem { operator, spec, .. }) => operator.factors(spec, implementation),
            Self::Foreign(problem) => problem.foreign.element(),
        }
    }

    /// Whose clocks an implementation needs: a kernel of others is enqueued as ours are.
    pub fn clocked_as(&self, implementation: Implementation) -> Implementation {
        match self {
            Self::Foreign(problem) if problem.is_a_kernel(implementation) => Implementation::Native,
            _ => implementation,
        }
    }

    /// Its inputs, the same for the same seed.
    pub fn inputs(&self) -> Inputs {
        match self {
            Self::Model(problem) => Inputs::Model(problem.tensors()),
            Self::Operator(problem) => Inputs::Operator(problem.inputs()),
            Self::Foreign(_) => Inputs::Foreign,
        }
    }

    /// Its inputs for the gate, in which a wrong scale shows.
    pub fn gate_inputs(&self) -> Inputs {
        match self {
            Self::Model(problem) => Inputs::Model(problem.gate_tensors()),
            Self::Operator(problem) => Inputs::Operator(problem.gate_inputs()),
            Self::Foreign(_) => Inputs::Foreign,
        }
    }

    /// Outputs of a buffer set, as they would be on the first.
    pub fn as_of_first_set(&self, outputs: Vec<Output>, set: u32) -> Vec<Output> {
        match self {
            Self::Model(problem) => outputs.into_iter().map(|output| problem.as_of_first_set(output, set)).collect(),
            Self::Operator(OperatorProblem { operator, spec, .. }) => {
                operator.moves(spec).as_of_first_set(outputs, set)
            }
            Self::Foreign(_) => outputs,
        }
    }

    /// Whether outputs of a buffer set are those of the first, as they move with its inputs.
    pub fn are_moved_on(&self, outputs: &[Output], first: &[Output], set: u32) -> bool {
        match (self, outputs, first) {
            (Self::Model(problem), [output], [first]) => problem.is_moved_on(output, first, set),
            (Self::Model(_), ..) => false,
            (Self::Operator(OperatorProblem { operator, spec, .. }), ..) => {
                operator.moves(spec).are_moved_on(outputs, first, set)
            }
            (Self::Foreign(_), ..) => outputs == first,
        }
    }

    /// What a correct implementation computes, for each output.
    pub fn references(&self, inputs: &Inputs, treatment: &Treatment) -> Result<Vec<Reference>, ZooError> {
        match (&*self.under(treatment), inputs) {
            (Self::Model(problem), Inputs::Model(tensors)) => Ok(vec![problem.reference(tensors, treatment)?]),
            (Self::Operator(problem), Inputs::Operator(inputs)) => {
                problem.check_moves(inputs)?;
                Ok(problem.references(inputs))
            }
            // What is right is what the first program computes.
            (Self::Foreign(_), Inputs::Foreign) => Ok(Vec::new()),
            _ => Err(foreign()),
        }
    }

    /// Compares outputs with their references.
    pub fn judge(
        &self,
        treatment: &Treatment,
        outputs: &[impl Evidence],
        references: &[Reference],
        may_use_tf32: bool,
    ) -> Result<Judged, Mismatch> {
        match (&*self.under(treatment), outputs, references) {
            (Self::Model(problem), [output], [reference]) => problem.judge(treatment, output, reference, may_use_tf32),
            (Self::Operator(problem), _, _) => problem.judge(outputs, references, may_use_tf32),
            (Self::Foreign(problem), _, _) => problem.judge(outputs, references),
            _ => Err(Mismatch::Size { got: outputs.len(), expected: references.len() }),
        }
    }

    /// Compares outputs, as they would be on the first buffer set, with those of the first, which were right where they
    /// were sampled.
    pub fn judge_beside(
        &self,
        treatment: &Treatment,
        outputs: &[Output],
        right: &[Output],
        tf32: bool,
    ) -> Result<(), Mismatch> {
        match (&*self.under(treatment), outputs, right) {
            (Self::Model(problem), [output], [right]) => problem.judge_beside(treatment, output, right, tf32),
            (Self::Operator(problem), _, _) => problem.judge_beside(outputs, right, tf32),
            (Self::Foreign(problem), _, _) => problem.judge(outputs, &problem.references(right)).map(drop),
            _ => Err(Mismatch::Size { got: outputs.len(), expected: right.len() }),
        }
    }
}

/// What is said of inputs that are not those of the task.
pub(crate) fn foreign() -> ZooError {
    ZooError::Device("inputs of another task".into())
}
