#![doc = include_str!("../README.md")]

// Alias of this crate, so that code can move between crates without changes to its paths.
extern crate self as calorimeter_shapes;

/// Maximum number of shapes or grid points of one source, range or grid.
pub const MAX_SHAPES: u64 = 1_000_000;

/// Maximum number of axes of a grid.
pub(crate) const MAX_AXES: usize = 16;

mod entry;
mod error;
mod generator;
mod generators;
mod grid;
mod number;
mod parameter;
mod parse;
mod range;
mod registry;
mod schema;
mod shape;
mod source;

pub use calorimeter_case::Axes;
pub use entry::ShapeEntry;
pub use error::ShapeError;
pub use generator::Generator;
pub use grid::{Axis, Grid};
pub use parameter::{GeneratorSettings, MAX_POWER, Parameter, ParameterKind, SettingValue};
pub use range::{RangeStep, SizeValues, ValueRange};
pub use registry::{all_generators, register};
pub use shape::{MAX_SIZE, NamedShape, Shape};
pub use source::ShapeSource;
