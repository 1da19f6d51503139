//! Linear layer on CUDA, optionally between a layer normalization and an activation.

use super::workload::{self, ModelPass};
use crate::{Activation, Layout, Problem, Tensors, Workload, ZooError};
use calorimeter_kernels::layer::{Rejection, candidates};
use calorimeter_kernels::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, LAYER_KERNELS, LayerPlan, PrepackedWeight,
};
use calorimeter_kernels::{LayerSpec, LinearShape, Prologue};
use calorimeter_recipes::{Dtype, QuantConfig, Recipe, Sparsity};
use std::sync::Arc;

/// Checks that a kernel exists for each linear layer of a model on Hopper; the error lists supported recipes.
pub fn check_support(problem: &Problem, treatment: &QuantConfig) -> Result<(), String> {
    let Layout { input: (m, _), linears, .. } = problem.layout();
    let shapes = linears.into_iter().map(|(n, k)| LinearShape { m: m as usize, k: k as usize, n: n as usize });
    let reason = match treatment.training {
        Some(_) => Some(Rejection::NoKernel),
        None => shapes.into_iter().find_map(|shape| check_layer(treatment, shape).err()),
    };
    match (reason, treatment.sparsity) {
        (None, _) => Ok(()),
        (Some(Rejection::NoKernel | Rejection::Spec(_)), None) => {
            Err("`native` has no kernel for this recipe; `eager` runs it".into())
        }
        (Some(Rejection::NoKernel | Rejection::Spec(_)), Some(_)) => Err(format!(
            "`native` supports 2:4 sparsity with {} and block sparsity with {}; `eager` runs it",
            supported_recipes(problem.dtype, Sparsity::SemiStructured),
            supported_recipes(problem.dtype, Sparsity::DEFAULT_BLOCK),
        )),
        (Some(reason), _) => Err(format!("`native` cannot compute this layer: {reason}; `eager` runs it")),
    }
}

/// Checks that a kernel computes a layer on Hopper.
fn check_layer(treatment: &QuantConfig, shape: LinearShape) -> Result<(), Rejection> {
    let spec = treatment.layer_spec(shape.m);
    candidates(LAYER_KERNELS, &spec, shape, &ComputeCapability::HOPPER).map(|_| ())
}

/// Names of the typical recipes that have a kernel with this sparsity, comma-separated.
fn supported_recipes(dtype: Dtype, sparsity: Sparsity) -> String {
    let typical = LinearShape { m: 2, k: 4096, n: 4096 };
    let has_kernel = |recipe: &Recipe| {
        let treatment = recipe.quant_config(dtype, Some(sparsity));
        treatment.is_ok_and(|treatment| check_layer(&treatment, typical).is_ok())
    };
    let names: Vec<String> =
        Recipe::examples().into_iter().filter(has_kernel).map(|recipe| recipe.to_string()).collect();
    names.join(", ")
}

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
    let spec = LayerSpec { prologue, activation, ..treatment.layer_spec(shape.m) };
    let layer = LayerPlan::new(&machine, &spec, shape)?;
    workload::open(problem, tensors, treatment, machine, sets, SingleLayer(layer))
}

/// Model of a single layer.
struct SingleLayer(LayerPlan);

impl ModelPass for SingleLayer {
    fn layers(&self) -> Vec<&LayerPlan> {
        vec![&self.0]
    }

    fn enqueue(
        &mut self,
        input: &DeviceBuffer,
        weights: &[PrepackedWeight],
        output: &mut DeviceBuffer,
    ) -> Result<(), ZooError> {
        Ok(self.0.enqueue(input, &weights[0], None, output)?)
    }

    fn algorithm(&self) -> String {
        self.0.algorithm()
    }
}
