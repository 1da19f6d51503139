//! Through cuBLASLt and CUDA C++, on a stream and in buffers of their own.

pub mod linear;
pub mod numbers;

use crate::{Matrix, Operand, Operation, Output, Slot, Spec, Workload, ZooError};
use calorimeter_kernels::native::{Buffer, Machine, NativeError};
use numbers::{bytes, numbers};
use std::sync::Arc;

/// What one pass of an operator enqueues: its plans are made, and its buffers come from a [`Set`].
pub struct NativePass {
    /// The kernels and how they were chosen, in their order.
    pub kernels: Vec<String>,
    /// Bytes of each buffer that a step fills for a later one.
    pub between: Vec<usize>,
    /// Enqueues the steps.
    pub enqueue: Enqueue,
}

type Enqueue = Box<dyn Fn(&mut Set) -> Result<(), NativeError> + Send>;

/// The memory of one pass. It stays where it is, so that a graph of the pass can be replayed.
pub struct Set {
    /// In the order of [`Operation::inputs`].
    pub inputs: Vec<Buffer>,
    /// Those of [`NativePass::between`].
    pub between: Vec<Buffer>,
    /// In the order of [`Operation::outputs`].
    pub outputs: Vec<Buffer>,
}

impl NativePass {
    /// A pass of a single step.
    pub fn single(kernel: String, enqueue: impl Fn(&mut Set) -> Result<(), NativeError> + Send + 'static) -> Self {
        Self { kernels: vec![kernel], between: Vec::new(), enqueue: Box::new(enqueue) }
    }

    /// Puts the inputs on the device, once for each set; launches go through the sets in turn.
    pub fn open(
        self,
        operation: &dyn Operation,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (operands, slots) = (operation.inputs(spec), operation.outputs(spec));
        let encode = |(matrix, operand): (&Matrix, &Operand)| bytes(&matrix.values, operand.element);
        let contents: Vec<Vec<u8>> = inputs.iter().zip(&operands).map(encode).collect();
        let set = || -> Result<Set, NativeError> {
            Ok(Set {
                inputs: contents.iter().map(|content| machine.upload(content)).collect::<Result<_, _>>()?,
                between: self.between.iter().map(|&bytes| machine.allocate(bytes)).collect::<Result<_, _>>()?,
                outputs: slots.iter().map(|slot| machine.allocate(slot.bytes() as usize)).collect::<Result<_, _>>()?,
            })
        };
        let sets = (0..sets.max(1)).map(|_| set()).collect::<Result<_, _>>()?;
        Ok(Box::new(NativeOperator { pass: self, machine, sets, next: 0, slots }))
    }
}

struct NativeOperator {
    pass: NativePass,
    machine: Arc<Machine>,
    sets: Vec<Set>,
    next: usize,
    slots: Vec<Slot>,
}

impl Workload for NativeOperator {
    fn launch(&mut self) -> Result<(), ZooError> {
        let set = self.next;
        self.next = (set + 1) % self.sets.len();
        Ok((self.pass.enqueue)(&mut self.sets[set])?)
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        Ok(self.machine.synchronize()?)
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.next;
        let Set { between, outputs, .. } = &mut self.sets[set];
        // All ones is a NaN in every float type, e4m3 among them.
        between.iter_mut().chain(outputs).try_for_each(|buffer| buffer.fill(0xFF))?;
        self.launch()?;
        let read = |(buffer, slot): (&Buffer, &Slot)| -> Result<Output, ZooError> {
            let values = numbers(&buffer.download()?, slot.element);
            Ok(Output { rows: slot.rows as usize, cols: slot.cols as usize, values })
        };
        self.sets[set].outputs.iter().zip(&self.slots).map(read).collect()
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
            | NativeError::NoAlgorithm { .. } => Self::Unsupported(error.to_string()),
            other => Self::Device(other.to_string()),
        }
    }
}
