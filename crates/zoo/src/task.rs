//! Computation of a case: a model under a recipe, an operator or foreign work.

use crate::foreign::{ForeignHandle, ForeignProblem};
use crate::gate::{GateResult, Mismatch, ToDigest};
use crate::{
    FusionModel, Implementation, Matrix, Model, Operator, OperatorProblem, Output, Problem, Reference, Spec, Suite,
    Tensors, ZooError,
};
use calorimeter_recipes::{Dtype, Element, QuantConfig, RecipeVariant};
use calorimeter_shapes::{Axes, Shape};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Model, operator or foreign work, without size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// Model.
    Model(Model),
    /// Operator.
    Operator(Operator),
    /// Work done by external programs.
    Foreign(ForeignHandle),
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

/// Model, operator or foreign work at a size.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Model; recipes apply to it.
    Model(Problem),
    /// Operator; only training operators have recipes besides the baseline.
    Operator(OperatorProblem),
    /// Work done by external programs, each of which is an implementation.
    Foreign(ForeignProblem),
}

/// Inputs of a task on the host. All arms of a comparison receive identical bits.
#[derive(Debug, Clone, PartialEq)]
pub enum Inputs {
    /// Tensors of a model.
    Model(Tensors),
    /// Inputs of an operator.
    Operator(Vec<Matrix>),
    /// None: foreign work creates its buffers from the seed.
    Foreign,
}

impl Task {
    /// Creates a task; the error names what is invalid.
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
                    let what =
                        format!("{model} supports f32, f16 and bf16, not {element}; use a recipe to quantize it");
                    return Err(ZooError::Unsupported(what));
                };
                if let Some(output) = output {
                    return Err(ZooError::Unsupported(format!(
                        "{model} does not support an output type such as {output}"
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

    /// Returns the task with inputs from another seed.
    pub fn with_seed(mut self, seed: u64) -> Self {
        match &mut self {
            Self::Model(problem) => problem.seed = seed,
            Self::Operator(problem) => problem.seed = seed,
            Self::Foreign(problem) => problem.seed = seed,
        }
        self
    }

    /// Returns the subject without size.
    pub fn subject(&self) -> Subject {
        match self {
            Self::Model(problem) => Subject::Model(problem.model),
            Self::Operator(problem) => Subject::Operator(problem.operator),
            Self::Foreign(problem) => Subject::Foreign(problem.foreign),
        }
    }

    /// Returns the size.
    pub fn axes(&self) -> Axes {
        match self {
            Self::Model(problem) => Axes::from(problem.shape),
            Self::Operator(problem) => problem.spec.axes.clone(),
            Self::Foreign(problem) => problem.axes.clone(),
        }
    }

    /// Element type of the inputs.
    pub fn element(&self) -> Element {
        match self {
            Self::Model(problem) => Element::Float(problem.dtype),
            Self::Operator(problem) => problem.spec.element,
            Self::Foreign(problem) => problem.foreign.element(),
        }
    }

    /// Quantization of the layers under a variant; the error names an alternative.
    pub fn treatment(&self, variant: RecipeVariant) -> Result<QuantConfig, ZooError> {
        match self {
            Self::Model(problem) => Ok(variant.quant_config(problem.dtype)?),
            Self::Operator(OperatorProblem { operator, spec, .. }) if operator.suite() == Suite::Training => {
                Ok(variant.training_config(spec.dtype())?)
            }
            Self::Operator(OperatorProblem { spec, .. }) if variant == RecipeVariant::BASELINE => {
                Ok(QuantConfig::unquantized(spec.dtype()))
            }
            Self::Operator(OperatorProblem { operator, .. }) => {
                Err(ZooError::Unsupported(format!("recipes apply to models; {operator} is an operator")))
            }
            Self::Foreign(_) if variant == RecipeVariant::BASELINE => Ok(QuantConfig::unquantized(self.dtype())),
            Self::Foreign(problem) => {
                Err(ZooError::Unsupported(format!("recipes apply to models; {} is foreign work", problem.foreign)))
            }
        }
    }

    /// Sets the training recipe of the treatment for training operators.
    pub(crate) fn with_training(&self, treatment: &QuantConfig) -> Cow<'_, Self> {
        match self {
            Self::Operator(OperatorProblem { operator, spec, seed }) if spec.training != treatment.training => {
                let spec = Spec { training: treatment.training, ..spec.clone() };
                Cow::Owned(Self::Operator(OperatorProblem { operator: *operator, spec, seed: *seed }))
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// Element type of the outputs, if the user chose it.
    pub fn output(&self) -> Option<Element> {
        match self {
            Self::Model(_) | Self::Foreign(_) => None,
            Self::Operator(problem) => problem.spec.output,
        }
    }

    /// True if the task exists at this size and element type. Otherwise its counts must not be computed.
    pub fn exists(&self) -> bool {
        match self {
            Self::Model(problem) => problem.model.check(problem.shape).is_ok(),
            Self::Operator(OperatorProblem { operator, spec, .. }) => operator.check(spec).is_ok(),
            Self::Foreign(_) => true,
        }
    }

    /// True for transfers between memories or devices.
    pub fn is_transfer(&self) -> bool {
        match self {
            Self::Model(_) | Self::Foreign(_) => false,
            Self::Operator(problem) => problem.operator.is_transfer(),
        }
    }

    /// Rows (tokens) per training step.
    pub fn tokens(&self) -> Option<u64> {
        match self {
            Self::Model(_) | Self::Foreign(_) => None,
            Self::Operator(OperatorProblem { operator, spec, .. }) => operator.tokens(spec),
        }
    }

    /// Names of consecutive parts of a pass.
    pub fn parts(&self) -> &'static [&'static str] {
        match self {
            Self::Model(_) | Self::Foreign(_) => &[],
            Self::Operator(problem) => problem.operator.parts(),
        }
    }

    /// Expected savings of fusion.
    pub fn fusion(&self) -> Option<FusionModel> {
        match self {
            Self::Model(_) | Self::Foreign(_) => None,
            Self::Operator(OperatorProblem { operator, spec, .. }) => operator.fusion(spec),
        }
    }

    /// Shapes (m, n, k) of the matmuls, if known.
    pub fn matmul_shapes(&self) -> Vec<[u64; 3]> {
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

    /// Floating-point operations of one pass, if known.
    pub fn flops(&self) -> Option<u64> {
        match self {
            Self::Model(problem) => Some(problem.flops()),
            Self::Operator(OperatorProblem { operator, spec, .. }) => Some(operator.flops(spec)),
            Self::Foreign(problem) => problem.flops(),
        }
    }

    /// Minimum memory traffic of one pass, if known.
    pub fn bytes(&self, treatment: &QuantConfig) -> Option<u64> {
        match self {
            Self::Model(problem) => Some(problem.bytes(treatment)),
            Self::Operator(OperatorProblem { operator, spec, .. }) => Some(operator.bytes(spec)),
            Self::Foreign(problem) => problem.bytes(),
        }
    }

    /// Estimated device memory. For foreign work it includes the buffers only.
    pub fn memory(&self, treatment: &QuantConfig) -> Option<u64> {
        match &*self.with_training(treatment) {
            Self::Model(problem) => Some(problem.memory(treatment)),
            Self::Operator(problem) => Some(problem.memory()),
            Self::Foreign(problem) => problem.buffer_bytes(),
        }
    }

    /// JSON of the workload of flashinfer-bench that the task computes, if any.
    pub fn flashinfer_workload(&self) -> Option<&'static str> {
        match self {
            Self::Foreign(problem) => problem.foreign.flashinfer_workload(),
            Self::Model(_) | Self::Operator(_) => None,
        }
    }

    /// Bytes of the stored weights; `None` for operators and foreign work.
    pub fn weight_bytes(&self, treatment: &QuantConfig) -> Option<u64> {
        match self {
            Self::Model(problem) => Some(problem.weight_bytes(treatment)),
            Self::Operator(_) | Self::Foreign(_) => None,
        }
    }

    /// Float dtype of the computation.
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

    /// Element type of the matmul operands; selects the peak of the roofline.
    pub fn matmul_element(&self, treatment: &QuantConfig, implementation: Implementation) -> Element {
        match &*self.with_training(treatment) {
            Self::Model(problem) => Element::Float(problem.dtype),
            Self::Operator(OperatorProblem { operator, spec, .. }) => operator.matmul_element(spec, implementation),
            Self::Foreign(problem) => problem.foreign.element(),
        }
    }

    /// Implementation whose stopwatches apply: foreign kernels are timed like `native` ones.
    pub fn timing_implementation(&self, implementation: Implementation) -> Implementation {
        match self {
            Self::Foreign(problem) if problem.is_kernel(implementation) => Implementation::Native,
            _ => implementation,
        }
    }

    /// Creates the inputs from the seed.
    pub fn inputs(&self) -> Inputs {
        match self {
            Self::Model(problem) => Inputs::Model(problem.tensors()),
            Self::Operator(problem) => Inputs::Operator(problem.inputs()),
            Self::Foreign(_) => Inputs::Foreign,
        }
    }

    /// Creates the inputs for the gate, in which wrong scales produce visible errors.
    pub fn gate_inputs(&self) -> Inputs {
        match self {
            Self::Model(problem) => Inputs::Model(problem.gate_tensors()),
            Self::Operator(problem) => Inputs::Operator(problem.gate_inputs()),
            Self::Foreign(_) => Inputs::Foreign,
        }
    }

    /// Rotates the outputs of a set back to set 0.
    pub fn rotate_back(&self, outputs: Vec<Output>, set: u32) -> Vec<Output> {
        match self {
            Self::Model(problem) => outputs.into_iter().map(|output| problem.rotate_back(output, set)).collect(),
            Self::Operator(OperatorProblem { operator, spec, .. }) => {
                operator.set_rotation(spec).rotate_back(outputs, set)
            }
            Self::Foreign(_) => outputs,
        }
    }

    /// True if the outputs of a set equal the rotated outputs of set 0, bit for bit.
    pub fn are_rotations_of(&self, outputs: &[Output], first: &[Output], set: u32) -> bool {
        match (self, outputs, first) {
            (Self::Model(problem), [output], [first]) => problem.is_rotation_of(output, first, set),
            (Self::Model(_), ..) => false,
            (Self::Operator(OperatorProblem { operator, spec, .. }), ..) => {
                operator.set_rotation(spec).are_rotations_of(outputs, first, set)
            }
            (Self::Foreign(_), ..) => outputs == first,
        }
    }

    /// Computes the reference of each output.
    pub fn references(&self, inputs: &Inputs, treatment: &QuantConfig) -> Result<Vec<Reference>, ZooError> {
        match (&*self.with_training(treatment), inputs) {
            (Self::Model(problem), Inputs::Model(tensors)) => Ok(vec![problem.reference(tensors, treatment)?]),
            (Self::Operator(problem), Inputs::Operator(inputs)) => {
                problem.check_set_rotation(inputs)?;
                Ok(problem.references(inputs))
            }
            // The output of the first program is the reference.
            (Self::Foreign(_), Inputs::Foreign) => Ok(Vec::new()),
            _ => Err(inputs_mismatch()),
        }
    }

    /// Compares outputs with their references.
    pub fn judge(
        &self,
        treatment: &QuantConfig,
        outputs: &[impl ToDigest],
        references: &[Reference],
        may_use_tf32: bool,
    ) -> Result<GateResult, Mismatch> {
        match (&*self.with_training(treatment), outputs, references) {
            (Self::Model(problem), [output], [reference]) => problem.judge(treatment, output, reference, may_use_tf32),
            (Self::Operator(problem), _, _) => problem.judge(outputs, references, may_use_tf32),
            (Self::Foreign(problem), _, _) => problem.judge(outputs, references),
            _ => Err(Mismatch::OutputCount { got: outputs.len(), expected: references.len() }),
        }
    }

    /// Compares all elements of outputs, rotated back to set 0, with accepted outputs of set 0.
    pub fn judge_against_outputs(
        &self,
        treatment: &QuantConfig,
        outputs: &[Output],
        right: &[Output],
        tf32: bool,
    ) -> Result<(), Mismatch> {
        match (&*self.with_training(treatment), outputs, right) {
            (Self::Model(problem), [output], [right]) => problem.judge_against_output(treatment, output, right, tf32),
            (Self::Operator(problem), _, _) => problem.judge_against_outputs(outputs, right, tf32),
            (Self::Foreign(problem), _, _) => problem.judge(outputs, &problem.references(right)).map(drop),
            _ => Err(Mismatch::OutputCount { got: outputs.len(), expected: right.len() }),
        }
    }
}

/// Error for inputs belong to another task.
pub(crate) fn inputs_mismatch() -> ZooError {
    ZooError::Device("inputs belong to another task".into())
}
