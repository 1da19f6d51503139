//! `native` on CUDA: cuBLASLt and CUDA C++ kernels on their own stream and buffers.

mod digest;
pub mod linear;
mod upload;
pub(crate) mod weight;
pub(crate) mod workload;

use crate::element_bytes::decode;
use crate::{
    DeviceCheck, Matrix, Operand, Operation, Output, OutputDigest, OutputQuery, OutputSlot, SetRotation, Spec,
    Workload, ZooError,
};
use calorimeter_kernels::native::{CudaDevice, CudaKernel, DeviceBuffer, DeviceMatrix, LineRotation, NativeError};
use calorimeter_recipes::Dtype;
use std::sync::Arc;

/// Pass of an operator: planned kernels that run on the buffers of a buffer set.
pub struct NativePass {
    /// Kernels and their configurations, in order.
    kernels: Vec<String>,
    /// Bytes of each scratch buffer between steps.
    scratch_bytes: Vec<usize>,
    /// Fills the scratch buffers of each set once, if passes only read them.
    fill_scratch: Option<EnqueueSteps>,
    /// Converts an output to the declared layout, if passes store another one.
    convert_output: Option<LayoutConversion>,
    /// Enqueues the steps.
    enqueue: EnqueueSteps,
}

/// Enqueues work on a buffer set.
pub type EnqueueSteps = Box<dyn FnMut(&mut BufferSet) -> Result<(), NativeError> + Send>;

/// Converts a buffer to another layout.
pub type LayoutConversion = Box<dyn Fn(&DeviceBuffer) -> Result<DeviceBuffer, NativeError> + Send>;

/// Memory of one pass. Addresses are stable, so that a graph of the pass can be replayed.
pub struct BufferSet {
    /// In the order of [`Signature::inputs`](crate::Signature::inputs).
    pub inputs: Vec<DeviceBuffer>,
    /// Scratch buffers, as the pass declares them.
    pub scratch: Vec<DeviceBuffer>,
    /// In the order of [`Signature::outputs`](crate::Signature::outputs).
    pub outputs: Vec<DeviceBuffer>,
}

impl NativePass {
    /// Pass of several steps with scratch buffers of the given sizes in bytes.
    pub fn new(
        kernels: Vec<String>,
        scratch_bytes: Vec<usize>,
        enqueue: impl FnMut(&mut BufferSet) -> Result<(), NativeError> + Send + 'static,
    ) -> Self {
        Self { kernels, scratch_bytes, fill_scratch: None, convert_output: None, enqueue: Box::new(enqueue) }
    }

    /// Sets a function that fills the scratch buffers of each set once.
    pub fn with_filled_scratch(self, before: Option<EnqueueSteps>) -> Self {
        Self { fill_scratch: before, ..self }
    }

    /// Sets a conversion of outputs from the layout of the pass to the declared one.
    pub fn with_output_conversion(self, read: LayoutConversion) -> Self {
        Self { convert_output: Some(read), ..self }
    }

    /// Pass of one kernel that reads all inputs and writes all outputs, in order.
    pub fn of(kernel: CudaKernel) -> Self {
        Self::single(kernel.algorithm(), move |BufferSet { inputs, outputs, .. }| kernel.enqueue(&*inputs, outputs))
    }

    /// Pass of a single step.
    pub fn single(
        kernel: String,
        enqueue: impl FnMut(&mut BufferSet) -> Result<(), NativeError> + Send + 'static,
    ) -> Self {
        Self::new(vec![kernel], Vec::new(), enqueue)
    }

    /// Uploads the inputs once per buffer set. Launches rotate through the sets.
    pub fn open(
        mut self,
        operation: &dyn Operation,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (operands, slots) = (operation.inputs(spec), operation.outputs(spec));
        let upload = |(matrix, operand): (&Matrix, &Operand)| upload::upload(&machine, matrix, operand.element);
        let moves = operation.set_rotation(spec);
        let with = |inputs: Vec<DeviceBuffer>| -> Result<BufferSet, NativeError> {
            let between = self.scratch_bytes.iter().map(|&bytes| machine.allocate(bytes)).collect::<Result<_, _>>()?;
            let outputs = slots.iter().map(|slot| machine.allocate(slot.bytes() as usize)).collect::<Result<_, _>>()?;
            Ok(BufferSet { inputs, scratch: between, outputs })
        };
        let first = with(inputs.iter().zip(&operands).map(upload).collect::<Result<_, _>>()?)?;
        let moved = |set: u32, index: usize| {
            let (buffer, Matrix { rows, cols, .. }) = (&first.inputs[index], &inputs[index]);
            match moves.input_rotation_in_bytes(index, [*rows, *cols], buffer.len(), set) {
                Some(circle) => machine.rotate_lines(buffer, circle),
                None => upload((&moves.inputs_of_set(inputs, set)[index], &operands[index])),
            }
        };
        let others = 1..sets.max(1);
        let others =
            others.map(|set| with((0..inputs.len()).map(|index| moved(set, index)).collect::<Result<_, _>>()?));
        let others: Vec<BufferSet> = others.collect::<Result<_, _>>()?;
        let mut sets: Vec<BufferSet> = std::iter::once(first).chain(others).collect();
        for set in &mut sets {
            set.poison(true)?;
            if let Some(before) = &mut self.fill_scratch {
                before(set)?;
            }
        }
        let ran = vec![false; sets.len()];
        Ok(Box::new(NativeOperator { pass: self, machine, sets, ran, next: 0, slots, moves, reference: None }))
    }
}

struct NativeOperator {
    pass: NativePass,
    machine: Arc<CudaDevice>,
    sets: Vec<BufferSet>,
    /// For each set: true after a pass on it.
    ran: Vec<bool>,
    next: usize,
    slots: Vec<OutputSlot>,
    moves: SetRotation,
    /// Copies of the first checked outputs of set 0.
    reference: Option<Vec<DeviceBuffer>>,
}

impl BufferSet {
    /// Fills outputs, and optionally scratch buffers, with ones: NaN in every float type, including e4m3.
    fn poison(&mut self, between_too: bool) -> Result<(), NativeError> {
        let Self { scratch: between, outputs, .. } = self;
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
        self.sets[set].poison(self.pass.fill_scratch.is_none())?;
        self.launch()?;
        Ok(set)
    }

    fn read(&self, outputs: &[DeviceBuffer]) -> Result<Vec<Output>, ZooError> {
        let read = |(buffer, slot): (&DeviceBuffer, &OutputSlot)| -> Result<Output, ZooError> {
            let arranged = self.pass.convert_output.as_ref().map(|read| read(buffer)).transpose()?;
            let values = decode(&arranged.as_ref().unwrap_or(buffer).download()?, slot.element);
            Ok(Output { rows: slot.rows as usize, cols: slot.cols as usize, values })
        };
        outputs.iter().zip(&self.slots).map(read).collect()
    }

    /// Copies the outputs of set 0 as reference, once.
    fn save_reference(&mut self, set: usize) -> Result<(), ZooError> {
        if set == 0 && self.reference.is_none() {
            let copies = self.sets[0].outputs.iter().map(|output| try_copy(&self.machine, output));
            self.reference = copies.collect::<Result<_, _>>()?;
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

    fn synchronize(&mut self) -> Result<(), ZooError> {
        Ok(self.machine.synchronize()?)
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.poisoned_pass()?;
        self.save_reference(set)?;
        self.read(&self.sets[set].outputs)
    }

    fn device_check(&mut self) -> Option<&mut dyn DeviceCheck> {
        Some(self)
    }

    fn last_outputs(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        let ran = self.ran.get(set as usize).copied().unwrap_or(false);
        ran.then(|| self.read(&self.sets[set as usize].outputs)).transpose()
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }

    fn kernel(&self) -> Option<String> {
        Some(self.pass.kernels.join("; then "))
    }
}

impl DeviceCheck for NativeOperator {
    fn output_digests(&mut self, looks: &[OutputQuery<'_>]) -> Result<Option<Vec<OutputDigest>>, ZooError> {
        let outputs = &self.sets[self.next].outputs;
        let kinds: Option<Vec<Dtype>> = self.slots.iter().map(|slot| digest::digest_dtype(slot.element)).collect();
        let Some(kinds) = kinds.filter(|kinds| kinds.len() == looks.len()) else { return Ok(None) };
        if self.reference.is_none() && !digest::can_copy(&self.machine, outputs)? {
            return Ok(None);
        }
        let set = self.poisoned_pass()?;
        self.save_reference(set)?;
        let mut seen = Vec::new();
        for (((buffer, slot), kind), look) in self.sets[set].outputs.iter().zip(&self.slots).zip(kinds).zip(looks) {
            let arranged = self.pass.convert_output.as_ref().map(|read| read(buffer)).transpose()?;
            let (buffer, size) =
                (arranged.as_ref().unwrap_or(buffer), [slot.rows, slot.cols].map(|size| size as usize));
            seen.push(digest::compute_digest(&self.machine, DeviceMatrix { buffer, kind, size }, look)?);
        }
        Ok(Some(seen))
    }

    fn reference_outputs(&mut self) -> Result<Option<Vec<Output>>, ZooError> {
        self.reference.as_ref().map(|right| self.read(right)).transpose()
    }

    fn matches_reference(&mut self, set: u32) -> Result<Option<bool>, ZooError> {
        let Self { machine, sets, ran, slots, moves, reference: Some(right), .. } = self else { return Ok(None) };
        if !ran.get(set as usize).copied().unwrap_or(false) {
            return Ok(None);
        }
        for (index, (right, output)) in right.iter().zip(&sets[set as usize].outputs).enumerate() {
            let Some(circle) = moves.output_rotation_in_bytes(index, &slots[index], output.len(), set) else {
                return Ok(None);
            };
            if !machine.is_rotation_of(right, output, circle)? {
                return Ok(Some(false));
            }
        }
        Ok(Some(true))
    }

    fn run_and_match(&mut self) -> Result<Option<bool>, ZooError> {
        if self.reference.is_none() {
            return Ok(None);
        }
        let set = self.poisoned_pass()?;
        // If the device cannot compare, `false` makes the caller compare on the host: the outputs are still stored.
        Ok(Some(self.matches_reference(set as u32)?.unwrap_or(false)))
    }
}

/// Copies an output; `None` if the device is out of memory.
fn try_copy(machine: &CudaDevice, output: &DeviceBuffer) -> Result<Option<DeviceBuffer>, NativeError> {
    match machine.rotate_lines(output, LineRotation::identity(output.len())) {
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
            | NativeError::WrongGpuGeneration { .. }
            | NativeError::HeadWidth { .. }
            | NativeError::UnsupportedDtype { .. }
            | NativeError::UnsupportedConvolution { .. }
            | NativeError::NoPlan { .. }
            | NativeError::SparseRowLength { .. }
            | NativeError::Rejected(_)
            | NativeError::WeightBlockSize { .. }
            | NativeError::NoAlgorithm { .. } => Self::Unsupported(error.to_string()),
            other => Self::Device(other.to_string()),
        }
    }
}
