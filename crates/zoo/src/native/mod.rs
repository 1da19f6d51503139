//! Through cuBLASLt and CUDA C++, on a stream and in buffers of their own.

pub(crate) mod layer;
pub(crate) mod layer_form;
pub mod linear;
pub(crate) mod weight;
pub(crate) mod workload;

use crate::numbers::{bytes, numbers};
use crate::{Matrix, Operand, Operation, Output, Slot, Spec, Workload, ZooError};
use calorimeter_kernels::native::{Buffer, Machine, NativeError};
use std::sync::Arc;

/// What one pass of an operator enqueues: its plans are made, and its buffers come from a [`Set`].
pub struct NativePass {
    /// The kernels and how they were chosen, in their order.
    kernels: Vec<String>,
    /// Bytes of each buffer that a step fills for a later one.
    between: Vec<usize>,
    /// Fills those buffers of each set once and for all, where passes only read them.
    before: Option<Enqueue>,
    /// Enqueues the steps.
    enqueue: Enqueue,
}

/// What is enqueued on a set.
pub type Enqueue = Box<dyn FnMut(&mut Set) -> Result<(), NativeError> + Send>;

/// The memory of one pass. It stays where it is, so that a graph of the pass can be replayed.
pub struct Set {
    /// In the order of [`Signature::inputs`](crate::Signature::inputs).
    pub inputs: Vec<Buffer>,
    /// What steps fill for later ones, as the pass declares it.
    pub between: Vec<Buffer>,
    /// In the order of [`Signature::outputs`](crate::Signature::outputs).
    pub outputs: Vec<Buffer>,
}

impl NativePass {
    /// A pass of some steps, with so many bytes of each buffer between them.
    pub fn steps(
        kernels: Vec<String>,
        between: Vec<usize>,
        enqueue: impl FnMut(&mut Set) -> Result<(), NativeError> + Send + 'static,
    ) -> Self {
        Self { kernels, between, before: None, enqueue: Box::new(enqueue) }
    }

    /// The same, whose buffers between steps are filled once and for all on each set, where something does that.
    pub fn filled_before(self, before: Option<Enqueue>) -> Self {
        Self { before, ..self }
    }

    /// A pass of a single step.
    pub fn single(kernel: String, enqueue: impl FnMut(&mut Set) -> Result<(), NativeError> + Send + 'static) -> Self {
        Self::steps(vec![kernel], Vec::new(), enqueue)
    }

    /// Puts the inputs on the device, once for each set; launches go through the sets in turn.
    pub fn open(
        mut self,
        operation: &dyn Operation,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (operands, slots) = (operation.inputs(spec), operation.outputs(spec));
        let encode = |(matrix, operand): (&Matrix, &Operand)| bytes(&matrix.values, operand.element);
        let first: Vec<Vec<u8>> = inputs.iter().zip(&operands).map(encode).collect();
        let moves = operation.moves(spec);
        let set = |set: u32| -> Result<Set, NativeError> {
            let of_set = moves.inputs_of_set(inputs, set);
            let upload = |index: usize| match &of_set[index] {
                stays if Arc::ptr_eq(&stays.values, &inputs[index].values) => machine.upload(&first[index]),
                moved => machine.upload(&encode((moved, &operands[index]))),
            };
            Ok(Set {
                inputs: (0..inputs.len()).map(upload).collect::<Result<_, _>>()?,
                between: self.between.iter().map(|&bytes| machine.allocate(bytes)).collect::<Result<_, _>>()?,
                outputs: slots.iter().map(|slot| machine.allocate(slot.bytes() as usize)).collect::<Result<_, _>>()?,
            })
        };
        let mut sets: Vec<Set> = (0..sets.max(1)).map(set).collect::<Result<_, _>>()?;
        for set in &mut sets {
            set.poison(true)?;
            if let Some(before) = &mut self.before {
                before(set)?;
            }
        }
        let ran = vec![false; sets.len()];
        Ok(Box::new(NativeOperator { pass: self, machine, sets, ran, next: 0, slots }))
    }
}

struct NativeOperator {
    pass: NativePass,
    machine: Arc<Machine>,
    sets: Vec<Set>,
    /// Which sets a pass has run on.
    ran: Vec<bool>,
    next: usize,
    slots: Vec<Slot>,
}

impl Set {
    /// Fills what passes write: all ones is a NaN in every float type, e4m3 among them.
    fn poison(&mut self, between_too: bool) -> Result<(), NativeError> {
        let Self { between, outputs, .. } = self;
        if between_too {
            between.iter_mut().try_for_each(|buffer| buffer.fill(0xFF))?;
        }
        outputs.iter_mut().try_for_each(|buffer| buffer.fill(0xFF))
    }
}

impl NativeOperator {
    fn read(&self, set: usize) -> Result<Vec<Output>, ZooError> {
        let read = |(buffer, slot): (&Buffer, &Slot)| -> Result<Output, ZooError> {
            let values = numbers(&buffer.download()?, slot.element);
            Ok(Output { rows: slot.rows as usize, cols: slot.cols as usize, values })
        };
        self.sets[set].outputs.iter().zip(&self.slots).map(read).collect()
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
        let set = self.next;
        self.sets[set].poison(self.pass.before.is_none())?;
        self.launch()?;
        self.read(set)
    }

    fn kept(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        let ran = self.ran.get(set as usize).copied().unwrap_or(false);
        ran.then(|| self.read(set as usize)).transpose()
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

impl From<NativeError> for ZooError {
    fn from(error: NativeError) -> Self {
        match error {
            NativeError::LibraryMissing { .. }
            | NativeError::DriverTooOld { .. }
            | NativeError::UnsupportedGpu { .. }
            | NativeError::OtherGpu { .. }
            | NativeError::HeadWidth { .. }
            | NativeError::NumberType { .. }
            | NativeError::NotInFours { .. }
            | NativeError::NotInBlocks { .. }
            | NativeError::NoAlgorithm { .. } => Self::Unsupported(error.to_string()),
            other => Self::Device(other.to_string()),
        }
    }
}
