//! A problem on a burn backend.

use crate::{Forward, Layout, Output, Problem, Tensors, Workload, ZooError};
use burn::tensor::{DType, Tensor, TensorData, backend::Backend};
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::{Dtype, Treatment};
use std::time::{Duration, Instant};

/// Forward passes on one buffer set each, taken in turn, with their last outputs: kept so that no backend finds them
/// unused, and that each set has an output of its own.
struct BurnWorkload<B: Backend> {
    forwards: Vec<Forward<B>>,
    next: usize,
    drain: fn(&Tensor<B, 2>),
    outputs: Vec<Option<Tensor<B, 2>>>,
    device: B::Device,
    dtype: DType,
    output: [usize; 2],
    weight_bytes: u64,
    quantising: Option<Duration>,
    tf32: bool,
}

/// What tells one burn backend from another here.
pub struct Traits<B: Backend> {
    /// Makes a lazy backend enqueue what a pass has registered.
    pub drain: fn(&Tensor<B, 2>),
    /// Whether its f32 products may run on tensor cores.
    pub tf32: bool,
    /// Buffer sets that passes go through in turn.
    pub sets: u32,
}

/// Puts a problem's tensors on a device.
pub fn build<B: QuantBackend>(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &Treatment,
    device: B::Device,
    traits: Traits<B>,
) -> Result<Box<dyn Workload>, ZooError> {
    let dtype = problem.dtype.burn();
    if !B::supports_dtype(&device, dtype) {
        let name = B::name(&device);
        return Err(ZooError::Unsupported(format!("{} arithmetic is not available on {name}", problem.dtype)));
    }
    let start = Instant::now();
    let prepared: Result<Vec<_>, _> = tensors.weights.iter().map(|weight| treatment.prepare(weight)).collect();
    let prepared = prepared?;
    let quantising = (*treatment != Treatment::none(problem.dtype)).then(|| start.elapsed());
    let Traits { drain, tf32, sets } = traits;
    let (mut forwards, mut weight_bytes) = (Vec::with_capacity(sets as usize), 0);
    for _ in 0..sets.max(1) {
        let linears: Vec<_> = prepared.iter().map(|weight| treatment.upload::<B>(weight.clone(), &device)).collect();
        weight_bytes = linears.iter().map(|linear| linear.weight_bytes()).sum();
        let input = TensorData::new(tensors.input.values.to_vec(), [tensors.input.rows, tensors.input.cols]);
        let input = Tensor::from_data(input, (&device, dtype));
        forwards.push(problem.model.forward(problem.shape, linears, input));
    }
    let Layout { output: (rows, cols), .. } = problem.layout();
    let output = [rows as usize, cols as usize];
    let tf32 = tf32 && problem.dtype == Dtype::F32;
    let outputs = vec![None; forwards.len()];
    Ok(Box::new(BurnWorkload {
        forwards,
        next: 0,
        drain,
        outputs,
        device,
        dtype,
        output,
        weight_bytes,
        quantising,
        tf32,
    }))
}

impl<B: Backend> Workload for BurnWorkload<B> {
    fn launch(&mut self) -> Result<(), ZooError> {
        let set = self.next;
        self.next = (set + 1) % self.forwards.len();
        let output = (self.forwards[set])();
        (self.drain)(&output);
        self.outputs[set] = Some(output);
        Ok(())
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        B::sync(&self.device).map_err(|error| ZooError::Device(format!("{error:?}")))
    }

    fn output(&mut self) -> Result<Output, ZooError> {
        self.outputs.fill(None);
        // Freed just before the pass, this is the memory that the pool hands out for its output.
        let poison = Tensor::<B, 2>::full(self.output, f32::NAN, (&self.device, self.dtype));
        (self.drain)(&poison);
        self.settle()?;
        drop(poison);
        let set = self.next;
        self.launch()?;
        let output = self.outputs[set].take().ok_or_else(|| ZooError::Device("the pass left no output".into()))?;
        let [rows, cols] = output.dims();
        let data = output.try_into_data().map_err(|error| ZooError::Device(format!("{error:?}")))?;
        let values = data.convert::<f32>().to_vec().map_err(|error| ZooError::Device(format!("{error:?}")))?;
        Ok(Output { rows, cols, values })
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
