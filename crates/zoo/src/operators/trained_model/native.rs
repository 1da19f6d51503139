//! By CUDA's libraries and kernels of ours: what the way there leaves is in buffers that the way back reads.

use super::architecture::Architecture;
use super::{Given, Made, TrainedModel};
use crate::native::{NativePass, Set};
use crate::operators::trained_linear::native_layer::NativeLayer;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError, parts};
use calorimeter_kernels::native::{Buffer, LinearShape, Machine, NativeError, TrainedProduct};
use std::sync::Arc;

/// A model that has kernels.
pub trait NativeArchitecture: Architecture {
    /// Its ways there and back.
    type Ways: Ways + 'static;

    /// Plans them: of its linear layers the products that are wanted.
    fn ways(&self, plans: &Plans<'_>) -> Result<Self::Ways, ZooError>;
}

/// What is enqueued of a model: the way there, the way back, or both, as they were planned.
pub trait Ways: Send {
    /// Bytes of each buffer that the way there leaves for the way back.
    fn kept(&self) -> Vec<usize>;

    /// Enqueues the way there.
    fn forward(&mut self, from: &From<'_>, kept: &mut [Buffer], output: &mut Buffer) -> Result<(), NativeError>;

    /// Enqueues the way back of the gradient of the output.
    fn backward(
        &mut self,
        from: &From<'_>,
        kept: &[Buffer],
        gradient: &Buffer,
        made: Gradients<'_>,
    ) -> Result<(), NativeError>;

    /// The kernels that were planned, and how they were chosen.
    fn kernels(&self) -> Vec<String>;
}

/// Why a way that is enqueued is there.
pub const PLANNED: &str = "a way that is enqueued was planned";

/// What both ways read.
pub struct From<'a> {
    pub input: &'a Buffer,
    pub parameters: Vec<&'a Buffer>,
}

/// Where the gradients of the input and of each parameter go.
pub struct Gradients<'a> {
    pub input: &'a mut Buffer,
    pub parameters: Vec<&'a mut Buffer>,
}

/// What plans are made of.
pub struct Plans<'a> {
    pub machine: &'a Arc<Machine>,
    pub spec: &'a Spec,
    wanted: &'a [TrainedProduct],
}

impl Plans<'_> {
    /// Those products of a linear layer that are wanted, for so many rows of k numbers.
    pub fn layer(&self, rows: usize, k: usize, n: usize) -> Result<NativeLayer, ZooError> {
        NativeLayer::new(self.machine, self.spec, LinearShape { m: rows, k, n }, self.wanted)
    }

    /// What the way there needs, if it is taken.
    pub fn there<T>(&self, make: impl FnOnce() -> Result<T, ZooError>) -> Result<Option<T>, ZooError> {
        self.wanted.contains(&TrainedProduct::Output).then(make).transpose()
    }

    /// What the way back needs, if it is taken.
    pub fn back<T>(&self, make: impl FnOnce() -> Result<T, ZooError>) -> Result<Option<T>, ZooError> {
        self.wanted.contains(&TrainedProduct::GradInput).then(make).transpose()
    }

    /// Bytes of so many numbers.
    pub fn bytes(&self, numbers: usize) -> usize {
        numbers * self.spec.dtype().width()
    }

    /// Memory for so many numbers that a way leaves for itself.
    pub fn between(&self, numbers: usize) -> Result<Buffer, NativeError> {
        self.machine.allocate(self.bytes(numbers))
    }
}

const DECLARED: &str = "every result of a pass is declared";

impl<A: NativeArchitecture> NativeOpen for TrainedModel<A> {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (given, makes, parameters) = (self.given(spec), self.results(spec), self.parameters(spec));
        let (count, wanted) = (parameters.len(), self.pass.products());
        let ways = |wanted| self.model.ways(&Plans { machine: &machine, spec, wanted });
        let mut model = if wanted.is_empty() { None } else { Some(ways(wanted)?) };
        let update = |parameter: &crate::Operand| {
            let numbers = (parameter.rows * parameter.cols) as usize;
            Ok(self.pass.update(spec, &machine, numbers)?.map(|update| (update, numbers * spec.dtype().width())))
        };
        let updates: Vec<_> = parameters.iter().map(update).collect::<Result<_, ZooError>>()?;
        let (updates, of_parameters): (Vec<_>, Vec<usize>) = updates.into_iter().flatten().unzip();
        let mut kernels: Vec<String> = updates.iter().map(|update| update.algorithm().to_owned()).collect();
        let mut between = Vec::new();
        if let Some(model) = &model {
            kernels = model.kernels().into_iter().chain(kernels).collect();
            between = model.kept();
        }
        let kept = between.len();
        // The gradients of parameters, where a step makes them for itself.
        if model.is_some() {
            between.extend(of_parameters);
        }
        let goes_there = makes.contains(&Made::Output);
        let before = match (goes_there, given.contains(&Given::GradOutput)) {
            (false, true) => Some(self.way_there(spec, &machine, ways(&[TrainedProduct::Output])?)?),
            _ => None,
        };
        let device = machine.clone();
        let begin = move |part| parts::begin(part, || Ok(device.synchronize()?));
        let enqueue = move |Set { inputs, between, outputs }: &mut Set| {
            let (kept, gradients) = between.split_at_mut(kept);
            let at = |wanted: Given| given.iter().position(|given| *given == wanted).map(|at| &inputs[at]);
            let mut outputs = outputs.iter_mut();
            if let Some(model) = &mut model {
                let from = from(&given, inputs);
                if goes_there {
                    begin(parts::FORWARD);
                    model.forward(&from, kept, outputs.next().expect(DECLARED))?;
                }
                if let Some(gradient) = at(Given::GradOutput) {
                    let input = outputs.next().expect(DECLARED);
                    let parameters = match gradients.is_empty() {
                        true => outputs.by_ref().take(count).collect(),
                        false => gradients.iter_mut().collect(),
                    };
                    begin(parts::BACKWARD);
                    model.backward(&from, kept, gradient, Gradients { input, parameters })?;
                }
            }
            if !updates.is_empty() {
                begin(parts::OPTIMIZER);
            }
            // Every parameter, and behind those their first moments, and behind those the second.
            let mut updated: Vec<&mut Buffer> = outputs.collect();
            for (of, update) in updates.iter().enumerate() {
                let gradient = at(Given::Gradient(of)).or(gradients.get(of));
                let read = [at(Given::Parameter(of)), gradient, at(Given::Moment(0, of)), at(Given::Moment(1, of))];
                let mut written: Vec<&mut Buffer> =
                    updated.iter_mut().skip(of).step_by(count).map(|it| &mut **it).collect();
                update.enqueue(&read.into_iter().flatten().collect::<Vec<_>>(), &mut written)?;
            }
            Ok(())
        };
        let pass = NativePass::steps(kernels, between, enqueue).filled_before(before);
        pass.open(self, spec, inputs, machine, sets)
    }
}

/// The input and the parameters of a pass.
fn from<'a>(given: &[Given], inputs: &'a [Buffer]) -> From<'a> {
    let which = |wanted: fn(&Given) -> bool| given.iter().zip(inputs).filter(move |(given, _)| wanted(given));
    From {
        input: which(|given| *given == Given::Input).map(|(_, buffer)| buffer).next().expect("a pass has an input"),
        parameters: which(|given| matches!(given, Given::Parameter(_))).map(|(_, buffer)| buffer).collect(),
    }
}

impl<A: NativeArchitecture> TrainedModel<A> {
    /// Fills what the way back reads.
    fn way_there(
        &self,
        spec: &Spec,
        machine: &Arc<Machine>,
        mut ways: A::Ways,
    ) -> Result<crate::native::Enqueue, ZooError> {
        let sides = self.model.sides(spec);
        let (given, numbers) = (self.given(spec), (sides.rows * sides.output) as usize);
        let mut output = machine.allocate(numbers * spec.dtype().width())?;
        Ok(Box::new(move |Set { inputs, between, .. }| ways.forward(&from(&given, inputs), between, &mut output)))
    }
}
