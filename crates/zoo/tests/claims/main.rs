//! What the zoo computes is what its references say, on every device that is here.

mod kernel_bugs;
mod models;
mod operators;
