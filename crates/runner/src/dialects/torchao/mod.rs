//! Names of keys and recipes in torchao files.

mod aliases;
mod recipes;

pub use aliases::ALIASES;
pub use recipes::RECIPES;
