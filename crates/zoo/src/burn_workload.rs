//! Workload of a model or operator on a burn backend.

use crate::backends::BurnBackend;
use crate::{
    Along, Forward, Layout, Look, Matrix, Operand, OperatorProblem, Output, Pass, Problem, Seen, Setup, Slot, Spec,
    Tensors, Value, Workload, ZooError,
};
use burn::tensor::Tensor;
use calorimeter_recipes::{Element, FloatType, Linear, Prepared, Treatment};
use calorimeter_shapes::Shape;
use std::time::{Duration, Instant};

/// Builds the forward pass of a model from its linear layers and its input on a device.
pub type MakeForward<B> = dyn Fn(Shape, Vec<Box<dyn Linear<B>>>, Tensor<B, 2>) -> Forward<B> + Send + Sync;

/// Uploads a prepared weight and returns the linear layer that uses it.
pub type Upload<B> =
    fn(&Treatment, Prepared, &<B as burn::tensor::backend::BackendTypes>::Device) -> Box<dyn Linear<B>>;

/// Builds the pass of an operator from its inputs on a device.
pub type MakePass<B> = dyn Fn(&Spec, Vec<Value<B>>) -> Result<Pass<B>, ZooError> + Send + Sync;

/// Maps (output, set) to the segment length in elements and the shift by which each segment is rotated in that set.
type Lines = dyn Fn(usize, u32) -> (usize, usize) + Send;

/// Passes over buffer sets, launched round-robin, with the last outputs of each set.
///
/// Outputs are stored so that a backend cannot eliminate the computation as unused, and so that sets do not share
/// outputs.
struct BurnWorkload<B: BurnBackend> {
    passes: Vec<Pass<B>>,
    next: usize,
    outputs: Vec<Vec<Value<B>>>,
    slots: Vec<Slot>,
    lines: Box<Lines>,
    /// First outputs of set 0, if the device can compare outputs; empty before the first check.
    first: Vec<Value<B>>,
    device: B::Device,
    weight_bytes: u64,
    quantizing: Option<Duration>,
}

/// Uploads the tensors of a model once per buffer set.
pub fn build<B: BurnBackend>(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &Treatment,
    setup: Setup,
    upload: Upload<B>,
    forward: &MakeForward<B>,
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
    let quantizing = (!treatment.is_plain()).then(|| start.elapsed());
    let (mut passes, mut weight_bytes): (Vec<Pass<B>>, u64) = (Vec::new(), 0);
    let element = Element::Float(problem.dtype);
    let first = Value::upload(&tensors.input, element, &device)?;
    for set in 0..setup.sets.max(1) {
        let linears: Vec<_> = prepared.iter().map(|weight| upload(treatment, weight.clone(), &device)).collect();
        weight_bytes = linears.iter().map(|linear| linear.weight_bytes()).sum();
        let input = || problem.input_of_set(tensors, set);
        let input =
            of_set(&first, set, problem.way(set, tensors.input.rows), || Value::upload(&input(), element, &device))?;
        let forward = forward(problem.shape, linears, input.float());
        passes.push(Box::new(move || vec![Value::Float(forward())]));
    }
    let Layout { output: (rows, cols), .. } = problem.layout();
    let slots = vec![Slot::new(rows, cols, element)];
    let (problem, rows, cols) = (*problem, rows as usize, cols as usize);
    let lines = Box::new(move |_, set| (rows * cols, problem.way(set, rows).1 * cols));
    Ok(Box::new(BurnWorkload { weight_bytes, quantizing, ..BurnWorkload::new(passes, slots, lines, device) }))
}

/// Uploads the inputs of an operator once per buffer set; `make` builds each pass from them.
pub fn build_operator<B: BurnBackend>(
    problem: &OperatorProblem,
    inputs: &[Matrix],
    setup: Setup,
    make: &MakePass<B>,
) -> Result<Box<dyn Workload>, ZooError> {
    let device = B::handle(setup.device)?;
    let OperatorProblem { operator, spec, .. } = problem;
    let (operands, slots) = (operator.inputs(spec), operator.outputs(spec));
    for slot in &slots {
        let dtype = crate::value::stored(slot.element)?;
        if !B::supports_dtype(&device, dtype) {
            let name = B::name(&device);
            return Err(ZooError::Unsupported(format!("{} is not available on {name}", slot.element)));
        }
    }
    let mut passes = Vec::new();
    let moves = operator.moves(spec);
    let upload = |matrix: &Matrix, operand: &Operand| Value::upload(matrix, operand.element, &device);
    let first = inputs.iter().zip(&operands).map(|(matrix, operand)| upload(matrix, operand));
    let first: Vec<Value<B>> = first.collect::<Result<_, _>>()?;
    for set in 0..setup.sets.max(1) {
        let input = |(index, first): (usize, &Value<B>)| {
            let Matrix { rows, cols, .. } = inputs[index];
            let upload = || upload(&moves.inputs_of_set(inputs, set)[index], &operands[index]);
            of_set(first, set, moves.of_input(index, [rows, cols], set), upload)
        };
        passes.push(make(spec, first.iter().enumerate().map(input).collect::<Result<_, _>>()?)?);
    }
    let sizes: Vec<[usize; 2]> = slots.iter().map(|slot| [slot.rows as usize, slot.cols as usize]).collect();
    let lines = Box::new(move |output: usize, set| moves.of_output(output, sizes[output], set));
    Ok(Box::new(BurnWorkload::new(passes, slots, lines, device)))
}

/// Returns an input of a buffer set: the input of set 0 rotated on the device, or uploaded by the host if that is
/// unsupported.
fn of_set<B: BurnBackend>(
    first: &Value<B>,
    set: u32,
    (along, by): (Along, usize),
    upload: impl Fn() -> Result<Value<B>, ZooError>,
) -> Result<Value<B>, ZooError> {
    if set == 0 {
        return Ok(first.clone());
    }
    let Some(moved) = first.moved_on(along, by) else { return upload() };
    // A lazy backend would run the rotation in the first pass, possibly fused with its kernels.
    B::drain(&moved);
    Ok(moved)
}

impl<B: BurnBackend> BurnWorkload<B> {
    fn new(passes: Vec<Pass<B>>, slots: Vec<Slot>, lines: Box<Lines>, device: B::Device) -> Self {
        let (outputs, first) = (passes.iter().map(|_| Vec::new()).collect(), Vec::new());
        Self { passes, next: 0, outputs, slots, lines, first, device, weight_bytes: 0, quantizing: None }
    }

    /// Runs one pass on the next set into memory filled with NaN; returns the index of the set.
    fn poisoned_pass(&mut self) -> Result<usize, ZooError> {
        self.forget();
        // Memory freed just before the pass is reused by the pool for the outputs.
        let poison = |slot: &Slot| Value::<B>::poison(slot.rows, slot.cols, slot.element, &self.device);
        let poison: Vec<Value<B>> = self.slots.iter().map(poison).collect::<Result<_, _>>()?;
        if let Some(last) = poison.last() {
            B::drain(last);
        }
        self.settle()?;
        drop(poison);
        let set = self.next;
        self.launch()?;
        Ok(set)
    }

    /// Saves the outputs of set 0 as reference, once, if the device can compare outputs.
    fn keep(&mut self, set: usize) {
        if B::COMPARES && set == 0 && self.first.is_empty() {
            self.first = self.outputs[0].clone();
        }
    }

    /// Downloads the last outputs of a set and removes them.
    fn read(&mut self, set: usize) -> Result<Vec<Output>, ZooError> {
        let outputs = std::mem::take(&mut self.outputs[set]);
        self.downloaded(outputs)
    }

    fn downloaded(&self, outputs: Vec<Value<B>>) -> Result<Vec<Output>, ZooError> {
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

    fn settle(&mut self) -> Result<(), ZooError> {
        B::sync(&self.device).map_err(|error| ZooError::Device(format!("{error:?}")))
    }

    fn forget(&mut self) {
        self.outputs.iter_mut().for_each(Vec::clear);
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.poisoned_pass()?;
        self.keep(set);
        self.read(set)
    }

    fn seen(&mut self, looks: &[Look<'_>]) -> Result<Option<Vec<Seen>>, ZooError> {
        // Outputs that are not downloaded must stay on the device, where other sets are compared with them.
        if !B::COMPARES || looks.len() != self.slots.len() {
            return Ok(None);
        }
        let set = self.poisoned_pass()?;
        self.keep(set);
        let outputs = std::mem::take(&mut self.outputs[set]);
        let seen = |((output, slot), look): ((Value<B>, &Slot), &Look<'_>)| match B::seen(&output, look)? {
            Some(seen) => Ok(seen),
            None => Ok(output.download(slot.element)?.looked_at(look)),
        };
        outputs.into_iter().zip(&self.slots).zip(looks).map(seen).collect::<Result<_, ZooError>>().map(Some)
    }

    fn first(&mut self) -> Result<Option<Vec<Output>>, ZooError> {
        if self.first.is_empty() {
            return Ok(None);
        }
        self.downloaded(self.first.clone()).map(Some)
    }

    fn kept(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        match self.outputs.get(set as usize) {
            Some(kept) if !kept.is_empty() => self.read(set as usize).map(Some),
            _ => Ok(None),
        }
    }

    fn is_like_first(&mut self, set: u32) -> Result<Option<bool>, ZooError> {
        let Some(outputs) = self.outputs.get(set as usize).filter(|outputs| !outputs.is_empty()) else {
            return Ok(None);
        };
        if self.first.len() != outputs.len() {
            return Ok(None);
        }
        for (index, (output, first)) in outputs.iter().zip(&self.first).enumerate() {
            let (line, by) = (self.lines)(index, set);
            match B::is_moved_on(output, first, line, by)? {
                Some(true) => {}
                other => return Ok(other),
            }
        }
        Ok(Some(true))
    }

    fn passes_like_first(&mut self) -> Result<Option<bool>, ZooError> {
        if self.first.is_empty() {
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
        self.weight_bytes
    }

    fn quantizing(&self) -> Option<Duration> {
        self.quantizing
    }

    fn may_use_tf32(&self) -> bool {
        B::TF32
    }
}
