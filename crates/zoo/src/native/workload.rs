//! A model on a stream and in buffers of its own: its layers' weights are as they are, or packed by a recipe.

use super::layer::Layer;
use super::weight::{DeviceWeight, HostWeight};
use crate::numbers::{bytes, numbers};
use crate::{Output, Problem, Tensors, Workload, ZooError};
use calorimeter_kernels::native::{Buffer, Machine, NativeError};
use calorimeter_recipes::{Dtype, Element, Shortcut, Treatment};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a pass of a model enqueues: its plans are made, and it keeps what is written between its steps.
pub trait ModelPass: Send {
    /// Its layers, in the order of the weights.
    fn layers(&self) -> Vec<&Layer>;

    /// Enqueues one pass.
    fn enqueue(&mut self, input: &Buffer, weights: &[DeviceWeight], output: &mut Buffer) -> Result<(), ZooError>;

    /// Which kernels run, and how they were chosen or cut up.
    fn algorithm(&self) -> String;
}

/// Passes go through the sets in turn.
struct NativeModelWorkload<P> {
    machine: Arc<Machine>,
    dtype: Dtype,
    pass: P,
    sets: Vec<Set>,
    next: usize,
    size: (u64, u64),
    weight_bytes: u64,
    quantising: Option<Duration>,
    tf32: bool,
}

/// What one pass reads and writes.
struct Set {
    input: Buffer,
    weights: Vec<DeviceWeight>,
    output: Buffer,
    /// Whether a pass has run on it.
    ran: bool,
}

/// Puts a problem's tensors on the device, once for each set.
pub fn open<P: ModelPass + 'static>(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &Treatment,
    machine: Arc<Machine>,
    sets: u32,
    pass: P,
) -> Result<Box<dyn Workload>, ZooError> {
    let (element, size) = (Element::Float(problem.dtype), problem.layout().output);
    let start = Instant::now();
    let prepared: Vec<_> = tensors.weights.iter().map(|weight| treatment.prepare(weight)).collect::<Result<_, _>>()?;
    let quantising = (!treatment.is_plain()).then(|| start.elapsed());
    let weights: Vec<HostWeight> = prepared.into_iter().map(HostWeight::new).collect::<Result<_, _>>()?;
    let weight_bytes = weights.iter().map(HostWeight::bytes).sum();
    let weights = weights.into_iter().zip(pass.layers()).map(|(weight, layer)| weight.filled_up(layer.product()));
    let weights: Vec<HostWeight> = weights.collect();
    let set = |set: u32| -> Result<Set, NativeError> {
        let input = machine.upload(&bytes(&problem.input_of_set(tensors, set).values, element))?;
        let ready = |(weight, layer): (&HostWeight, &Layer)| layer.product().ready(weight.upload(&machine)?);
        let weights = weights.iter().zip(pass.layers()).map(ready).collect::<Result<_, _>>()?;
        let mut output = machine.allocate((size.0 * size.1) as usize * problem.dtype.width())?;
        output.fill(POISON)?;
        Ok(Set { input, weights, output, ran: false })
    };
    let sets: Vec<Set> = (0..sets.max(1)).map(set).collect::<Result<_, _>>()?;
    let (dtype, next, tf32) = (problem.dtype, 0, treatment.shortcut == Some(Shortcut::Tf32));
    Ok(Box::new(NativeModelWorkload { machine, dtype, pass, sets, next, size, weight_bytes, quantising, tf32 }))
}

/// All ones is a NaN in every float type.
const POISON: u8 = 0xFF;

impl<P: ModelPass> NativeModelWorkload<P> {
    fn read(&self, set: usize) -> Result<Vec<Output>, ZooError> {
        let values = numbers(&self.sets[set].output.download()?, Element::Float(self.dtype));
        Ok(vec![Output { rows: self.size.0 as usize, cols: self.size.1 as usize, values }])
    }
}

impl<P: ModelPass> Workload for NativeModelWorkload<P> {
    fn launch(&mut self) -> Result<(), ZooError> {
        let sets = self.sets.len();
        let Set { input, weights, output, ran } = &mut self.sets[self.next];
        *ran = true;
        self.next = (self.next + 1) % sets;
        self.pass.enqueue(input, weights, output)
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        Ok(self.machine.synchronize()?)
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.next;
        self.sets[set].output.fill(POISON)?;
        self.launch()?;
        self.read(set)
    }

    fn kept(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        let ran = self.sets.get(set as usize).is_some_and(|set| set.ran);
        ran.then(|| self.read(set as usize)).transpose()
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }

    fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }

    fn quantising(&self) -> Option<Duration> {
        self.quantising
    }

    fn may_use_tf32(&self) -> bool {
        self.tf32
    }

    fn kernel(&self) -> Option<String> {
        Some(self.pass.algorithm())
    }
}
