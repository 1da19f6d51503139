//! What makes a task runnable.

#[cfg(feature = "cuda")]
use crate::backends::cuda;
use crate::backends::{BurnBackend, no_backend};
use crate::burn_workload::{self, MakeForward, MakePass, Upload};
use crate::native_form;
use crate::task::foreign;
use crate::{
    HostModel, Inputs, Machines, Matrix, OperatorProblem, Problem, Setup, Spec, Task, Tensors, Workload, ZooError,
    value,
};
#[cfg(feature = "cuda")]
use crate::{NativeModel, NativeOpen};
use burn::tensor::backend::Backend;
use calorimeter_recipes::Treatment;

/// What is to be opened, and how.
pub struct Opening<'a> {
    /// What is computed.
    pub task: &'a Task,
    /// Of what.
    pub inputs: &'a Inputs,
    /// What a recipe does to its layers.
    pub treatment: &'a Treatment,
    /// Whose kernels run where, and on how many buffers in turn.
    pub setup: Setup,
    /// The devices that workloads share.
    pub machines: &'a mut Machines,
}

impl Opening<'_> {
    /// The operator and its inputs.
    pub fn operator(&self) -> Result<(&OperatorProblem, &[Matrix]), ZooError> {
        match (self.task, self.inputs) {
            (Task::Operator(problem), Inputs::Operator(inputs)) => Ok((problem, inputs)),
            _ => Err(foreign()),
        }
    }

    /// The operator's inputs on a buffer set.
    pub fn inputs_of_set(&self, set: u32) -> Result<Vec<Matrix>, ZooError> {
        let (OperatorProblem { operator, spec, .. }, inputs) = self.operator()?;
        Ok(operator.moves(spec).inputs_of_set(inputs, set))
    }

    /// The model and its tensors.
    pub fn model(&self) -> Result<(&Problem, &Tensors), ZooError> {
        match (self.task, self.inputs) {
            (Task::Model(problem), Inputs::Model(tensors)) => Ok((problem, tensors)),
            _ => Err(foreign()),
        }
    }
}

/// What makes a task runnable in one implementation on one kind of device. A closure is one that accepts everything.
pub trait Opener: Send + Sync + 'static {
    /// Whether it takes this size, these numbers and this treatment; the error says what it takes.
    fn accepts(&self, task: &Task, treatment: &Treatment) -> Result<(), String> {
        let _ = (task, treatment);
        Ok(())
    }

    /// Puts the inputs on the device, ready to launch.
    fn open(&self, opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError>;
}

impl<F> Opener for F
where
    F: Fn(Opening<'_>) -> Result<Box<dyn Workload>, ZooError> + Send + Sync + 'static,
{
    fn open(&self, opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
        self(opening)
    }
}

/// An operator on a backend of burn. Only the pass depends on the operator, so that this is compiled once for a backend.
pub struct OnBurn<B: Backend>(pub Box<MakePass<B>>);

impl<B: BurnBackend> Opener for OnBurn<B> {
    fn accepts(&self, task: &Task, _: &Treatment) -> Result<(), String> {
        match task {
            Task::Operator(problem) => stored(problem),
            Task::Model(_) | Task::Foreign(_) => Ok(()),
        }
    }

    fn open(&self, opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let (problem, inputs) = opening.operator()?;
        burn_workload::build_operator::<B>(problem, inputs, opening.setup, &*self.0)
    }
}

/// Refuses numbers that burn has no tensors of.
fn stored(OperatorProblem { operator, spec, .. }: &OperatorProblem) -> Result<(), String> {
    let read = operator.inputs(spec).into_iter().map(|operand| operand.element);
    let written = operator.outputs(spec).into_iter().map(|slot| slot.element);
    match read.chain(written).find_map(|element| value::stored(element).err()) {
        Some(reason) => Err(format!("{reason}; e4m3 is the smallest that it stores")),
        None => Ok(()),
    }
}

/// A model on a backend of burn, with layers that are made so.
pub struct ModelOnBurn<B: Backend> {
    pub upload: Upload<B>,
    pub forward: Box<MakeForward<B>>,
}

impl<B: BurnBackend> Opener for ModelOnBurn<B> {
    fn open(&self, opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let (problem, tensors) = opening.model()?;
        burn_workload::build::<B>(problem, tensors, opening.treatment, opening.setup, self.upload, &*self.forward)
    }
}

/// An operator by CUDA's libraries.
#[cfg(feature = "cuda")]
pub struct OperatorOnCuda(pub &'static dyn NativeOpen);

#[cfg(feature = "cuda")]
impl Opener for OperatorOnCuda {
    fn open(&self, opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let machine = opening.machines.native(cuda::index(opening.setup.device)?)?;
        let (OperatorProblem { spec, .. }, inputs) = opening.operator()?;
        self.0.open(spec, inputs, machine, opening.setup.sets)
    }
}

/// A model by CUDA's libraries.
#[cfg(feature = "cuda")]
pub struct ModelOnCuda(pub &'static dyn NativeModel);

#[cfg(feature = "cuda")]
impl Opener for ModelOnCuda {
    fn open(&self, opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let machine = opening.machines.native(cuda::index(opening.setup.device)?)?;
        let (problem, tensors) = opening.model()?;
        self.0.open(problem, tensors, opening.treatment, machine, opening.setup.sets)
    }
}

/// A model by kernels of the processor, which say themselves what they take.
pub struct ModelOnHost(pub &'static dyn HostModel);

impl Opener for ModelOnHost {
    fn accepts(&self, task: &Task, treatment: &Treatment) -> Result<(), String> {
        match task {
            Task::Model(problem) => self.0.accepts(problem, treatment),
            Task::Operator(_) | Task::Foreign(_) => Ok(()),
        }
    }

    fn open(&self, opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let (problem, tensors) = opening.model()?;
        self.0.open(problem, tensors, opening.treatment, opening.setup.sets)
    }
}

/// Which sizes and number types an operator's kernel takes.
pub type SpecTaken = dyn Fn(&Spec) -> Result<(), String> + Send + Sync;

/// An opener that takes some sizes and number types alone.
pub struct SpecsAlone {
    pub taken: Box<SpecTaken>,
    pub opener: Box<dyn Opener>,
}

impl Opener for SpecsAlone {
    fn accepts(&self, task: &Task, treatment: &Treatment) -> Result<(), String> {
        if let Task::Operator(OperatorProblem { spec, .. }) = task {
            (self.taken)(spec)?;
        }
        self.opener.accepts(task, treatment)
    }

    fn open(&self, opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
        self.opener.open(opening)
    }
}

/// An opener that takes models under the treatments that CUDA's kernels have a form for.
pub struct FormsAlone(pub Box<dyn Opener>);

impl Opener for FormsAlone {
    fn accepts(&self, task: &Task, treatment: &Treatment) -> Result<(), String> {
        if let Task::Model(problem) = task {
            native_form::taken(problem, treatment)?;
        }
        self.0.accepts(task, treatment)
    }

    fn open(&self, opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
        self.0.open(opening)
    }
}

/// An opener that takes models whose weights CubeCL kernels multiply as they are stored.
pub struct ProductsAlone(pub Box<dyn Opener>);

impl Opener for ProductsAlone {
    fn accepts(&self, task: &Task, treatment: &Treatment) -> Result<(), String> {
        if let Task::Model(problem) = task {
            treatment.has_product(problem.layout().input.0 as usize).map_err(|error| error.to_string())?;
        }
        self.0.accepts(task, treatment)
    }

    fn open(&self, opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
        self.0.open(opening)
    }
}

/// Where this build lacks the backend: it is known what could be run, and nothing can.
pub struct NotBuilt {
    /// Whether the backend is one of burn's, which has no tensors of some numbers.
    pub burn: bool,
}

impl Opener for NotBuilt {
    fn accepts(&self, task: &Task, _: &Treatment) -> Result<(), String> {
        match task {
            Task::Operator(problem) if self.burn => stored(problem),
            _ => Ok(()),
        }
    }

    fn open(&self, opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
        Err(no_backend(opening.setup.device))
    }
}

/// The scripted device.
pub struct Scripted;

impl Opener for Scripted {
    fn open(&self, _: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
        Err(ZooError::Unsupported("the mock device computes nothing".into()))
    }
}
