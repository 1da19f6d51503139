//! By CUDA's libraries and kernels of ours.

use super::{HEADS, TOKENS, TransformerBlock};
use crate::native::layer::Layer;
use crate::native::layer_form::LayerForm;
use crate::native::weight::DeviceWeight;
use crate::native::workload::{self, ModelPass};
use crate::{Activation, Layout, NativeModel, Problem, Tensors, Workload, ZooError};
use calorimeter_kernels::Prologue;
use calorimeter_kernels::native::{Buffer, LinearShape, Machine, ShortAttention};
use calorimeter_recipes::Treatment;
use std::sync::Arc;

/// The four layers with attention behind the first, and what they leave for each other.
struct Block {
    layers: [Layer; 4],
    attention: ShortAttention,
    /// Queries, keys and values side by side.
    qkv: Buffer,
    mixed: Buffer,
    /// The input with attention added.
    attended: Buffer,
    hidden: Buffer,
}

impl NativeModel for TransformerBlock {
    fn open(
        &self,
        problem: &Problem,
        tensors: &Tensors,
        treatment: &Treatment,
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let Layout { input: (rows, k), linears, .. } = problem.layout();
        let (rows, k, heads) = (rows as usize, k as usize, HEADS as usize);
        let normalised = LayerForm { prologue: Prologue::RmsNorm, ..LayerForm::PRODUCT };
        // GELU belongs to the layer behind it: what makes codes of its input applies it on the way.
        let activated = Prologue::Activation(Activation::Gelu);
        let added = LayerForm { added: true, ..LayerForm::PRODUCT };
        let forms = [normalised, added, normalised, LayerForm { prologue: activated, ..added }];
        let layers = linears.iter().zip(forms).map(|(&(n, k), form)| {
            Layer::new(&machine, treatment, form, LinearShape { m: rows, k: k as usize, n: n as usize })
        });
        let Ok(layers) = <[Layer; 4]>::try_from(layers.collect::<Result<Vec<_>, _>>()?) else {
            unreachable!("the layout has four linear layers")
        };
        let buffer = |columns: usize| machine.allocate(rows * columns * problem.dtype.width());
        let block = Block {
            layers,
            attention: ShortAttention::new(&machine, problem.dtype, rows / TOKENS as usize, heads, k / heads)?,
            qkv: buffer(3 * k)?,
            mixed: buffer(k)?,
            attended: buffer(k)?,
            hidden: buffer(4 * k)?,
        };
        workload::open(problem, tensors, treatment, machine, sets, block)
    }
}

impl ModelPass for Block {
    fn layers(&self) -> Vec<&Layer> {
        self.layers.iter().collect()
    }

    fn enqueue(&mut self, input: &Buffer, weights: &[DeviceWeight], output: &mut Buffer) -> Result<(), ZooError> {
        let Self { layers: [to_qkv, project, up, down], attention, qkv, mixed, attended, hidden } = self;
        to_qkv.enqueue(input, &weights[0], None, qkv)?;
        attention.enqueue(qkv, mixed)?;
        project.enqueue(mixed, &weights[1], Some(input), attended)?;
        up.enqueue(attended, &weights[2], None, hidden)?;
        down.enqueue(hidden, &weights[3], Some(attended), output)
    }

    fn algorithm(&self) -> String {
        let [to_qkv, project, up, down] = self.layers.each_ref().map(|layer| layer.product().algorithm());
        format!("{to_qkv}; then {}; then {project}; then {up}; then {down}", self.attention.algorithm())
    }
}

const _: () = assert!(TOKENS as usize == ShortAttention::TOKENS);
