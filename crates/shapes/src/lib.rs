//! Which sizes to benchmark: matrix shapes by name, ranges, and grids of named axes.
//!
//! A [`ShapeSource`] is what a configuration file writes under a list of shapes. It is checked while it is read, so
//! a mistake is reported with its line and column, and it makes the same shapes in the same order every time.
//!
//! ```
//! use calorimeter_shapes::{Axis, Grid, ShapeSource};
//!
//! let yaml = "[{name: llama}, {name: decode, models: [llama3_8b], m: [1, 8]}]";
//! let sources: Vec<ShapeSource> = serde_yaml::from_str(yaml)?;
//! for source in &sources {
//!     for named in source.shapes()? {
//!         println!("{} {}", named.name, named.shape); // llama_attn.wqkv m16384-k8192-n1280
//!     }
//! }
//!
//! let grid = Grid::product([Axis::new("batch", [1, 8]), Axis::new("sequence", [512, 2048])])?;
//! assert_eq!(grid.iter().last().unwrap().to_string(), "batch8-sequence2048");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`known`] lists the generators with their parameters. A new generator is one file in `generators/` and one line in
//! `generators.rs`; one of another crate is made known with [`register`].

/// The most shapes or grid points that one source, range or grid may make.
pub const MAX_SHAPES: u64 = 1_000_000;

mod error;
mod generators;
mod grid;
mod number;
mod parameter;
mod parse;
mod range;
mod schema;
mod shape;
mod source;

pub use calorimeter_case::Axes;
pub use error::ShapeError;
pub use generators::{Generator, known, register};
pub use grid::{Axis, Grid};
pub use parameter::{Kind, MAX_POWER, Parameter, Settings, Value};
pub use range::{Range, Step, Values};
pub use shape::{MAX_SIZE, NamedShape, Shape};
pub use source::ShapeSource;
