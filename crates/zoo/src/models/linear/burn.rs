//! `linear` by burn's operations.

use super::LinearModel;
use crate::{BurnModel, Forward};
use burn::tensor::{Tensor, backend::Backend};
use calorimeter_recipes::Linear;
use calorimeter_shapes::Shape;

impl BurnModel for LinearModel {
    fn forward<B: Backend>(&self, _: Shape, linears: Vec<Box<dyn Linear<B>>>, input: Tensor<B, 2>) -> Forward<B> {
        Box::new(move || linears[0].forward(input.clone()))
    }
}
