//! `linear`: Y = X Wᵀ, one linear layer without bias. X is `[m, k]`, W is `[n, k]`, Y is `[m, n]`.

mod burn;
mod host;
#[cfg(feature = "native")]
mod native;

use crate::gate::Projection;
use crate::registry::table::Zoo;
use crate::{Definition, ExactLinear, Layout, Matrix, OutputSample};
use calorimeter_shapes::Shape;

/// Linear layer without bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinearModel;

/// Registers `linear` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.models([LinearModel]).burn().cube().native().host();
}

impl Definition for LinearModel {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn description(&self) -> &'static str {
        "one linear layer without bias"
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

    fn sample(&self, shape: Shape) -> OutputSample {
        OutputSample::for_matmul(shape)
    }

    fn reference(&self, _: Shape, input: &Matrix, linears: &[ExactLinear], sample: &OutputSample) -> Vec<f64> {
        linears[0].sampled_output(sample, input.rows, |row| input.exact_row(row))
    }

    fn projection(&self, input: &Matrix, linears: &[ExactLinear]) -> Option<Projection> {
        Some(linears[0].projection(input))
    }
}
