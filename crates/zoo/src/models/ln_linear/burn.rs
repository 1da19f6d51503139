//! `ln_linear_<activation>` by burn's operations.

use super::LnLinearModel;
use crate::normalize::{compute_in_f32, layer_norm};
use crate::{Activate, BurnModel, Forward};
use burn::tensor::{Tensor, backend::Backend};
use calorimeter_recipes::Linear;
use calorimeter_shapes::Shape;

impl BurnModel for LnLinearModel {
    fn forward<B: Backend>(&self, _: Shape, linears: Vec<Box<dyn Linear<B>>>, input: Tensor<B, 2>) -> Forward<B> {
        let activation = self.0;
        Box::new(move || activation.apply(linears[0].forward(compute_in_f32(input.clone(), layer_norm))))
    }
}
