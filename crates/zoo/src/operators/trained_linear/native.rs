//! Training passes on CUDA: float8 kernels for bf16 under a training recipe, otherwise cuBLASLt; and the optimizer
//! kernel.

use super::native_layer::{LayerGradients, NativeLayer};
use super::{PassInput, PassOutput, TrainedLinear, optimizers};
use crate::native::{BufferSet, NativePass};
use crate::operators::native_plans;
use crate::{NativePlanner, Spec, ZooError, parts};
use calorimeter_kernels::native::{CudaDevice, CudaKernel, LinearShape, NativeError, OptimizerRule, TrainingGemm};
use std::sync::Arc;

impl NativePlanner for TrainedLinear {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let (pass, shape) = (*self, native_plans::shape(spec));
        let LinearShape { k, n, .. } = shape;
        let matmuls = pass.matmuls();
        let mut layer = if matmuls.is_empty() { None } else { Some(NativeLayer::new(device, spec, shape, matmuls)?) };
        let update = pass.optimizer_step(spec, device, n * k)?;
        let kernels = [layer.as_ref().map(NativeLayer::algorithm), update.as_ref().map(CudaKernel::algorithm)];
        // Weight gradient of a whole step: an intermediate, not an output.
        let has_intermediate = layer.is_some() && update.is_some();
        let between = if has_intermediate { vec![n * k * spec.dtype().width()] } else { Vec::new() };
        let kernels = kernels.into_iter().flatten().collect();
        let device = device.clone();
        let begin = move |part| parts::begin(part, || Ok(device.synchronize()?));
        let enqueue = move |BufferSet { inputs, scratch: between, outputs }: &mut BufferSet| {
            let find = |input: PassInput| {
                pass.pass_inputs().iter().position(|other| *other == input).map(|index| &inputs[index])
            };
            let get = |input| find(input).expect("the pass has this input");
            let mut outputs = outputs.iter_mut();
            if let Some(layer) = &mut layer {
                let (input, weight) = (get(PassInput::Input), get(PassInput::Weight));
                if pass.pass_outputs().contains(&PassOutput::Output) {
                    begin(parts::FORWARD);
                    layer.forward(input, weight, None, outputs.next().expect(OUTPUT_IS_DECLARED))?;
                }
                if let Some(gradient) = find(PassInput::GradOutput) {
                    let grad_input = outputs.next().expect(OUTPUT_IS_DECLARED);
                    let grad_weight = between.first_mut().or_else(|| outputs.next()).expect(OUTPUT_IS_DECLARED);
                    begin(parts::BACKWARD);
                    layer.backward(
                        gradient,
                        input,
                        weight,
                        LayerGradients { input: (grad_input, None), weight: grad_weight },
                    )?;
                }
            }
            let Some(update) = &update else { return Ok(()) };
            begin(parts::OPTIMIZER);
            let gradient = find(PassInput::GradWeight).or(between.first());
            let read = [find(PassInput::Weight), gradient, find(PassInput::Moment(0)), find(PassInput::Moment(1))];
            update.enqueue(read.into_iter().flatten(), outputs)
        };
        Ok(NativePass::new(kernels, between, enqueue))
    }
}

const OUTPUT_IS_DECLARED: &str = "every output of the pass is declared";

impl TrainedLinear {
    /// Plans the optimizer step for `weights` weights; `None` for passes without an optimizer.
    pub fn optimizer_step(
        self,
        spec: &Spec,
        device: &Arc<CudaDevice>,
        weights: usize,
    ) -> Result<Option<CudaKernel>, NativeError> {
        let learning_rate = optimizers::LEARNING_RATE;
        let rule = match self {
            Self::Adamw | Self::AdamwStep => OptimizerRule::Adamw(optimizers::adamw_settings()),
            Self::Sgd | Self::SgdStep => OptimizerRule::Sgd { learning_rate },
            Self::Forward | Self::Backward | Self::ForwardBackward => return Ok(None),
        };
        CudaKernel::optimizer_step(device, spec.dtype(), rule, weights).map(Some)
    }

    /// Matmuls of the pass.
    pub fn matmuls(self) -> &'static [TrainingGemm] {
        use TrainingGemm::{GradInput, GradWeight, Output};
        match self {
            Self::Forward => &[Output],
            Self::Backward => &[GradInput, GradWeight],
            Self::ForwardBackward | Self::AdamwStep | Self::SgdStep => &[Output, GradInput, GradWeight],
            Self::Adamw | Self::Sgd => &[],
        }
    }
}
