//! Training passes of models on CUDA: the forward pass saves tensors in buffers that the backward pass reads.

use super::architecture::Architecture;
use super::{ModelInput, ModelOutput, TrainedModel};
use crate::native::{BufferSet, NativePass};
use crate::operators::trained_linear::native_layer::NativeLayer;
use crate::{NativePlanner, Spec, ZooError, parts};
use calorimeter_kernels::native::{CudaDevice, CudaKernel, DeviceBuffer, LinearShape, NativeError, TrainingGemm};
use std::sync::Arc;

/// Model with CUDA training passes.
pub trait NativeArchitecture: Architecture {
    /// Planned passes.
    type ModelPasses: NativePasses + 'static;

    /// Plans the passes with the requested matmuls of the linear layers.
    fn plan_passes(&self, plans: &PassPlanner<'_>) -> Result<Self::ModelPasses, ZooError>;
}

/// Planned forward pass, backward pass or both.
pub trait NativePasses: Send {
    /// Bytes of each buffer that the forward pass saves for the backward pass.
    fn saved_bytes(&self) -> Vec<usize>;

    /// Enqueues the forward pass.
    fn forward(
        &mut self,
        operands: &PassOperands<'_>,
        saved: &mut [DeviceBuffer],
        output: &mut DeviceBuffer,
    ) -> Result<(), NativeError>;

    /// Enqueues the backward pass for an output gradient.
    fn backward(
        &mut self,
        operands: &PassOperands<'_>,
        saved: &[DeviceBuffer],
        gradient: &DeviceBuffer,
        gradients: GradientBuffers<'_>,
    ) -> Result<(), NativeError>;

    /// Names of the planned kernels and how they were selected.
    fn kernels(&self) -> Vec<String>;
}

/// Panic message if a pass is enqueued that was not planned.
pub(super) const PASS_IS_PLANNED: &str = "only planned passes are enqueued";

/// Buffers that both passes read.
pub struct PassOperands<'a> {
    pub input: &'a DeviceBuffer,
    pub parameters: Vec<&'a DeviceBuffer>,
}

/// Destinations of the gradients of the input and of each parameter.
pub struct GradientBuffers<'a> {
    pub input: &'a mut DeviceBuffer,
    pub parameters: Vec<&'a mut DeviceBuffer>,
}

/// Device, shape and matmuls that passes are planned for.
pub struct PassPlanner<'a> {
    pub machine: &'a Arc<CudaDevice>,
    pub spec: &'a Spec,
    matmuls: &'a [TrainingGemm],
}

impl PassPlanner<'_> {
    /// Plans the requested matmuls of a linear layer for `rows` rows.
    pub fn layer(&self, rows: usize, k: usize, n: usize) -> Result<NativeLayer, ZooError> {
        NativeLayer::new(self.machine, self.spec, LinearShape { m: rows, k, n }, self.matmuls)
    }

    /// Plans the forward pass if it is requested.
    pub fn forward_plan<T>(&self, make: impl FnOnce() -> Result<T, ZooError>) -> Result<Option<T>, ZooError> {
        self.matmuls.contains(&TrainingGemm::Output).then(make).transpose()
    }

    /// Plans the backward pass if it is requested.
    pub fn backward_plan<T>(&self, make: impl FnOnce() -> Result<T, ZooError>) -> Result<Option<T>, ZooError> {
        self.matmuls.contains(&TrainingGemm::GradInput).then(make).transpose()
    }

    /// Bytes of `elements` elements in the dtype of the spec.
    pub fn bytes(&self, elements: usize) -> usize {
        elements * self.spec.dtype().width()
    }

    /// Allocates scratch memory for `elements` elements.
    pub fn scratch(&self, elements: usize) -> Result<DeviceBuffer, NativeError> {
        self.machine.allocate(self.bytes(elements))
    }
}

const OUTPUT_IS_DECLARED: &str = "every output of the pass is declared";

impl<A: NativeArchitecture> NativePlanner for TrainedModel<A> {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let (pass_inputs, pass_outputs, parameters) =
            (self.pass_inputs(spec), self.pass_outputs(spec), self.parameters(spec));
        let (count, matmuls) = (parameters.len(), self.pass.matmuls());
        let plan = |matmuls| self.model.plan_passes(&PassPlanner { machine: device, spec, matmuls });
        let mut model = if matmuls.is_empty() { None } else { Some(plan(matmuls)?) };
        let update = |parameter: &crate::Operand| {
            let elements = (parameter.rows * parameter.cols) as usize;
            Ok(self
                .pass
                .optimizer_step(spec, device, elements)?
                .map(|update| (update, elements * spec.dtype().width())))
        };
        let updates: Vec<_> = parameters.iter().map(update).collect::<Result<_, ZooError>>()?;
        let (updates, gradient_bytes): (Vec<_>, Vec<usize>) = updates.into_iter().flatten().unzip();
        let mut kernels: Vec<String> = updates.iter().map(CudaKernel::algorithm).collect();
        let mut between = Vec::new();
        if let Some(model) = &model {
            kernels = model.kernels().into_iter().chain(kernels).collect();
            between = model.saved_bytes();
        }
        let saved_count = between.len();
        // Parameter gradients of a whole step: intermediates, not outputs.
        if model.is_some() {
            between.extend(gradient_bytes);
        }
        let has_forward = pass_outputs.contains(&ModelOutput::Output);
        let before = match (has_forward, pass_inputs.contains(&ModelInput::GradOutput)) {
            (false, true) => Some(self.fill_saved_buffers(spec, device, plan(&[TrainingGemm::Output])?)?),
            _ => None,
        };
        let device = device.clone();
        let begin = move |part| parts::begin(part, || Ok(device.synchronize()?));
        let enqueue = move |BufferSet { inputs, scratch: between, outputs }: &mut BufferSet| {
            let (saved, gradients) = between.split_at_mut(saved_count);
            let find =
                |input: ModelInput| pass_inputs.iter().position(|other| *other == input).map(|index| &inputs[index]);
            let mut outputs = outputs.iter_mut();
            if let Some(model) = &mut model {
                let operands = pass_operands(&pass_inputs, inputs);
                if has_forward {
                    begin(parts::FORWARD);
                    model.forward(&operands, saved, outputs.next().expect(OUTPUT_IS_DECLARED))?;
                }
                if let Some(gradient) = find(ModelInput::GradOutput) {
                    let input = outputs.next().expect(OUTPUT_IS_DECLARED);
                    let parameters = match gradients.is_empty() {
                        true => outputs.by_ref().take(count).collect(),
                        false => gradients.iter_mut().collect(),
                    };
                    begin(parts::BACKWARD);
                    model.backward(&operands, saved, gradient, GradientBuffers { input, parameters })?;
                }
            }
            if !updates.is_empty() {
                begin(parts::OPTIMIZER);
            }
            // All parameters, then all first moments, then all second moments.
            let mut updated: Vec<&mut DeviceBuffer> = outputs.collect();
            for (index, update) in updates.iter().enumerate() {
                let gradient = find(ModelInput::Gradient(index)).or(gradients.get(index));
                let moments = [0, 1].map(|moment| find(ModelInput::Moment(moment, index)));
                let read = [find(ModelInput::Parameter(index)), gradient, moments[0], moments[1]];
                let written = updated.iter_mut().skip(index).step_by(count).map(|buffer| &mut **buffer);
                update.enqueue(read.into_iter().flatten(), written)?;
            }
            Ok(())
        };
        Ok(NativePass::new(kernels, between, enqueue).with_filled_scratch(before))
    }
}

/// Input and parameters of a pass.
fn pass_operands<'a>(pass_inputs: &[ModelInput], inputs: &'a [DeviceBuffer]) -> PassOperands<'a> {
    let select = |is_selected: fn(&ModelInput) -> bool| {
        pass_inputs.iter().zip(inputs).filter(move |(input, _)| is_selected(input))
    };
    PassOperands {
        input: select(|input| *input == ModelInput::Input)
            .map(|(_, buffer)| buffer)
            .next()
            .expect("a pass has an input"),
        parameters: select(|input| matches!(input, ModelInput::Parameter(_))).map(|(_, buffer)| buffer).collect(),
    }
}

impl<A: NativeArchitecture> TrainedModel<A> {
    /// Forward pass that fills the saved buffers for a backward pass.
    fn fill_saved_buffers(
        &self,
        spec: &Spec,
        device: &Arc<CudaDevice>,
        mut passes: A::ModelPasses,
    ) -> Result<crate::native::EnqueueSteps, ZooError> {
        let sides = self.model.shape(spec);
        let (pass_inputs, elements) = (self.pass_inputs(spec), (sides.rows * sides.output) as usize);
        let mut output = device.allocate(elements * spec.dtype().width())?;
        Ok(Box::new(move |BufferSet { inputs, scratch: between, .. }| {
            passes.forward(&pass_operands(&pass_inputs, inputs), between, &mut output)
        }))
    }
}
