//! Names of keys and recipes in torchao files.

mod aliases;
mod recipes;

pub(super) use aliases::ALIASES;
pub(super) use recipes::RECIPES;
