//! The ways to run an operator or a model. What implements one of these runs that way, once it is registered so.

#[cfg(feature = "cuda")]
use crate::Matrix;
use crate::{Definition, Forward, Operation, Pass, Problem, Spec, Tensors, Value, Workload, ZooError};
use burn::tensor::{Tensor, backend::Backend};
#[cfg(feature = "cuda")]
use calorimeter_kernels::native::Machine;
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;
use calorimeter_recipes::{Linear, Treatment};
use calorimeter_shapes::Shape;
#[cfg(feature = "cuda")]
use std::sync::Arc;

/// An operator by burn's operations, on any of its backends.
pub trait BurnPass: Operation {
    /// Each operation a kernel of its own, unless the backend fuses them.
    fn pass<B: QuantBackend + Float8Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B>;

    /// The same where it is to be fused: what algebra can fold is folded, and the backend fuses what it can.
    fn fused_pass<B: QuantBackend + Float8Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        self.pass(spec, inputs)
    }
}

/// An operator by a CubeCL kernel on burn's tensors.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub trait CubePass: Operation {
    /// Its kernels; the error says what they do not take.
    fn pass<R: burn_cubecl::CubeRuntime>(
        &self,
        spec: &Spec,
        inputs: Vec<Value<crate::CubeOf<R>>>,
    ) -> Result<Pass<crate::CubeOf<R>>, ZooError>;
}

/// An operator by a CubeCL kernel: this build has no CubeCL.
#[cfg(not(any(feature = "cuda", feature = "wgpu")))]
pub trait CubePass: Operation {}

#[cfg(not(any(feature = "cuda", feature = "wgpu")))]
impl<O: Operation> CubePass for O {}

/// An operator by CUDA's libraries and kernels, without burn.
#[cfg(feature = "cuda")]
pub trait NativeOpen: Operation {
    /// Puts the inputs of each set on the device, as [`Operation::moves`] has them; launches go through the sets in turn.
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError>;
}

/// An operator by CUDA's libraries: this build has no CUDA.
#[cfg(not(feature = "cuda"))]
pub trait NativeOpen: Operation {}

#[cfg(not(feature = "cuda"))]
impl<O: Operation> NativeOpen for O {}

/// A model by burn's operations, on any of its backends.
pub trait BurnModel: Definition {
    /// The model with its layers and input on a device.
    fn forward<B: Backend>(&self, shape: Shape, linears: Vec<Box<dyn Linear<B>>>, input: Tensor<B, 2>) -> Forward<B>;
}

/// A model by CUDA's libraries and kernels, without burn: weights as they are, or packed where there is a kernel for them.
#[cfg(feature = "cuda")]
pub trait NativeModel: Definition {
    /// Puts the tensors on the device, once for each set; launches go through the sets in turn.
    fn open(
        &self,
        problem: &Problem,
        tensors: &Tensors,
        treatment: &Treatment,
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError>;
}

/// A model by CUDA's libraries: this build has no CUDA.
#[cfg(not(feature = "cuda"))]
pub trait NativeModel: Definition {}

#[cfg(not(feature = "cuda"))]
impl<D: Definition> NativeModel for D {}

/// A model by kernels of the processor, in memory that is kept from launch to launch.
pub trait HostModel: Definition {
    /// Whether its kernels take this size, these numbers and this treatment; the error says what they take.
    fn accepts(&self, problem: &Problem, treatment: &Treatment) -> Result<(), String>;

    /// Copies the tensors of each set, the weights as the treatment stores them; launches go through the sets in turn.
    fn open(
        &self,
        problem: &Problem,
        tensors: &Tensors,
        treatment: &Treatment,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError>;
}
