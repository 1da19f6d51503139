//! Guarantees of the crate: the arithmetic of torchao and ggml bit for bit, identical bits on every device, and small memory.

mod casts;
#[cfg(feature = "cpu")]
mod devices;
mod ggml;
mod golden;
mod golden_file;
#[cfg(feature = "full")]
mod gpus;
#[cfg(feature = "cpu")]
mod memory;
#[cfg(feature = "cpu")]
mod module;
#[cfg(feature = "cpu")]
mod outputs;
mod properties;
#[cfg(all(feature = "cpu", feature = "training"))]
mod training;
