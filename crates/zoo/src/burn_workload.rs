//! A problem or an operator on a burn backend.

use crate::backends::BurnBackend;
use crate::{
    Forward, Layout, Matrix, OperatorProblem, Output, Pass, Problem, Setup, Slot, Spec, Tensors, Value, Workload,
    ZooError,
};
use burn::tensor::{Tensor, TensorData};
use calorimeter_recipes::{Dtype, Element, FloatType, Linear, Prepared, Treatment};
use calorimeter_shapes::Shape;
use std::time::{Duration, Instant};

/// Makes a model's forward pass of layers and an input on a device.
pub type MakeForward<B> = dyn Fn(Shape, Vec<Box<dyn Linear<B>>>, Tensor<B, 2>) -> Forward<B> + Send + Sync;

/// Takes a weight to a device, as a layer.
pub type Upload<B> =
    fn(&Treatment, Prepared, &<B as burn::tensor::backend::BackendTypes>::Device) -> Box<dyn Linear<B>>;

/// Makes an operator's pass of inputs on a device.
pub type MakePass<B> = dyn Fn(&Spec, Vec<Value<B>>) -> Result<Pass<B>, ZooError> + Send + Sync;

/// Passes on one buffer set each, taken in turn, with their last outputs: kept so that no backend finds them unused, and
/// that each set has outputs of its own.
struct BurnWorkload<B: BurnBackend> {
    passes: Vec<Pass<B>>,
    next: usize,
    outputs: Vec<Vec<Value<B>>>,
    slots: Vec<Slot>,
    device: B::Device,
    weight_bytes: u64,
    quantising: Option<Duration>,
    tf32: bool,
}

/// Puts a problem's tensors on a device.
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
    let quantising = (!treatment.is_plain()).then(|| start.elapsed());
    let (mut passes, mut weight_bytes): (Vec<Pass<B>>, u64) = (Vec::new(), 0);
    for set in 0..setup.sets.max(1) {
        let linears: Vec<_> = prepared.iter().map(|weight| upload(treatment, weight.clone(), &device)).collect();
        weight_bytes = linears.iter().map(|linear| linear.weight_bytes()).sum();
        let input = problem.input_of_set(tensors, set);
        let input = TensorData::new(input.values.to_vec(), [input.rows, input.cols]);
        let input = Tensor::from_data(input, (&device, dtype));
        let forward = forward(problem.shape, linears, input);
        passes.push(Box::new(move || vec![Value::Float(forward())]));
    }
    let Layout { output: (rows, cols), .. } = problem.layout();
    let slots = vec![Slot::new(rows, cols, Element::Float(problem.dtype))];
    let tf32 = B::TF32 && problem.dtype == Dtype::F32;
    let workload = BurnWorkload { weight_bytes, quantising, tf32, ..BurnWorkload::new(passes, slots, device) };
    Ok(Box::new(workload))
}

/// Puts an operator's inputs on a device; `make` turns them into a pass.
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
    for set in 0..setup.sets.max(1) {
        let uploaded: Result<Vec<Value<B>>, ZooError> = operands
            .iter()
            .zip(&moves.inputs_of_set(inputs, set))
            .map(|(operand, matrix)| Value::upload(matrix, operand.element, &device))
            .collect();
        passes.push(make(spec, uploaded?)?);
    }
    let tf32 = B::TF32 && operands.iter().any(|operand| operand.element == Element::Float(Dtype::F32));
    Ok(Box::new(BurnWorkload { tf32, ..BurnWorkload::new(passes, slots, device) }))
}

impl<B: BurnBackend> BurnWorkload<B> {
    fn new(passes: Vec<Pass<B>>, slots: Vec<Slot>, device: B::Device) -> Self {
        let outputs = passes.iter().map(|_| Vec::new()).collect();
        Self { passes, next: 0, outputs, slots, device, weight_bytes: 0, quantising: None, tf32: false }
    }

    /// Takes what a set's last pass left.
    fn read(&mut self, set: usize) -> Result<Vec<Output>, ZooError> {
        let outputs = std::mem::take(&mut self.outputs[set]);
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
        self.forget();
        // Freed just before the pass, this is the memory that the pool hands out for its outputs.
        let poison = |slot: &Slot| Value::<B>::poison(slot.rows, slot.cols, slot.element, &self.device);
        let poison: Vec<Value<B>> = self.slots.iter().map(poison).collect::<Result<_, _>>()?;
        if let Some(last) = poison.last() {
            B::drain(last);
        }
        self.settle()?;
        drop(poison);
        let set = self.next;
        self.launch()?;
        self.read(set)
    }

    fn kept(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        match self.outputs.get(set as usize) {
            Some(kept) if !kept.is_empty() => self.read(set as usize).map(Some),
            _ => Ok(None),
        }
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
}
