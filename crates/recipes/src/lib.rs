//! Which arithmetic a model runs in: recipe names, their numerics on plain slices, and layers for burn.
//!
//! A [`Recipe`] is parsed from the name that torchao's users know, exactly and never by substring; it quantises a
//! [`Weight`] on the host, and makes a [`Linear`] layer for any burn backend.
//!
//! ```
//! use calorimeter_recipes::{Dtype, Recipe, Scheme, Weight, int8wo::Int8WeightOnly};
//!
//! let recipe: Recipe = "int8wo".parse()?;
//! assert_eq!(recipe.to_string(), "int8wo");
//! assert!("int8w0".parse::<Recipe>().unwrap_err().to_string().contains("did you mean \"int8wo\""));
//!
//! let weight = Weight::new(2, 4, vec![63.0, -127.5, 32.4, 0.0, 0.1, 0.2, 0.3, 0.4], Dtype::F32);
//! let quantised = Int8WeightOnly.quantise(&weight);
//! assert_eq!(&quantised.values[..4], &[63, -128, 32, 0]);
//! # Ok::<(), calorimeter_recipes::RecipeError>(())
//! ```

pub mod baseline;
pub mod int8wo;

mod dtype;
mod error;
mod linear;
mod names;
mod pairing;
mod recipe;
mod reserved;
mod scheme;
mod sparsity;
mod weight;

pub use dtype::Dtype;
pub use error::RecipeError;
pub use linear::Linear;
pub use pairing::pair;
pub use recipe::{Recipe, RecipeInfo};
pub use reserved::Reserved;
pub use scheme::Scheme;
pub use sparsity::Sparsity;
pub use weight::Weight;
