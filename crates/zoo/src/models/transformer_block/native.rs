//! `transformer_block` on CUDA: four linear layers with fused prologues.

use super::{HEADS, TOKENS, TransformerBlockModel};
use crate::native::workload::{self, ModelPass};
use crate::{Activation, Layout, NativeModel, Problem, Tensors, Workload, ZooError};
use calorimeter_kernels::native::{CudaDevice, DeviceBuffer, LayerPlan, PrepackedWeight, SHORT_ATTENTION_TOKENS};
use calorimeter_kernels::{LayerSpec, LinearShape, Prologue};
use calorimeter_recipes::QuantConfig;
use std::sync::Arc;

/// The four linear layers and the buffers between them; attention is the prologue of the second.
struct TransformerBlockPass {
    layers: [LayerPlan; 4],
    /// Queries, keys and values, concatenated along the columns.
    qkv: DeviceBuffer,
    /// Attention output plus residual.
    attended: DeviceBuffer,
    hidden: DeviceBuffer,
}

impl NativeModel for TransformerBlockModel {
    fn open(
        &self,
        problem: &Problem,
        tensors: &Tensors,
        treatment: &QuantConfig,
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let Layout { input: (rows, k), linears, .. } = problem.layout();
        let (rows, k) = (rows as usize, k as usize);
        let plain = treatment.layer_spec(rows);
        let normalized = LayerSpec { prologue: Prologue::RmsNorm, ..plain };
        // Attention and GELU are prologues of the layers behind them: the kernels that quantize inputs apply them on
        // the fly.
        let attended = Prologue::ShortAttention { heads: HEADS as usize };
        let activated = Prologue::Activation(Activation::Gelu);
        let added = LayerSpec { has_addend: true, ..plain };
        let specs = [
            normalized,
            LayerSpec { prologue: attended, ..added },
            normalized,
            LayerSpec { prologue: activated, ..added },
        ];
        let layers = linears.iter().zip(specs).map(|(&(n, k), spec)| {
            LayerPlan::new(&machine, &spec, LinearShape { m: rows, k: k as usize, n: n as usize })
        });
        let Ok(layers) = <[LayerPlan; 4]>::try_from(layers.collect::<Result<Vec<_>, _>>()?) else {
            unreachable!("the layout has four linear layers")
        };
        let buffer = |columns: usize| machine.allocate(rows * columns * problem.dtype.width());
        let block = TransformerBlockPass { layers, qkv: buffer(3 * k)?, attended: buffer(k)?, hidden: buffer(4 * k)? };
        workload::open(problem, tensors, treatment, machine, sets, block)
    }
}

impl ModelPass for TransformerBlockPass {
    fn layers(&self) -> Vec<&LayerPlan> {
        self.layers.iter().collect()
    }

    fn enqueue(
        &mut self,
        input: &DeviceBuffer,
        weights: &[PrepackedWeight],
        output: &mut DeviceBuffer,
    ) -> Result<(), ZooError> {
        let Self { layers: [to_qkv, project, up, down], qkv, attended, hidden } = self;
        to_qkv.enqueue(input, &weights[0], None, qkv)?;
        project.enqueue(qkv, &weights[1], Some(input), attended)?;
        up.enqueue(attended, &weights[2], None, hidden)?;
        Ok(down.enqueue(hidden, &weights[3], Some(attended), output)?)
    }

    fn algorithm(&self) -> String {
        self.layers.each_ref().map(LayerPlan::algorithm).join("; then ")
    }
}

const _: () = assert!(TOKENS as usize == SHORT_ATTENTION_TOKENS);
