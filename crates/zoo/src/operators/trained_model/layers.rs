//! Matmuls of trained linear layers by burn, as a training recipe casts them.

use burn::tensor::{Tensor, TensorPrimitive};
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::{self, Float8Backend, Float8Training};

/// Linear layers under a training recipe; `None` multiplies in the dtype of the model.
#[derive(Debug, Clone, Copy)]
pub struct TrainedLayers(pub Option<Float8Training>);

impl TrainedLayers {
    /// Output; differentiable on an autodiff backend.
    pub fn output<B: Float8Backend>(self, input: Tensor<B, 2>, weight: &Tensor<B, 2>) -> Tensor<B, 2> {
        let weight = weight.clone().transpose();
        let Some(training) = self.0 else { return input.matmul(weight) };
        let [input, weight] = [input, weight].map(|tensor| tensor.into_primitive().tensor());
        Tensor::from_primitive(TensorPrimitive::Float(B::float8_linear(input, weight, training)))
    }

    /// Input gradient.
    pub fn grad_input<B: QuantBackend + Float8Backend>(
        self,
        gradient: Tensor<B, 2>,
        weight: &Tensor<B, 2>,
    ) -> Tensor<B, 2> {
        training::grad_input(gradient, weight.clone().transpose(), self.training())
    }

    /// Weight gradient.
    pub fn grad_weight<B: QuantBackend + Float8Backend>(
        self,
        gradient: Tensor<B, 2>,
        input: Tensor<B, 2>,
    ) -> Tensor<B, 2> {
        training::grad_weight(gradient, input, self.training()).transpose()
    }

    fn training(self) -> Float8Training {
        self.0.unwrap_or(Float8Training::unquantized())
    }
}
