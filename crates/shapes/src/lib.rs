#![doc = include_str!("../README.md")]

// What is written in another crate may move into this one, and back: it has the same name in both.
extern crate self as calorimeter_shapes;

/// The most shapes or grid points that one source, range or grid may make.
pub const MAX_SHAPES: u64 = 1_000_000;

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
pub use error::ShapeError;
pub use generator::Generator;
pub use grid::{Axis, Grid};
pub use parameter::{Kind, MAX_POWER, Parameter, Settings, Value};
pub use range::{Range, Step, Values};
pub use registry::{known, register};
pub use shape::{MAX_SIZE, NamedShape, Shape};
pub use source::ShapeSource;
