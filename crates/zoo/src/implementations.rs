//! Traits by which operators and models are implemented, one for each way to run them.

use crate::{Definition, Forward, Operation, Pass, Problem, Spec, TensorValue, Tensors, Workload, ZooError};
#[cfg(feature = "native")]
use crate::{Matrix, native::NativePass};
use burn::tensor::{Tensor, backend::Backend};
#[cfg(feature = "native")]
use calorimeter_kernels::native::CudaDevice;
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;
use calorimeter_recipes::{Linear, QuantConfig};
use calorimeter_shapes::Shape;
#[cfg(feature = "native")]
use std::sync::Arc;

/// Operator implemented with burn operations, on any backend.
pub trait BurnPass: Operation {
    /// Builds the pass with one kernel per operation, unless the backend fuses them.
    fn pass<B: QuantBackend + Float8Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B>;

    /// Builds the pass for `fused`: algebraically simplified, and fused by the backend where possible.
    fn fused_pass<B: QuantBackend + Float8Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        self.pass(spec, inputs)
    }
}

/// Operator implemented with a CubeCL kernel on burn tensors.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub trait CubePass: Operation {
    /// Builds the pass; the error names unsupported operands.
    fn pass<R: burn_cubecl::CubeRuntime>(
        &self,
        spec: &Spec,
        inputs: Vec<TensorValue<crate::CubeOf<R>>>,
    ) -> Result<Pass<crate::CubeOf<R>>, ZooError>;
}

/// Operator implemented with a CubeCL kernel. Empty in builds without CubeCL.
#[cfg(not(any(feature = "cuda", feature = "wgpu")))]
pub trait CubePass: Operation {}

#[cfg(not(any(feature = "cuda", feature = "wgpu")))]
impl<O: Operation> CubePass for O {}

/// Operator implemented with CUDA libraries and kernels, without burn.
///
/// Implemented for every [`NativePlanner`], and directly by operators that need more than a planned pass, such as input
/// values, host memory or several devices.
#[cfg(feature = "native")]
pub trait NativeOpen: Operation {
    /// Uploads the inputs of each buffer set, rotated by [`Operation::set_rotation`]. Launches rotate through the sets.
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError>;
}

/// Operator whose CUDA pass is planned from dtype and size alone and runs on one device.
#[cfg(feature = "native")]
pub trait NativePlanner: Operation {
    /// Selects and compiles the kernels of the pass; the error names what is unsupported.
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError>;
}

#[cfg(feature = "native")]
impl<O: NativePlanner> NativeOpen for O {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        self.plan(&machine, spec)?.open(self, spec, inputs, machine, sets)
    }
}

/// Operator implemented with CUDA libraries. Empty in builds without CUDA.
#[cfg(not(feature = "native"))]
pub trait NativeOpen: Operation {}

#[cfg(not(feature = "native"))]
impl<O: Operation> NativeOpen for O {}

/// Model implemented with burn operations, on any backend.
pub trait BurnModel: Definition {
    /// Builds the forward pass from layers and input on a device.
    fn forward<B: Backend>(&self, shape: Shape, linears: Vec<Box<dyn Linear<B>>>, input: Tensor<B, 2>) -> Forward<B>;
}

/// Model implemented with CUDA libraries and kernels, without burn. Weights are float, or packed where a kernel exists.
#[cfg(feature = "native")]
pub trait NativeModel: Definition {
    /// Uploads the tensors once per buffer set. Launches rotate through the sets.
    fn open(
        &self,
        problem: &Problem,
        tensors: &Tensors,
        treatment: &QuantConfig,
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError>;
}

/// Model implemented with CUDA libraries. Empty in builds without CUDA.
#[cfg(not(feature = "native"))]
pub trait NativeModel: Definition {}

#[cfg(not(feature = "native"))]
impl<D: Definition> NativeModel for D {}

/// Model implemented with CPU kernels, in memory that is reused by all launches.
pub trait HostModel: Definition {
    /// Checks size, dtype and treatment; the error names what the kernels support.
    fn accepts(&self, problem: &Problem, treatment: &QuantConfig) -> Result<(), String>;

    /// Copies the tensors of each buffer set, with weights as the treatment stores them. Launches rotate through the
    /// sets.
    fn open(
        &self,
        problem: &Problem,
        tensors: &Tensors,
        treatment: &QuantConfig,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError>;
}
