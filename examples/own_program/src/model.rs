//! `perceptron`: a linear layer, a ReLU, and a linear layer back to the width of the input.

use calorimeter_recipes::Linear;
use calorimeter_shapes::Shape;
use calorimeter_zoo::burn::tensor::{Tensor, activation::relu, backend::Backend};
use calorimeter_zoo::{BurnModel, Definition, ExactLinear, Forward, Layout, Matrix, OutputSample};

/// Two linear layers with a ReLU.
#[derive(Debug)]
pub struct Perceptron;

impl Definition for Perceptron {
    fn name(&self) -> &'static str {
        "perceptron"
    }

    fn description(&self) -> &'static str {
        "two linear layers with a ReLU between them"
    }

    fn layout(&self, shape: Shape) -> Layout {
        let (m, k, n) = (shape.m(), shape.k(), shape.n());
        Layout { input: (m, k), output: (m, k), linears: vec![(n, k), (k, n)], intermediate: 2 * m * n }
    }

    fn flops(&self, shape: Shape) -> u64 {
        4 * shape.m() * shape.k() * shape.n()
    }

    fn roundings(&self) -> u32 {
        2
    }

    fn sample(&self, shape: Shape) -> OutputSample {
        OutputSample { rows: (0..shape.m() as usize).collect(), cols: (0..shape.k() as usize).collect() }
    }

    fn reference(&self, shape: Shape, input: &Matrix, linears: &[ExactLinear], _: &OutputSample) -> Vec<f64> {
        let rows: Vec<f64> = (0..shape.m() as usize).flat_map(|row| input.exact_row(row)).collect();
        let hidden: Vec<f64> = linears[0].whole_output(&rows).into_iter().map(|x| x.max(0.0)).collect();
        linears[1].whole_output(&hidden)
    }
}

impl BurnModel for Perceptron {
    fn forward<B: Backend>(&self, _: Shape, linears: Vec<Box<dyn Linear<B>>>, input: Tensor<B, 2>) -> Forward<B> {
        Box::new(move || linears[1].forward(relu(linears[0].forward(input.clone()))))
    }
}
