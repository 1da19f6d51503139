//! A problem on a burn backend.

use crate::{Forward, Layout, Output, Problem, Tensors, Workload, ZooError};
use burn::tensor::{DType, Tensor, TensorData, backend::Backend};
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::{Dtype, Treatment};
use std::time::{Duration, Instant};

/// A forward pass with its last output, which is kept so that no backend finds it unused.
struct BurnWorkload<B: Backend> {
    forward: Forward<B>,
    drain: fn(&Tensor<B, 2>),
    last: Option<Tensor<B, 2>>,
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
    let (mut linears, mut quantising) = (Vec::new(), Duration::ZERO);
    for weight in &tensors.weights {
        let start = Instant::now();
        let prepared = treatment.prepare(weight)?;
        quantising += start.elapsed();
        linears.push(treatment.upload::<B>(prepared, &device));
    }
    let quantising = (*treatment != Treatment::none(problem.dtype)).then_some(quantising);
    let weight_bytes = linears.iter().map(|linear| linear.weight_bytes()).sum();
    let input = TensorData::new(tensors.input.values.to_vec(), [tensors.input.rows, tensors.input.cols]);
    let input = Tensor::from_data(input, (&device, dtype));
    let Layout { output: (rows, cols), .. } = problem.layout();
    let forward = problem.model.forward(problem.shape, linears, input);
    let output = [rows as usize, cols as usize];
    let Traits { drain, tf32 } = traits;
    let tf32 = tf32 && problem.dtype == Dtype::F32;
    Ok(Box::new(BurnWorkload { forward, drain, last: None, device, dtype, output, weight_bytes, quantising, tf32 }))
}

impl<B: Backend> Workload for BurnWorkload<B> {
    fn launch(&mut self) -> Result<(), ZooError> {
        let output = (self.forward)();
        (self.drain)(&output);
        self.last = Some(output);
        Ok(())
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        B::sync(&self.device).map_err(|error| ZooError::Device(format!("{error:?}")))
    }

    fn output(&mut self) -> Result<Output, ZooError> {
        self.last = None;
        // Freed just before the pass, this is the memory that the pool hands out for its output.
        let poison = Tensor::<B, 2>::full(self.output, f32::NAN, (&self.device, self.dtype));
        (self.drain)(&poison);
        self.settle()?;
        drop(poison);
        self.launch()?;
        let output = self.last.take().ok_or_else(|| ZooError::Device("the pass left no output".into()))?;
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
