//! Linear layer on CUDA, optionally between a layer normalization and an activation.

use super::layer::CudaLayer;
use super::layer_form::LayerForm;
use super::weight::DeviceWeight;
use super::workload::{self, ModelPass};
use crate::{Activation, Layout, Problem, Tensors, Workload, ZooError};
use calorimeter_kernels::Prologue;
use calorimeter_kernels::native::{CudaDevice, DeviceBuffer, LinearShape};
use calorimeter_recipes::QuantConfig;
use std::sync::Arc;

/// Creates the workload. With an activation, a layer normalization precedes the layer.
pub fn open(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &QuantConfig,
    activation: Option<Activation>,
    machine: Arc<CudaDevice>,
    sets: u32,
) -> Result<Box<dyn Workload>, ZooError> {
    let Layout { input: (m, k), output: (_, n), .. } = problem.layout();
    let shape = LinearShape { m: m as usize, k: k as usize, n: n as usize };
    let prologue = if activation.is_some() { Prologue::LayerNorm } else { Prologue::None };
    let form = LayerForm { prologue, activation, ..LayerForm::GEMM_ONLY };
    let layer = CudaLayer::new(&machine, treatment, form, shape)?;
    workload::open(problem, tensors, treatment, machine, sets, SingleLayer(layer))
}

/// Model of a single layer.
struct SingleLayer(CudaLayer);

impl ModelPass for SingleLayer {
    fn layers(&self) -> Vec<&CudaLayer> {
        vec![&self.0]
    }

    fn enqueue(
        &mut self,
        input: &DeviceBuffer,
        weights: &[DeviceWeight],
        output: &mut DeviceBuffer,
    ) -> Result<(), ZooError> {
        self.0.enqueue(input, &weights[0], None, output)
    }

    fn algorithm(&self) -> String {
        self.0.gemm().algorithm()
    }
}
