//! `linear`: one linear layer without bias, `[m, k] -> [m, n]`.

use crate::{Definition, ExactLinear, Forward, Layout, Matrix, Sample};
use burn::tensor::{Tensor, backend::Backend};
use calorimeter_recipes::Linear;
use calorimeter_shapes::Shape;
use std::fmt;

/// One linear layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinearModel;

impl fmt::Display for LinearModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("linear")
    }
}

impl Definition for LinearModel {
    const ABOUT: &'static str = "one linear layer without bias";

    fn names() -> Vec<String> {
        vec!["linear".into()]
    }

    fn parse(name: &str) -> Option<Self> {
        (name == "linear").then_some(Self)
    }

    fn layout(&self, shape: Shape) -> Layout {
        let (m, k, n) = (shape.m(), shape.k(), shape.n());
        Layout { input: (m, k), output: (m, n), linears: vec![(n, k)], intermediate: 0 }
    }

    fn flops(&self, shape: Shape) -> u64 {
        2 * shape.m() * shape.k() * shape.n()
    }

    fn roundings(&self) -> u32 {
        0
    }

    fn forward<B: Backend>(&self, _: Shape, linears: Vec<Box<dyn Linear<B>>>, input: Tensor<B, 2>) -> Forward<B> {
        Box::new(move || linears[0].forward(input.clone()))
    }

    fn sample(&self, shape: Shape) -> Sample {
        Sample::of_product(shape)
    }

    fn reference(&self, _: Shape, input: &Matrix, linears: &[ExactLinear], sample: &Sample) -> Vec<f64> {
        linears[0].products(sample, input.rows, |row| input.exact_row(row))
    }
}
