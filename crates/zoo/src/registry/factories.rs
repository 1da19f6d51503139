//! Factories that create workloads.

#[cfg(any(feature = "cuda", feature = "wgpu"))]
use crate::backends::GpuRuntime;
#[cfg(feature = "native")]
use crate::backends::cuda_index;
use crate::backends::{BurnBackend, missing_feature};
use crate::burn_workload::{self, ForwardFactory, LinearUploader, PassFactory};
use crate::task::inputs_mismatch;
use crate::{
    HostModel, Inputs, Matrix, NativeDevices, OperatorProblem, Problem, Setup, Spec, Task, Tensors, Workload, ZooError,
    value,
};
#[cfg(feature = "native")]
use crate::{NativeModel, NativeOpen};
use burn::tensor::backend::Backend;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use calorimeter_kernels::LinearShape;
use calorimeter_recipes::{QuantConfig, RecipeVariant};

/// Parameters of a new workload.
pub struct OpenRequest<'a> {
    /// Computation.
    pub task: &'a Task,
    /// Inputs on the host.
    pub inputs: &'a Inputs,
    /// Quantization of the layers.
    pub treatment: &'a QuantConfig,
    /// Recipe of the quantization, if it comes from one; for implementations that quantize by themselves.
    pub recipe: Option<RecipeVariant>,
    /// Implementation, device and number of buffer sets.
    pub setup: Setup,
    /// Device handles that workloads share.
    pub machines: &'a mut NativeDevices,
}

impl OpenRequest<'_> {
    /// Returns the operator and its inputs; an error for other tasks.
    pub fn operator(&self) -> Result<(&OperatorProblem, &[Matrix]), ZooError> {
        match (self.task, self.inputs) {
            (Task::Operator(problem), Inputs::Operator(inputs)) => Ok((problem, inputs)),
            _ => Err(inputs_mismatch()),
        }
    }

    /// Returns the operator's inputs for a buffer set.
    pub fn inputs_of_set(&self, set: u32) -> Result<Vec<Matrix>, ZooError> {
        let (OperatorProblem { operator, spec, .. }, inputs) = self.operator()?;
        Ok(operator.set_rotation(spec).inputs_of_set(inputs, set))
    }

    /// Returns the model and its tensors; an error for other tasks.
    pub fn model(&self) -> Result<(&Problem, &Tensors), ZooError> {
        match (self.task, self.inputs) {
            (Task::Model(problem), Inputs::Model(tensors)) => Ok((problem, tensors)),
            _ => Err(inputs_mismatch()),
        }
    }
}

/// Creates workloads of one implementation on one kind of device. A closure is a factory that accepts every task.
pub trait WorkloadFactory: Send + Sync + 'static {
    /// Checks size, element types and treatment; the error names what is supported.
    fn accepts(&self, task: &Task, treatment: &QuantConfig) -> Result<(), String> {
        let _ = (task, treatment);
        Ok(())
    }

    /// True if another process runs the passes. That process captures its own graphs, and chooses the precision.
    fn is_remote(&self) -> bool {
        false
    }

    /// Uploads the inputs and creates the workload.
    fn open(&self, opening: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError>;
}

impl<F> WorkloadFactory for F
where
    F: Fn(OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> + Send + Sync + 'static,
{
    fn open(&self, opening: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
        self(opening)
    }
}

/// Operator on a burn backend. Generic over the backend only, so that it is compiled once per backend.
pub(super) struct BurnOperatorFactory<B: Backend>(pub Box<PassFactory<B>>);

impl<B: BurnBackend> WorkloadFactory for BurnOperatorFactory<B> {
    fn accepts(&self, task: &Task, _: &QuantConfig) -> Result<(), String> {
        match task {
            Task::Operator(problem) => check_burn_dtypes(problem),
            Task::Model(_) | Task::Foreign(_) => Ok(()),
        }
    }

    fn open(&self, opening: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let (problem, inputs) = opening.operator()?;
        burn_workload::build_operator::<B>(problem, inputs, opening.setup, &*self.0)
    }
}

/// Rejects element types without a burn dtype.
fn check_burn_dtypes(OperatorProblem { operator, spec, .. }: &OperatorProblem) -> Result<(), String> {
    let read = operator.inputs(spec).into_iter().map(|operand| operand.element);
    let written = operator.outputs(spec).into_iter().map(|slot| slot.element);
    match read.chain(written).find_map(|element| value::burn_dtype(element).err()) {
        Some(reason) => Err(format!("{reason}; the smallest supported type is e4m3")),
        None => Ok(()),
    }
}

/// Model on a burn backend.
pub(super) struct BurnModelFactory<B: Backend> {
    pub upload: LinearUploader<B>,
    pub forward: Box<ForwardFactory<B>>,
}

impl<B: BurnBackend> WorkloadFactory for BurnModelFactory<B> {
    fn open(&self, opening: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let (problem, tensors) = opening.model()?;
        burn_workload::build_model::<B>(problem, tensors, opening.treatment, opening.setup, self.upload, &*self.forward)
    }
}

/// Operator on CUDA.
#[cfg(feature = "native")]
pub(super) struct CudaOperatorFactory(pub &'static dyn NativeOpen);

#[cfg(feature = "native")]
impl WorkloadFactory for CudaOperatorFactory {
    fn open(&self, opening: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let machine = opening.machines.native(cuda_index(opening.setup.device)?)?;
        let (OperatorProblem { spec, .. }, inputs) = opening.operator()?;
        self.0.open(spec, inputs, machine, opening.setup.sets)
    }
}

/// Model on CUDA.
#[cfg(feature = "native")]
pub(super) struct CudaModelFactory(pub &'static dyn NativeModel);

#[cfg(feature = "native")]
impl WorkloadFactory for CudaModelFactory {
    fn open(&self, opening: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let machine = opening.machines.native(cuda_index(opening.setup.device)?)?;
        let (problem, tensors) = opening.model()?;
        self.0.open(problem, tensors, opening.treatment, machine, opening.setup.sets)
    }
}

/// Model on the CPU; the model itself checks what its kernels support.
pub(super) struct HostModelFactory(pub &'static dyn HostModel);

impl WorkloadFactory for HostModelFactory {
    fn accepts(&self, task: &Task, treatment: &QuantConfig) -> Result<(), String> {
        match task {
            Task::Model(problem) => self.0.accepts(problem, treatment),
            Task::Operator(_) | Task::Foreign(_) => Ok(()),
        }
    }

    fn open(&self, opening: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
        let (problem, tensors) = opening.model()?;
        self.0.open(problem, tensors, opening.treatment, opening.setup.sets)
    }
}

/// Checks size and element types of an operator.
pub(super) type SpecCheck = dyn Fn(&Spec) -> Result<(), String> + Send + Sync;

/// Factory restricted to some sizes and element types.
pub(super) struct GuardedOperator {
    pub check: Box<SpecCheck>,
    pub factory: Box<dyn WorkloadFactory>,
}

impl WorkloadFactory for GuardedOperator {
    fn accepts(&self, task: &Task, treatment: &QuantConfig) -> Result<(), String> {
        if let Task::Operator(OperatorProblem { spec, .. }) = task {
            (self.check)(spec)?;
        }
        self.factory.accepts(task, treatment)
    }

    fn open(&self, opening: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
        self.factory.open(opening)
    }
}

/// Factory restricted to treatments with a native CUDA kernel.
#[cfg(feature = "native")]
pub(super) struct GuardedNativeModel(pub Box<dyn WorkloadFactory>);

#[cfg(feature = "native")]
impl WorkloadFactory for GuardedNativeModel {
    fn accepts(&self, task: &Task, treatment: &QuantConfig) -> Result<(), String> {
        if let Task::Model(problem) = task {
            crate::native::linear::check_support(problem, treatment)?;
        }
        self.0.accepts(task, treatment)
    }

    fn open(&self, opening: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
        self.0.open(opening)
    }
}

/// Factory restricted to treatments with a CubeCL kernel for stored weights.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub(super) struct GuardedCubeModel(pub Box<dyn WorkloadFactory>);

#[cfg(any(feature = "cuda", feature = "wgpu"))]
impl WorkloadFactory for GuardedCubeModel {
    fn accepts(&self, task: &Task, treatment: &QuantConfig) -> Result<(), String> {
        if let Task::Model(problem) = task {
            let crate::Layout { input: (m, _), linears, .. } = problem.layout();
            for (n, k) in linears {
                let shape = LinearShape { m: m as usize, k: k as usize, n: n as usize };
                treatment
                    .check_packed_gemm::<GpuRuntime>(shape)
                    .map_err(|reason| format!("no CubeCL GEMM kernel: {reason}"))?;
            }
        }
        self.0.accepts(task, treatment)
    }

    fn open(&self, opening: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
        self.0.open(opening)
    }
}

/// Factory of a backend that is not part of this build; supports nothing.
pub(super) struct MissingBackend {
    /// Cargo feature that adds the backend.
    pub feature: &'static str,
}

impl WorkloadFactory for MissingBackend {
    fn accepts(&self, _: &Task, _: &QuantConfig) -> Result<(), String> {
        Err(missing_feature(self.feature))
    }

    fn open(&self, _: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
        Err(ZooError::Unsupported(missing_feature(self.feature)))
    }
}

/// Factory of the mock device.
pub(super) struct MockFactory;

impl WorkloadFactory for MockFactory {
    fn open(&self, _: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
        Err(ZooError::Unsupported("the mock device computes nothing".into()))
    }
}
