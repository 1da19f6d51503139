//! What torchao's files call the keys and recipes of ours.

mod aliases;
mod recipes;

pub use aliases::ALIASES;
pub use recipes::RECIPES;
