//! Factories that create workloads.

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

/// Parameters of a new workload.
pub struct Opening<'a> {
    /// Computation.
    pub task: &'a Task,
    /// Inputs on the host.
    pub inputs: &'a Inputs,
    /// Quantization of the layers.
    pub treatment: &'a Treatment,
    /// Implementation, device and number of buffer sets.
    pub setup: Setup,
    /// Device handles that workloads share.
    pub machines: &'a mut Machines,
}

impl Opening<'_> {
    /// Returns the operator and its inputs; an error for other tasks.
    pub fn operator(&self) -> Result<(&OperatorProblem, &[Matrix]), ZooError> {
        match (self.task, self.inputs) {
            (Task::Operator(problem), Inputs::Operator(inputs)) => Ok((problem, inputs)),
            _ => Err(foreign()),
        }
    }

    /// Returns the operator's inputs for a buffer set.
    pub fn inputs_of_set(&self, set: u32) -> Result<Vec<Matrix>, ZooError> {
        let (OperatorProblem { operator, spec, .. }, inputs) = self.operator()?;
        Ok(operator.moves(spec).inputs_of_set(inputs, set))
    }

    /// Returns the model and its tensors; an error for other tasks.
    pub fn model(&self) -> Result<(&Problem, &Tensors), ZooError> {
        match (self.task, self.inputs) {
            (Task::Model(problem), Inputs::Model(tensors)) => Ok((problem, tensors)),
            _ => Err(foreign()),
        }
    }
}

/// Creates workloads of one implementation on one kind of device. A closure is a factory that accepts every task.
pub trait Opener: Send + Sync + 'static {
    /// Checks size, element types and treatment; the error names what is supported.
    fn accepts(&self, task: &Task, treatment: &Treatment) -> Result<(), String> {
        let _ = (task, treatment);
        Ok(())
    }

    /// Uploads the inputs and creates the workload.
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

/// Operator on a burn backend. Generic over the backend only, so that it is compiled once per backend.
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

/// Rejects element types without a burn dtype.
fn stored(OperatorProblem { operator, spec, .. }: &OperatorProblem) -> Result<(), String> {
    let read = operator.inputs(spec).into_iter().map(|operand| operand.element);
    let written = operator.outputs(spec).into_iter().map(|slot| slot.element);
    match read.chain(written).find_map(|element| value::stored(element).err()) {
        Some(reason) => Err(format!("{reason}; the smallest supported type is e4m3")),
        None => Ok(()),
    }
}

/// Model on a burn backend.
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

/// Operator on CUDA.
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

/// Model on CUDA.
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

/// Model on the CPU; the model itself checks what its kernels support.
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

/// Checks size and element types of an operator.
pub type SpecTaken = dyn Fn(&Spec) -> Result<(), String> + Send + Sync;

/// Factory restricted to some sizes and element types.
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

/// Factory restricted to treatments with a native CUDA kernel.
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

/// Factory restricted to treatments with a CubeCL kernel for stored weights.
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

/// Factory of a backend that is not part of this build. It reports what would be supported and creates nothing.
pub struct NotBuilt {
    /// True for burn backends, which lack some element types.
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

/// Factory of the mock device.
pub struct Scripted;

impl Opener for Scripted {
    fn open(&self, _: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
        Err(ZooError::Unsupported("the mock device computes nothing".into()))
    }
}
