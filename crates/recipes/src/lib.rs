//! Which arithmetic a model runs in: recipe names, their numerics on plain slices, and layers for burn.
//!
//! A [`Recipe`] is parsed from the name that torchao's users know, exactly and never by substring; it quantises a
//! [`Weight`] on the host, and makes a [`Linear`] layer for any burn backend.
//!
//! ```
//! use calorimeter_recipes::{Dtype, Recipe, Weight};
//!
//! let recipe: Recipe = "int8wo".parse()?;
//! assert_eq!(recipe.to_string(), "int8wo");
//! assert!("int8w0".parse::<Recipe>().unwrap_err().to_string().contains("did you mean \"int8wo\""));
//!
//! let weight = Weight::new(2, 4, vec![63.0, -127.5, 32.4, 0.0, 0.1, 0.2, 0.3, 0.4], Dtype::F32);
//! let quantised = recipe.treatment(Dtype::F32, None)?.quantise(&weight)?.expect("int8wo quantises weights");
//! assert_eq!(quantised.codes()[..4].iter().map(|&code| code as i8).collect::<Vec<_>>(), [63, -128, 32, 0]);
//! # Ok::<(), calorimeter_recipes::RecipeError>(())
//! ```

#[cfg_attr(feature = "cube", allow(missing_docs, reason = "CubeCL adds an undocumented twin to each function"))]
pub mod scalar;

pub mod device;
pub mod format;
pub mod module;
pub mod packing;
pub mod quantise;
pub mod schemes;
pub mod stored;

mod accuracy;
mod block_sparse;
mod dispatch;
mod dtype;
mod element;
mod error;
mod hqq;
mod layer;
mod linear;
mod names;
mod pairing;
mod prune;
mod qqq;
mod quantiser;
mod recipe;
mod registry;
mod scheme;
mod sparsity;
mod treatment;
mod weight;

pub use accuracy::{Accuracy, sqnr};
pub use calorimeter_case::{Dtype, Element, Name, UnknownName};
pub use dtype::FloatType;
pub use element::Codes;
pub use error::RecipeError;
pub use linear::Linear;
pub use module::{QuantLinear, quantise};
pub use pairing::{Variant, pair};
pub use quantiser::Quantiser;
pub use recipe::{Recipe, RecipeInfo};
pub use scheme::{Family, Scheme};
pub use sparsity::Sparsity;
pub use treatment::{Prepared, Products, Treatment};
pub use weight::Weight;
