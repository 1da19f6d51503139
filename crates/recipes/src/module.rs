//! Quantization of the linear layers of a burn module.
//!
//! The type of a field is fixed, so a layer to be quantized is declared as a [`QuantLinear`]. It is built from a
//! [`burn::nn::Linear`], behaves and is saved like one, and [`quantize`] replaces its weight in place.
//!
//! ```
//! use burn::module::Module;
//! use burn::nn::{Gelu, LinearConfig};
//! use burn::tensor::{Tensor, backend::Backend};
//! use calorimeter_recipes::{QuantLinear, Recipe, RecipeError, device::QuantBackend, quantize};
//!
//! #[derive(Module, Debug)]
//! struct Mlp<B: Backend> {
//!     up: QuantLinear<B>,
//!     down: QuantLinear<B>,
//! }
//!
//! impl<B: Backend> Mlp<B> {
//!     fn new(device: &B::Device) -> Self {
//!         let linear = |k, n| LinearConfig::new(k, n).init(device).into();
//!         Self { up: linear(64, 256), down: linear(256, 64) }
//!     }
//!
//!     fn forward(&self, input: Tensor<B, 3>) -> Tensor<B, 3> {
//!         self.down.forward(Gelu::new().forward(self.up.forward(input)))
//!     }
//! }
//!
//! fn small<B: QuantBackend>(device: &B::Device) -> Result<Mlp<B>, RecipeError> {
//!     let recipe: Recipe = "int8wo".parse()?;
//!     let (mlp, report) = quantize(Mlp::<B>::new(device), &recipe, |path, [n, k]| path != "head" && n * k > 1024)?;
//!     eprintln!("{report}"); // outcome of every linear layer, with bytes before and after
//!     Ok(mlp)
//! }
//! ```

mod layer;
mod report;
mod walk;

pub use layer::QuantLinear;
pub use report::{LayerOutcome, LayerReport, ModuleReport};
pub use walk::{convert_to_float8_training, quantize};
