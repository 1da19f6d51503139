//! Training passes of models on CUDA: the forward pass saves tensors in buffers that the backward pass reads.

use super::architecture::Architecture;
use super::{Given, Made, TrainedModel};
use crate::native::{NativePass, Set};
use crate::operators::trained_linear::native_layer::NativeLayer;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError, parts};
use calorimeter_kernels::native::{Buffer, LinearShape, Machine, NativeError, TrainedProduct};
use std::sync::Arc;

/// Model with CUDA training passes.
pub trait NativeArchitecture: Architecture {
    /// Planned passes.
    type Ways: Ways + 'static;

    /// Plans the passes with the requested matmuls of the linear layers.
    fn ways(&self, plans: &Plans<'_>) -> Result<Self::Ways, ZooError>;
}

/// Planned forward pass, backward pass or both.
pub trait Ways: Send {
    /// Bytes of each buffer that the forward pass saves for the backward pass.
    fn kept(&self) -> Vec<usize>;

    /// Enqueues the forward pass.
    fn forward(&mut self, operands: &From<'_>, saved: &mut [Buffer], output: &mut Buffer) -> Result<(), NativeError>;

    /// Enqueues the backward pass for an output gradient.
    fn backward(
        &mut self,
        operands: &From<'_>,
        saved: &[Buffer],
        gradient: &Buffer,
        gradients: Gradients<'_>,
    ) -> Result<(), NativeError>;

    /// Names of the planned kernels and how they were selected.
    fn kernels(&self) -> Vec<String>;
}

/// Panic message if a pass is enqueued that was not planned.
pub const PLANNED: &str = "only planned passes are enqueued";

/// Buffers that both passes read.
pub struct From<'a> {
    pub input: &'a Buffer,
    pub parameters: Vec<&'a Buffer>,
}

/// Destinations of the gradients of the input and of each parameter.
pub struct Gradients<'a> {
    pub input: &'a mut Buffer,
    pub parameters: Vec<&'a mut Buffer>,
}

/// Device, shape and matmuls that passes are planned for.
pub struct Plans<'a> {
    pub machine: &'a Arc<Machine>,
    pub spec: &'a Spec,
    wanted: &'a [TrainedProduct],
}

impl Plans<'_> {
    /// Plans the requested matmuls of a linear layer for `rows` rows.
    pub fn layer(&self, rows: usize, k: usize, n: usize) -> Result<NativeLayer, ZooError> {
        NativeLayer::new(self.machine, self.spec, LinearShape { m: rows, k, n }, self.wanted)
    }

    /// Plans the forward pass if it is requested.
    pub fn there<T>(&self, make: impl FnOnce() -> Result<T, ZooError>) -> Result<Option<T>, ZooError> {
        self.wanted.contains(&TrainedProduct::Output).then(make).transpose()
    }

    /// Plans the backward pass if it is requested.
    pub fn back<T>(&self, make: impl FnOnce() -> Result<T, ZooError>) -> Result<Option<T>, ZooError> {
        self.wanted.contains(&TrainedProduct::GradInput).then(make).transpose()
    }

    /// Bytes of `elements` elements in the dtype of the spec.
    pub fn bytes(&self, elements: usize) -> usize {
        elements * self.spec.dtype().width()
    }

    /// Allocates scratch memory for `elements` elements.
    pub fn between(&self, elements: usize) -> Result<Buffer, NativeError> {
        self.machine.allocate(self.bytes(elements))
    }
}

const DECLARED: &str = "every output of the pass is declared";

impl<A: NativeArchitecture> NativeOpen for TrainedModel<A> {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (pass_inputs, pass_outputs, parameters) = (self.given(spec), self.results(spec), self.parameters(spec));
        let (count, matmuls) = (parameters.len(), self.pass.products());
        let plan = |matmuls| self.model.ways(&Plans { machine: &machine, spec, wanted: matmuls });
        let mut model = if matmuls.is_empty() { None } else { Some(plan(matmuls)?) };
        let update = |parameter: &crate::Operand| {
            let elements = (parameter.rows * parameter.cols) as usize;
            Ok(self.pass.update(spec, &machine, elements)?.map(|update| (update, elements * spec.dtype().width())))
        };
        let updates: Vec<_> = parameters.iter().map(update).collect::<Result<_, ZooError>>()?;
        let (updates, gradient_bytes): (Vec<_>, Vec<usize>) = updates.into_iter().flatten().unzip();
        let mut kernels: Vec<String> = updates.iter().map(|update| update.algorithm().to_owned()).collect();
        let mut between = Vec::new();
        if let Some(model) = &model {
            kernels = model.kernels().into_iter().chain(kernels).collect();
            between = model.kept();
        }
        let saved_count = between.len();
        // Parameter gradients of a whole step: intermediates, not outputs.
        if model.is_some() {
            between.extend(gradient_bytes);
        }
        let has_forward = pass_outputs.contains(&Made::Output);
        let before = match (has_forward, pass_inputs.contains(&Given::GradOutput)) {
            (false, true) => Some(self.way_there(spec, &machine, plan(&[TrainedProduct::Output])?)?),
            _ => None,
        };
        let device = machine.clone();
        let begin = move |part| parts::begin(part, || Ok(device.synchronize()?));
        let enqueue = move |Set { inputs, between, outputs }: &mut Set| {
            let (saved, gradients) = between.split_at_mut(saved_count);
            let find = |input: Given| pass_inputs.iter().position(|other| *other == input).map(|index| &inputs[index]);
            let mut outputs = outputs.iter_mut();
            if let Some(model) = &mut model {
                let operands = from(&pass_inputs, inputs);
                if has_forward {
                    begin(parts::FORWARD);
                    model.forward(&operands, saved, outputs.next().expect(DECLARED))?;
                }
                if let Some(gradient) = find(Given::GradOutput) {
                    let input = outputs.next().expect(DECLARED);
                    let parameters = match gradients.is_empty() {
                        true => outputs.by_ref().take(count).collect(),
                        false => gradients.iter_mut().collect(),
                    };
                    begin(parts::BACKWARD);
                    model.backward(&operands, saved, gradient, Gradients { input, parameters })?;
                }
            }
            if !updates.is_empty() {
                begin(parts::OPTIMIZER);
            }
            // All parameters, then all first moments, then all second moments.
            let mut updated: Vec<&mut Buffer> = outputs.collect();
            for (index, update) in updates.iter().enumerate() {
                let gradient = find(Given::Gradient(index)).or(gradients.get(index));
                let moments = [0, 1].map(|moment| find(Given::Moment(moment, index)));
                let read = [find(Given::Parameter(index)), gradient, moments[0], moments[1]];
                let mut written: Vec<&mut Buffer> =
                    updated.iter_mut().skip(index).step_by(count).map(|buffer| &mut **buffer).collect();
                update.enqueue(&read.into_iter().flatten().collect::<Vec<_>>(), &mut written)?;
            }
            Ok(())
        };
        let pass = NativePass::steps(kernels, between, enqueue).filled_before(before);
        pass.open(self, spec, inputs, machine, sets)
    }
}

/// Input and parameters of a pass.
fn from<'a>(pass_inputs: &[Given], inputs: &'a [Buffer]) -> From<'a> {
    let select =
        |is_selected: fn(&Given) -> bool| pass_inputs.iter().zip(inputs).filter(move |(input, _)| is_selected(input));
    From {
        input: select(|input| *input == Given::Input).map(|(_, buffer)| buffer).next().expect("a pass has an input"),
        parameters: select(|input| matches!(input, Given::Parameter(_))).map(|(_, buffer)| buffer).collect(),
    }
}

impl<A: NativeArchitecture> TrainedModel<A> {
    /// Forward pass that fills the saved buffers for a backward pass.
    fn way_there(
        &self,
        spec: &Spec,
        machine: &Arc<Machine>,
        mut passes: A::Ways,
    ) -> Result<crate::native::Enqueue, ZooError> {
        let sides = self.model.sides(spec);
        let (pass_inputs, elements) = (self.given(spec), (sides.rows * sides.output) as usize);
        let mut output = machine.allocate(elements * spec.dtype().width())?;
        Ok(Box::new(move |Set { inputs, between, .. }| {
            passes.forward(&from(&pass_inputs, inputs), between, &mut output)
        }))
    }
}
