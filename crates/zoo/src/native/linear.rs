//! Linear layer on CUDA, optionally between a layer normalization and an activation.

use super::layer::Layer;
use super::layer_form::LayerForm;
use super::weight::DeviceWeight;
use super::workload::{self, ModelPass};
use crate::{Activation, Layout, Problem, Tensors, Workload, ZooError};
use calorimeter_kernels::Prologue;
use calorimeter_kernels::native::{Buffer, LinearShape, Machine};
use calorimeter_recipes::Treatment;
use std::sync::Arc;

/// Creates the workload. With an activation, a layer normalization precedes the layer.
pub fn open(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &Treatment,
    activation: Option<Activation>,
    machine: Arc<Machine>,
    sets: u32,
) -> Result<Box<dyn Workload>, ZooError> {
    let Layout { input: (m, k), output: (_, n), .. } = problem.layout();
    let shape = LinearShape { m: m as usize, k: k as usize, n: n as usize };
    let prologue = if activation.is_some() { Prologue::LayerNorm } else { Prologue::Nothing };
    let form = LayerForm { prologue, activation, ..LayerForm::PRODUCT };
    let layer = Layer::new(&machine, treatment, form, shape)?;
    workload::open(problem, tensors, treatment, machine, sets, Alone(layer))
}

/// Model of a single layer.
struct Alone(Layer);

impl ModelPass for Alone {
    fn layers(&self) -> Vec<&Layer> {
        vec![&self.0]
    }

    fn enqueue(&mut self, input: &Buffer, weights: &[DeviceWeight], output: &mut Buffer) -> Result<(), ZooError> {
        self.0.enqueue(input, &weights[0], None, output)
    }

    fn algorithm(&self) -> String {
        self.0.product().algorithm()
    }
}
