//! `native` on CUDA: cuBLASLt and CUDA C++ kernels on their own stream and buffers.

pub(crate) mod layer;
pub(crate) mod layer_form;
pub mod linear;
mod look;
mod upload;
pub(crate) mod weight;
pub(crate) mod workload;

use crate::numbers::numbers;
use crate::{Look, Matrix, Moves, Operand, Operation, Output, Seen, Slot, Spec, Workload, ZooError};
use calorimeter_kernels::native::{Buffer, Circle, DeviceMatrix, Machine, NativeError};
use calorimeter_recipes::Dtype;
use std::sync::Arc;

/// Pass of an operator: planned kernels that run on the buffers of a [`Set`].
pub struct NativePass {
    /// Kernels and their configurations, in order.
    kernels: Vec<String>,
    /// Bytes of each scratch buffer between steps.
    between: Vec<usize>,
    /// Fills the scratch buffers of each set once, if passes only read them.
    before: Option<Enqueue>,
    /// Converts an output to the declared layout, if passes store another one.
    read: Option<Rearrange>,
    /// Enqueues the steps.
    enqueue: Enqueue,
}

/// Enqueues work on a buffer set.
pub type Enqueue = Box<dyn FnMut(&mut Set) -> Result<(), NativeError> + Send>;

/// Converts a buffer to another layout.
pub type Rearrange = Box<dyn Fn(&Buffer) -> Result<Buffer, NativeError> + Send>;

/// Memory of one pass. Addresses are stable, so that a graph of the pass can be replayed.
pub struct Set {
    /// In the order of [`Signature::inputs`](crate::Signature::inputs).
    pub inputs: Vec<Buffer>,
    /// Scratch buffers, as the pass declares them.
    pub between: Vec<Buffer>,
    /// In the order of [`Signature::outputs`](crate::Signature::outputs).
    pub outputs: Vec<Buffer>,
}

impl NativePass {
    /// Pass of several steps with scratch buffers of the given sizes in bytes.
    pub fn steps(
        kernels: Vec<String>,
        between: Vec<usize>,
        enqueue: impl FnMut(&mut Set) -> Result<(), NativeError> + Send + 'static,
    ) -> Self {
        Self { kernels, between, before: None, read: None, enqueue: Box::new(enqueue) }
    }

    /// Sets a function that fills the scratch buffers of each set once.
    pub fn filled_before(self, before: Option<Enqueue>) -> Self {
        Self { before, ..self }
    }

    /// Sets a conversion of outputs from the layout of the pass to the declared one.
    pub fn read_through(self, read: Rearrange) -> Self {
        Self { read: Some(read), ..self }
    }

    /// Pass of a single step.
    pub fn single(kernel: String, enqueue: impl FnMut(&mut Set) -> Result<(), NativeError> + Send + 'static) -> Self {
        Self::steps(vec![kernel], Vec::new(), enqueue)
    }

    /// Uploads the inputs once per buffer set. Launches rotate through the sets.
    pub fn open(
        mut self,
        operation: &dyn Operation,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (operands, slots) = (operation.inputs(spec), operation.outputs(spec));
        let upload = |(matrix, operand): (&Matrix, &Operand)| upload::upload(&machine, matrix, operand.element);
        let moves = operation.moves(spec);
        let with = |inputs: Vec<Buffer>| -> Result<Set, NativeError> {
            let between = self.between.iter().map(|&bytes| machine.allocate(bytes)).collect::<Result<_, _>>()?;
            let outputs = slots.iter().map(|slot| machine.allocate(slot.bytes() as usize)).collect::<Result<_, _>>()?;
            Ok(Set { inputs, between, outputs })
        };
        let first = with(inputs.iter().zip(&operands).map(upload).collect::<Result<_, _>>()?)?;
        let moved = |set: u32, index: usize| {
            let (buffer, Matrix { rows, cols, .. }) = (&first.inputs[index], &inputs[index]);
            match moves.circle_of_input(index, [*rows, *cols], buffer.len(), set) {
                Some(circle) => machine.moved_on(buffer, circle),
                None => upload((&moves.inputs_of_set(inputs, set)[index], &operands[index])),
            }
        };
        let others = 1..sets.max(1);
        let others =
            others.map(|set| with((0..inputs.len()).map(|index| moved(set, index)).collect::<Result<_, _>>()?));
        let others: Vec<Set> = others.collect::<Result<_, _>>()?;
        let mut sets: Vec<Set> = std::iter::once(first).chain(others).collect();
        for set in &mut sets {
            set.poison(true)?;
            if let Some(before) = &mut self.before {
                before(set)?;
            }
        }
        let ran = vec![false; sets.len()];
        Ok(Box::new(NativeOperator { pass: self, machine, sets, ran, next: 0, slots, moves, right: None }))
    }
}

struct NativeOperator {
    pass: NativePass,
    machine: Arc<Machine>,
    sets: Vec<Set>,
    /// For each set: true after a pass on it.
    ran: Vec<bool>,
    next: usize,
    slots: Vec<Slot>,
    moves: Moves,
    /// Copies of the first checked outputs of set 0.
    right: Option<Vec<Buffer>>,
}

impl Set {
    /// Fills outputs, and optionally scratch buffers, with ones: NaN in every float type, including e4m3.
    fn poison(&mut self, between_too: bool) -> Result<(), NativeError> {
        let Self { between, outputs, .. } = self;
        if between_too {
            between.iter_mut().try_for_each(|buffer| buffer.fill(0xFF))?;
        }
        outputs.iter_mut().try_for_each(|buffer| buffer.fill(0xFF))
    }
}

impl NativeOperator {
    /// Runs one pass on the next set into memory filled with NaN; returns the index of the set.
    fn poisoned_pass(&mut self) -> Result<usize, ZooError> {
        let set = self.next;
        self.sets[set].poison(self.pass.before.is_none())?;
        self.launch()?;
        Ok(set)
    }

    fn read(&self, outputs: &[Buffer]) -> Result<Vec<Output>, ZooError> {
        let read = |(buffer, slot): (&Buffer, &Slot)| -> Result<Output, ZooError> {
            let arranged = self.pass.read.as_ref().map(|read| read(buffer)).transpose()?;
            let values = numbers(&arranged.as_ref().unwrap_or(buffer).download()?, slot.element);
            Ok(Output { rows: slot.rows as usize, cols: slot.cols as usize, values })
        };
        outputs.iter().zip(&self.slots).map(read).collect()
    }

    /// Copies the outputs of set 0 as reference, once.
    fn keep(&mut self, set: usize) -> Result<(), ZooError> {
        if set == 0 && self.right.is_none() {
            let copies = self.sets[0].outputs.iter().map(|output| kept_copy(&self.machine, output));
            self.right = copies.collect::<Result<_, _>>()?;
        }
        Ok(())
    }
}

impl Workload for NativeOperator {
    fn launch(&mut self) -> Result<(), ZooError> {
        let set = self.next;
        self.next = (set + 1) % self.sets.len();
        self.ran[set] = true;
        Ok((self.pass.enqueue)(&mut self.sets[set])?)
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        Ok(self.machine.synchronize()?)
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.poisoned_pass()?;
        self.keep(set)?;
        self.read(&self.sets[set].outputs)
    }

    fn seen(&mut self, looks: &[Look<'_>]) -> Result<Option<Vec<Seen>>, ZooError> {
        let outputs = &self.sets[self.next].outputs;
        let kinds: Option<Vec<Dtype>> = self.slots.iter().map(|slot| look::kind(slot.element)).collect();
        let Some(kinds) = kinds.filter(|kinds| kinds.len() == looks.len()) else { return Ok(None) };
        if self.right.is_none() && !look::has_room(&self.machine, outputs)? {
            return Ok(None);
        }
        let set = self.poisoned_pass()?;
        self.keep(set)?;
        let mut seen = Vec::new();
        for (((buffer, slot), kind), look) in self.sets[set].outputs.iter().zip(&self.slots).zip(kinds).zip(looks) {
            let arranged = self.pass.read.as_ref().map(|read| read(buffer)).transpose()?;
            let (buffer, size) =
                (arranged.as_ref().unwrap_or(buffer), [slot.rows, slot.cols].map(|size| size as usize));
            seen.push(look::seen(&self.machine, DeviceMatrix { buffer, kind, size }, look)?);
        }
        Ok(Some(seen))
    }

    fn first(&mut self) -> Result<Option<Vec<Output>>, ZooError> {
        self.right.as_ref().map(|right| self.read(right)).transpose()
    }

    fn kept(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        let ran = self.ran.get(set as usize).copied().unwrap_or(false);
        ran.then(|| self.read(&self.sets[set as usize].outputs)).transpose()
    }

    fn is_like_first(&mut self, set: u32) -> Result<Option<bool>, ZooError> {
        let Self { machine, sets, ran, slots, moves, right: Some(right), .. } = self else { return Ok(None) };
        if !ran.get(set as usize).copied().unwrap_or(false) {
            return Ok(None);
        }
        for (index, (right, output)) in right.iter().zip(&sets[set as usize].outputs).enumerate() {
            let Some(circle) = moves.circle_of_output(index, &slots[index], output.len(), set) else { return Ok(None) };
            if !machine.is_moved_on(right, output, circle)? {
                return Ok(Some(false));
            }
        }
        Ok(Some(true))
    }

    fn passes_like_first(&mut self) -> Result<Option<bool>, ZooError> {
        if self.right.is_none() {
            return Ok(None);
        }
        let set = self.poisoned_pass()?;
        // If the device cannot compare, `false` makes the caller compare on the host: the outputs are still stored.
        Ok(Some(self.is_like_first(set as u32)?.unwrap_or(false)))
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }

    fn weight_bytes(&self) -> u64 {
        0
    }

    fn kernel(&self) -> Option<String> {
        Some(self.pass.kernels.join("; then "))
    }
}

/// Copies an output; `None` if the device is out of memory.
fn kept_copy(machine: &Machine, output: &Buffer) -> Result<Option<Buffer>, NativeError> {
    match machine.moved_on(output, Circle::still(output.len())) {
        Err(NativeError::OutOfMemory { .. }) => Ok(None),
        copy => copy.map(Some),
    }
}

impl From<NativeError> for ZooError {
    fn from(error: NativeError) -> Self {
        match error {
            NativeError::LibraryMissing { .. }
            | NativeError::DriverTooOld { .. }
            | NativeError::UnsupportedGpu { .. }
            | NativeError::OtherGpu { .. }
            | NativeError::HeadWidth { .. }
            | NativeError::NumberType { .. }
            | NativeError::ConvolutionForm { .. }
            | NativeError::NoPlan { .. }
            | NativeError::NotInFours { .. }
            | NativeError::NotInBlocks { .. }
            | NativeError::NoAlgorithm { .. } => Self::Unsupported(error.to_string()),
            other => Self::Device(other.to_string()),
        }
    }
}
