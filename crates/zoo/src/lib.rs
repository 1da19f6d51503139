#![doc = include_str!("../README.md")]
//!
//! # Models
//!
//! A [`Problem`] is a model at a shape in a dtype with seeded tensors. [`open`] creates a workload for a recipe,
//! implementation and device. The [`gate`] checks its outputs.
//!
//! ```
//! use calorimeter_recipes::{Dtype, Recipe};
//! use calorimeter_shapes::Shape;
//! use calorimeter_zoo::{Device, Implementation, NativeDevices, Problem, Setup, open};
//!
//! let problem = Problem { model: "ln_linear_gelu".parse()?, shape: Shape::new(8, 32, 16)?, dtype: Dtype::F32, seed: 42 };
//! let tensors = problem.tensors();
//! let int8wo = "int8wo".parse::<Recipe>()?.quant_config(problem.dtype, None)?;
//! let setup = Setup { implementation: Implementation::Eager, device: Device::Cpu, sets: 1 };
//! let mut workload = open(&problem, &tensors, &int8wo, setup, &mut NativeDevices::default())?;
//! let reference = problem.reference(&tensors, &int8wo)?;
//! let judged = problem.judge(&int8wo, &workload.output()?, &reference, workload.may_use_tf32())?;
//! println!("{} FLOP, relative error {:.1e}", problem.flops(), judged.rel_l2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(
    not(all(feature = "cpu", any(feature = "cuda", feature = "wgpu"))),
    allow(dead_code, reason = "a build without some backends has no use for all that they share")
)]

// Lets code moved between this crate and another refer to `calorimeter_zoo` in both.
extern crate self as calorimeter_zoo;

pub mod backends;
pub mod foreign;
pub mod gate;
pub mod models;
pub mod operators;
pub mod parts;

mod activation;
mod burn_workload;
mod check;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cube_pass;
pub mod element_bytes;
mod error;
#[allow(unsafe_code, reason = "products are of a crate that takes pointers")]
mod exact_matmul;
mod gate_data;
mod host;
mod image_layout;
mod implementations;
mod layer_table;
mod lazy_fill;
mod matrix;
mod model;
mod name_identity;
#[cfg(feature = "native")]
pub mod native;
mod normalize;
mod operand;
mod operation;
mod operator;
mod operator_problem;
mod outlier_rows;
mod output_digest;
mod problem;
mod random_matrix;
mod reference;
mod registry;
mod rotating_workload;
mod rotation_axis;
mod sample;
mod scale_factors;
mod set_rotation;
mod setup;
mod signed_sums;
mod spec;
mod stream;
mod task;
mod tensors;
mod value;
mod workload;

pub use activation::Activate;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub use backends::CubeOf;
pub use backends::{NativeDevices, open, open_operator};
/// Re-exported because the implementation traits use its types.
pub use burn;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub use burn_cubecl;
pub use calorimeter_case::{
    Activation, Device, DeviceKind, Dtype, Element, FusionModel, Implementation, NameTaken, PublishedCounts, Suite,
};
pub use check::{CheckError, check};
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub use cube_pass::{KernelInput, cube_pass, cube_pass_mixed};
pub use error::ZooError;
pub use image_layout::ImageLayout;
#[cfg(feature = "native")]
pub use implementations::NativePlanner;
pub use implementations::{BurnModel, BurnPass, CubePass, HostModel, NativeModel, NativeOpen};
pub use layer_table::{LayerChoice, LayerTableRow, TABLE_ROWS, TABLE_SIDE, layer_table};
pub use matrix::{Matrix, Values};
pub use model::{Definition, Forward, Layout, Model, ModelInfo};
pub use operand::{Fill, Operand, OutputSlot};
pub use operation::{Cost, ExactReference, Operation, Signature};
pub use operator::{Operator, OperatorInfo};
pub use operator_problem::OperatorProblem;
pub use operators::presets::Preset;
pub use output_digest::{NonFinite, OutputDigest, OutputQuery};
pub use problem::Problem;
pub use reference::{ExactLinear, Reference};
pub use registry::{
    ModelBuilder, OpenRequest, OperatorBuilder, WorkloadFactory, register_implementation, register_model,
    register_operator, support,
};
pub use rotation_axis::RotationAxis;
pub use sample::OutputSample;
pub use set_rotation::SetRotation;
pub use setup::Setup;
pub use signed_sums::SignedSums;
pub use spec::Spec;
pub use task::{Inputs, Subject, Task};
pub use tensors::Tensors;
pub use value::{Pass, TensorValue};
pub use workload::{DeviceCheck, Output, RemotePasses, Workload};
