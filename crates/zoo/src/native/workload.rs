//! Model on CUDA with its own stream and buffers; weights are float or packed.

use super::kept_copy;
use super::layer::Layer;
use super::look;
use super::upload::upload;
use super::weight::{DeviceWeight, HostWeight};
use crate::numbers::numbers;
use crate::{Look, Output, Problem, Seen, Tensors, Workload, ZooError};
use calorimeter_kernels::native::{Buffer, DeviceMatrix, Machine, NativeError};
use calorimeter_recipes::{Element, Shortcut, Treatment};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Planned kernels of a model, with their scratch buffers.
pub trait ModelPass: Send {
    /// Linear layers in the order of the weights.
    fn layers(&self) -> Vec<&Layer>;

    /// Enqueues one pass.
    fn enqueue(&mut self, input: &Buffer, weights: &[DeviceWeight], output: &mut Buffer) -> Result<(), ZooError>;

    /// Kernels, and how they were chosen and configured.
    fn algorithm(&self) -> String;
}

/// Model workload; launches rotate through the sets.
struct NativeModelWorkload<P> {
    machine: Arc<Machine>,
    problem: Problem,
    pass: P,
    sets: Vec<Set>,
    next: usize,
    size: (u64, u64),
    weight_bytes: u64,
    quantizing: Option<Duration>,
    tf32: bool,
    /// Copy of the first checked output of set 0.
    right: Option<Buffer>,
}

/// Buffers of one pass.
struct Set {
    input: Buffer,
    weights: Vec<DeviceWeight>,
    output: Buffer,
    /// True after a pass on this set.
    ran: bool,
}

/// Quantizes and uploads the tensors of a model once per buffer set.
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
    let quantizing = (!treatment.is_plain()).then(|| start.elapsed());
    let weights: Vec<HostWeight> = prepared.into_iter().map(HostWeight::new).collect::<Result<_, _>>()?;
    let weight_bytes = weights.iter().map(HostWeight::bytes).sum();
    let weights = weights.into_iter().zip(pass.layers()).map(|(weight, layer)| weight.filled_up(layer.product()));
    let weights: Vec<HostWeight> = weights.collect();
    let mut uploaded: Vec<_> = weights.iter().map(|weight| weight.upload(&machine)).collect::<Result<_, _>>()?;
    let (first, count) = (upload(&machine, &tensors.input, element)?, sets.max(1));
    let mut set = |set: u32| -> Result<Set, NativeError> {
        let input = machine.moved_on(&first, problem.circle(set, tensors.input.rows, first.len()))?;
        let of_set: Vec<DeviceWeight> = match set + 1 == count {
            true => std::mem::take(&mut uploaded),
            false => uploaded.iter().map(|weight| weight.copied(&machine)).collect::<Result<_, _>>()?,
        };
        let ready = |(weight, layer): (DeviceWeight, &Layer)| layer.product().ready(weight);
        let weights = of_set.into_iter().zip(pass.layers()).map(ready).collect::<Result<_, _>>()?;
        let mut output = machine.allocate((size.0 * size.1) as usize * problem.dtype.width())?;
        output.fill(POISON)?;
        Ok(Set { input, weights, output, ran: false })
    };
    let sets: Vec<Set> = (0..count).map(&mut set).collect::<Result<_, _>>()?;
    let (problem, next, right, tf32) = (*problem, 0, None, treatment.shortcut == Some(Shortcut::Tf32));
    Ok(Box::new(NativeModelWorkload {
        machine,
        problem,
        pass,
        sets,
        next,
        size,
        weight_bytes,
        quantizing,
        tf32,
        right,
    }))
}

/// All ones is NaN in every float type.
const POISON: u8 = 0xFF;

impl<P: ModelPass> NativeModelWorkload<P> {
    /// Runs one pass on the next set into memory filled with NaN; returns the index of the set.
    fn poisoned_pass(&mut self) -> Result<usize, ZooError> {
        let set = self.next;
        self.sets[set].output.fill(POISON)?;
        self.launch()?;
        Ok(set)
    }

    fn read(&self, output: &Buffer) -> Result<Vec<Output>, ZooError> {
        let values = numbers(&output.download()?, Element::Float(self.problem.dtype));
        Ok(vec![Output { rows: self.size.0 as usize, cols: self.size.1 as usize, values }])
    }

    /// Copies the output of set 0 as reference, once.
    fn keep(&mut self, set: usize) -> Result<(), ZooError> {
        if set == 0 && self.right.is_none() {
            self.right = kept_copy(&self.machine, &self.sets[0].output)?;
        }
        Ok(())
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
        let set = self.poisoned_pass()?;
        self.keep(set)?;
        self.read(&self.sets[set].output)
    }

    fn seen(&mut self, looks: &[Look<'_>]) -> Result<Option<Vec<Seen>>, ZooError> {
        let [one] = looks else { return Ok(None) };
        if self.right.is_none() && !look::has_room(&self.machine, std::slice::from_ref(&self.sets[0].output))? {
            return Ok(None);
        }
        let set = self.poisoned_pass()?;
        self.keep(set)?;
        let (buffer, kind) = (&self.sets[set].output, self.problem.dtype);
        let size = [self.size.0 as usize, self.size.1 as usize];
        Ok(Some(vec![look::seen(&self.machine, DeviceMatrix { buffer, kind, size }, one)?]))
    }

    fn first(&mut self) -> Result<Option<Vec<Output>>, ZooError> {
        self.right.as_ref().map(|right| self.read(right)).transpose()
    }

    fn kept(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        let ran = self.sets.get(set as usize).is_some_and(|set| set.ran);
        ran.then(|| self.read(&self.sets[set as usize].output)).transpose()
    }

    fn is_like_first(&mut self, set: u32) -> Result<Option<bool>, ZooError> {
        let (Some(right), Some(Set { output, ran: true, .. })) = (&self.right, self.sets.get(set as usize)) else {
            return Ok(None);
        };
        let circle = self.problem.circle(set, self.size.0 as usize, output.len());
        Ok(Some(self.machine.is_moved_on(right, output, circle)?))
    }

    fn passes_like_first(&mut self) -> Result<Option<bool>, ZooError> {
        if self.right.is_none() {
            return Ok(None);
        }
        let set = self.poisoned_pass()?;
        self.is_like_first(set as u32)
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }

    fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }

    fn quantizing(&self) -> Option<Duration> {
        self.quantizing
    }

    fn skips_zeros(&self) -> bool {
        self.pass.layers().iter().all(|layer| layer.product().skips_zeros())
    }

    fn may_use_tf32(&self) -> bool {
        self.tf32
    }

    fn kernel(&self) -> Option<String> {
        Some(self.pass.algorithm())
    }
}
