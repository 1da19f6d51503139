//! Which computation is measured: models as workloads, each with its FLOPs, its least traffic and a reference.
//!
//! A [`Problem`] is a model at a shape in a dtype with seeded tensors; [`open`] makes it runnable with a recipe, in an
//! implementation, on a device; the [`gate`] says whether what it computes is right.
//!
//! ```
//! use calorimeter_recipes::{Dtype, Recipe};
//! use calorimeter_shapes::Shape;
//! use calorimeter_zoo::{Device, Implementation, Machines, Problem, Setup, open};
//!
//! let problem = Problem { model: "ln_linear_gelu".parse()?, shape: Shape::new(8, 32, 16)?, dtype: Dtype::F32, seed: 42 };
//! let tensors = problem.tensors();
//! let int8wo = "int8wo".parse::<Recipe>()?.treatment(problem.dtype, None)?;
//! let setup = Setup { implementation: Implementation::Eager, device: Device::Cpu, sets: 1 };
//! let mut workload = open(&problem, &tensors, &int8wo, setup, &mut Machines::default())?;
//! let reference = problem.reference(&tensors, &int8wo)?;
//! let judged = problem.judge(&int8wo, &workload.output()?, &reference, workload.may_use_tf32())?;
//! println!("{} FLOP, relative error {:.1e}", problem.flops(), judged.rel_l2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod backends;
pub mod gate;
pub mod models;
pub mod ops;

mod activation;
mod burn_workload;
mod error;
mod matrix;
mod model;
#[cfg(feature = "cuda")]
mod native_numbers;
#[cfg(feature = "cuda")]
mod native_operator;
#[cfg(feature = "cuda")]
mod native_workload;
mod normalise;
mod operand;
mod operator;
mod operator_problem;
mod problem;
mod reference;
mod setup;
mod support;
mod task;
mod value;
mod workload;

pub use activation::Activation;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub use backends::CubeOf;
pub use backends::{Machines, open, open_operator};
pub use calorimeter_case::{Counts, Device, DeviceKind, FusionModel, Implementation, Suite};
pub use error::ZooError;
pub use matrix::Matrix;
pub use model::{Definition, Forward, Layout, Model, ModelInfo};
pub use operand::{Fill, Operand, Slot};
pub use operator::{Operation, Operator, OperatorInfo, Spec};
pub use operator_problem::OperatorProblem;
pub use problem::{Problem, Tensors};
pub use reference::{ExactLinear, Reference, Sample};
pub use setup::Setup;
pub use support::support;
pub use task::{Inputs, Subject, Task};
pub use value::{Pass, Value};
pub use workload::{Output, Workload};
