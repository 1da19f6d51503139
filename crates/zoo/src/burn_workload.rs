//! Workload of a model or operator on a burn backend.

use crate::backends::BurnBackend;
use crate::{
    DeviceCheck, Forward, Layout, Matrix, Operand, OperatorProblem, Output, OutputDigest, OutputQuery, OutputSlot,
    Pass, Problem, RotationAxis, Setup, Spec, TensorValue, Tensors, Workload, ZooError,
};
use burn::tensor::Tensor;
use calorimeter_recipes::{Element, FloatType, Linear, PreparedWeight, QuantConfig};
use calorimeter_shapes::Shape;
use std::time::{Duration, Instant};

/// Builds the forward pass of a model from its linear layers and its input on a device.
pub(crate) type ForwardFactory<B> = dyn Fn(Shape, Vec<Box<dyn Linear<B>>>, Tensor<B, 2>) -> Forward<B> + Send + Sync;

/// Uploads a prepared weight and returns the linear layer that uses it.
pub(crate) type LinearUploader<B> =
    fn(&QuantConfig, PreparedWeight, &<B as burn::tensor::backend::BackendTypes>::Device) -> Box<dyn Linear<B>>;

/// Builds the pass of an operator from its inputs on a device.
pub(crate) type PassFactory<B> = dyn Fn(&Spec, Vec<TensorValue<B>>) -> Result<Pass<B>, ZooError> + Send + Sync;

/// Maps (output, set) to the segment length in elements and the shift by which each segment is rotated in that set.
type OutputRotation = dyn Fn(usize, u32) -> (usize, usize) + Send;

/// Passes over buffer sets, launched round-robin, with the last outputs of each set.
///
/// Outputs are stored so that a backend cannot eliminate the computation as unused, and so that sets do not share
/// outputs.
struct BurnWorkload<B: BurnBackend> {
    passes: Vec<Pass<B>>,
    next: usize,
    outputs: Vec<Vec<TensorValue<B>>>,
    slots: Vec<OutputSlot>,
    rotation: Box<OutputRotation>,
    /// First outputs of set 0, if the device can compare outputs; empty before the first check.
    reference: Vec<TensorValue<B>>,
    device: B::Device,
    weight_bytes: u64,
    quantization_time: Option<Duration>,
}

/// Uploads the tensors of a model once per buffer set.
pub(crate) fn build_model<B: BurnBackend>(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &QuantConfig,
    setup: Setup,
    upload: LinearUploader<B>,
    forward: &ForwardFactory<B>,
) -> Result<Box<dyn Workload>, ZooError> {
    let device = B::handle(setup.device)?;
    let dtype = problem.dtype.burn();
    if !B::supports_dtype(&device, dtype) {
        let name = B::name(&device);
        return Err(ZooError::Unsupported(format!("{} arithmetic is not available on {name}", problem.dtype)));
    }
    let start = Instant::now();
    let prepared: Result<Vec<_>, _> = tensors.weights.iter().map(|weight| treatment.prepare(weight)).collect();
    let prepared = prepared?;
    let quantizing = (!treatment.is_unmodified()).then(|| start.elapsed());
    let (mut passes, mut weight_bytes): (Vec<Pass<B>>, u64) = (Vec::new(), 0);
    let element = Element::Float(problem.dtype);
    let first = TensorValue::upload(&tensors.input, element, &device)?;
    for set in 0..setup.sets.max(1) {
        let linears: Vec<_> = prepared.iter().map(|weight| upload(treatment, weight.clone(), &device)).collect();
        weight_bytes = linears.iter().map(|linear| linear.weight_bytes()).sum();
        let input = || problem.input_of_set(tensors, set);
        let input = input_of_set(&first, set, problem.rotation(set, tensors.input.rows), || {
            TensorValue::upload(&input(), element, &device)
        })?;
        let forward = forward(problem.shape, linears, input.float());
        passes.push(Box::new(move || vec![TensorValue::Float(forward())]));
    }
    let Layout { output: (rows, cols), .. } = problem.layout();
    let slots = vec![OutputSlot::new(rows, cols, element)];
    let (problem, rows, cols) = (*problem, rows as usize, cols as usize);
    let lines = Box::new(move |_, set| (rows * cols, problem.rotation(set, rows).1 * cols));
    Ok(Box::new(BurnWorkload {
        weight_bytes,
        quantization_time: quantizing,
        ..BurnWorkload::new(passes, slots, lines, device)
    }))
}

/// Uploads the inputs of an operator once per buffer set; `make` builds each pass from them.
pub(crate) fn build_operator<B: BurnBackend>(
    problem: &OperatorProblem,
    inputs: &[Matrix],
    setup: Setup,
    make: &PassFactory<B>,
) -> Result<Box<dyn Workload>, ZooError> {
    let device = B::handle(setup.device)?;
    let OperatorProblem { operator, spec, .. } = problem;
    let (operands, slots) = (operator.inputs(spec), operator.outputs(spec));
    for slot in &slots {
        let dtype = crate::value::burn_dtype(slot.element)?;
        if !B::supports_dtype(&device, dtype) {
            let name = B::name(&device);
            return Err(ZooError::Unsupported(format!("{} is not available on {name}", slot.element)));
        }
    }
    let mut passes = Vec::new();
    let moves = operator.set_rotation(spec);
    let upload = |matrix: &Matrix, operand: &Operand| TensorValue::upload(matrix, operand.element, &device);
    let first = inputs.iter().zip(&operands).map(|(matrix, operand)| upload(matrix, operand));
    let first: Vec<TensorValue<B>> = first.collect::<Result<_, _>>()?;
    for set in 0..setup.sets.max(1) {
        let input = |(index, first): (usize, &TensorValue<B>)| {
            let Matrix { rows, cols, .. } = inputs[index];
            let upload = || upload(&moves.inputs_of_set(inputs, set)[index], &operands[index]);
            input_of_set(first, set, moves.input_rotation(index, [rows, cols], set), upload)
        };
        passes.push(make(spec, first.iter().enumerate().map(input).collect::<Result<_, _>>()?)?);
    }
    let sizes: Vec<[usize; 2]> = slots.iter().map(|slot| [slot.rows as usize, slot.cols as usize]).collect();
    let lines = Box::new(move |output: usize, set| moves.output_rotation(output, sizes[output], set));
    Ok(Box::new(BurnWorkload::new(passes, slots, lines, device)))
}

/// Returns an input of a buffer set: the input of set 0 rotated on the device, or uploaded by the host if that is
/// unsupported.
fn input_of_set<B: BurnBackend>(
    first: &TensorValue<B>,
    set: u32,
    (along, by): (RotationAxis, usize),
    upload: impl Fn() -> Result<TensorValue<B>, ZooError>,
) -> Result<TensorValue<B>, ZooError> {
    if set == 0 {
        return Ok(first.clone());
    }
    let Some(moved) = first.rotated(along, by) else { return upload() };
    // A lazy backend would run the rotation in the first pass, possibly fused with its kernels.
    B::drain(&moved);
    Ok(moved)
}

impl<B: BurnBackend> BurnWorkload<B> {
    fn new(passes: Vec<Pass<B>>, slots: Vec<OutputSlot>, rotation: Box<OutputRotation>, device: B::Device) -> Self {
        let (outputs, reference) = (passes.iter().map(|_| Vec::new()).collect(), Vec::new());
        Self { passes, next: 0, outputs, slots, rotation, reference, device, weight_bytes: 0, quantization_time: None }
    }

    /// Runs one pass on the next set into memory filled with NaN; returns the index of the set.
    fn poisoned_pass(&mut self) -> Result<usize, ZooError> {
        self.free_outputs();
        // Memory freed just before the pass is reused by the pool for the outputs.
        let poison = |slot: &OutputSlot| TensorValue::<B>::poison(slot.rows, slot.cols, slot.element, &self.device);
        let poison: Vec<TensorValue<B>> = self.slots.iter().map(poison).collect::<Result<_, _>>()?;
        if let Some(last) = poison.last() {
            B::drain(last);
        }
        self.synchronize()?;
        drop(poison);
        let set = self.next;
        self.launch()?;
        Ok(set)
    }

    /// Saves the outputs of set 0 as reference, once, if the device can compare outputs.
    fn save_reference(&mut self, set: usize) {
        if B::CAN_COMPARE && set == 0 && self.reference.is_empty() {
            self.reference = self.outputs[0].clone();
        }
    }

    /// Downloads the last outputs of a set and removes them.
    fn take_outputs(&mut self, set: usize) -> Result<Vec<Output>, ZooError> {
        let outputs = std::mem::take(&mut self.outputs[set]);
        self.download_all(outputs)
    }

    fn download_all(&self, outputs: Vec<TensorValue<B>>) -> Result<Vec<Output>, ZooError> {
        outputs.into_iter().zip(&self.slots).map(|(output, slot)| output.download(slot.element)).collect()
    }
}

impl<B: BurnBackend> Workload for BurnWorkload<B> {
    fn launch(&mut self) -> Result<(), ZooError> {
        let set = self.next;
        self.next = (set + 1) % self.passes.len();
        let outputs = (self.passes[set])();
        if let Some(output) = outputs.last() {
            B::drain(output);
        }
        self.outputs[set] = outputs;
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), ZooError> {
        B::sync(&self.device).map_err(|error| ZooError::Device(format!("{error:?}")))
    }

    fn free_outputs(&mut self) {
        self.outputs.iter_mut().for_each(Vec::clear);
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.poisoned_pass()?;
        self.save_reference(set);
        self.take_outputs(set)
    }

    // Outputs that stay on the device must be comparable there with other sets.
    fn device_check(&mut self) -> Option<&mut dyn DeviceCheck> {
        if B::CAN_COMPARE { Some(self) } else { None }
    }

    fn last_outputs(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        match self.outputs.get(set as usize) {
            Some(kept) if !kept.is_empty() => self.take_outputs(set as usize).map(Some),
            _ => Ok(None),
        }
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }

    fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }

    fn quantization_time(&self) -> Option<Duration> {
        self.quantization_time
    }

    fn may_use_tf32(&self) -> bool {
        B::TF32
    }
}

impl<B: BurnBackend> DeviceCheck for BurnWorkload<B> {
    fn output_digests(&mut self, looks: &[OutputQuery<'_>]) -> Result<Option<Vec<OutputDigest>>, ZooError> {
        if looks.len() != self.slots.len() {
            return Ok(None);
        }
        let set = self.poisoned_pass()?;
        self.save_reference(set);
        let outputs = std::mem::take(&mut self.outputs[set]);
        let seen =
            |((output, slot), look): ((TensorValue<B>, &OutputSlot), &OutputQuery<'_>)| match B::digest(&output, look)?
            {
                Some(seen) => Ok(seen),
                None => Ok(output.download(slot.element)?.digest(look)),
            };
        outputs.into_iter().zip(&self.slots).zip(looks).map(seen).collect::<Result<_, ZooError>>().map(Some)
    }

    fn reference_outputs(&mut self) -> Result<Option<Vec<Output>>, ZooError> {
        if self.reference.is_empty() {
            return Ok(None);
        }
        self.download_all(self.reference.clone()).map(Some)
    }

    fn matches_reference(&mut self, set: u32) -> Result<Option<bool>, ZooError> {
        let Some(outputs) = self.outputs.get(set as usize).filter(|outputs| !outputs.is_empty()) else {
            return Ok(None);
        };
        if self.reference.len() != outputs.len() {
            return Ok(None);
        }
        for (index, (output, first)) in outputs.iter().zip(&self.reference).enumerate() {
            let (line, by) = (self.rotation)(index, set);
            match B::is_rotation_of(output, first, line, by)? {
                Some(true) => {}
                other => return Ok(other),
            }
        }
        Ok(Some(true))
    }

    fn run_and_match(&mut self) -> Result<Option<bool>, ZooError> {
        if self.reference.is_empty() {
            return Ok(None);
        }
        let set = self.poisoned_pass()?;
        // If the device cannot compare, `false` makes the caller compare on the host: the outputs are still stored.
        Ok(Some(self.matches_reference(set as u32)?.unwrap_or(false)))
    }
}
