//! Linear layer on the CPU, optionally between a layer normalization and an activation.
//!
//! Input and output have the dtype of the problem; accumulators are f32 or integers.

use super::layer::{HostLayer, accepts, to_dtype};
use crate::rotating_workload::{self, SetPass, WorkloadProperties};
use crate::{Activate, Activation, Layout, Output, Problem, Tensors, Workload, ZooError};
use calorimeter_kernels::host::{FloatVec, layer_norm};
use calorimeter_kernels::rowwise::{bf16_to_f32, to_bf16};
use calorimeter_recipes::{Element, QuantConfig};
use rayon::prelude::*;
use std::time::Instant;

/// Minimum elements per thread.
const MIN_LEN_PER_THREAD: usize = 1 << 14;

/// Input, weight and output of one pass.
struct HostLinearSet {
    input: FloatVec,
    layer: HostLayer,
    output: FloatVec,
}

/// Intermediate results of a pass; empty if no step needs them.
#[derive(Default)]
struct HostLinearScratch {
    /// Input and output in f32, if they are stored in another dtype.
    input: Vec<f32>,
    output: Vec<f32>,
    /// Normalized input.
    normalized: Vec<f32>,
}

struct HostLinear {
    /// Rows and columns of the output, and columns of the input.
    size: [usize; 3],
    activation: Option<Activation>,
    scratch: HostLinearScratch,
}

/// Checks that there is a kernel for the layer; the error lists supported recipes.
pub fn check_support(problem: &Problem, treatment: &QuantConfig) -> Result<(), String> {
    let Layout { input: (m, k), .. } = problem.layout();
    accepts(treatment, m as usize, k as usize)
}

/// Creates the workload with a separate weight per set. With an activation, a layer normalization precedes the layer.
pub fn open(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &QuantConfig,
    activation: Option<Activation>,
    sets: u32,
) -> Result<Box<dyn Workload>, ZooError> {
    let Layout { input: (m, k), output: (_, n), .. } = problem.layout();
    let [m, n, k] = [m, n, k].map(|size| size as usize);
    let start = Instant::now();
    let layer = HostLayer::new(&tensors.weights[0], treatment, m)?;
    let quantization_time = (!treatment.is_unmodified()).then(|| start.elapsed());
    let element = Element::Float(problem.dtype);
    let set = |set: u32| HostLinearSet {
        input: to_dtype(&problem.input_of_set(tensors, set).values, element),
        layer: layer.clone(),
        // Writing the output here maps its pages before the first launch.
        output: to_dtype(&vec![f32::NAN; m * n], element),
    };
    let sets: Vec<HostLinearSet> = (0..sets.max(1)).map(set).collect();
    let mut between = HostLinearScratch::default();
    if let FloatVec::Bf16(_) = sets[0].input {
        (between.input, between.output) = (vec![0.0; m * k], vec![0.0; m * n]);
    }
    if activation.is_some() {
        between.normalized = vec![0.0; m * k];
    }
    let linear = layer.kernel(m);
    let kernel = match activation {
        Some(activation) => format!("rows normalized; then {linear}; then {}", activation.name()),
        None => linear,
    };
    let weight_bytes = layer.weight_bytes() as u64;
    let properties = WorkloadProperties { kernel: Some(kernel), weight_bytes, quantization_time, ..Default::default() };
    Ok(rotating_workload::open(HostLinear { size: [m, n, k], activation, scratch: between }, sets, properties))
}

impl HostLinear {
    fn read(&self, set: &HostLinearSet) -> Vec<Output> {
        vec![Output { rows: self.size[0], cols: self.size[1], values: set.output.to_f32() }]
    }
}

impl SetPass for HostLinear {
    type Set = HostLinearSet;

    fn launch(&mut self, HostLinearSet { input, layer, output }: &mut HostLinearSet) -> Result<(), ZooError> {
        let (k, activation) = (self.size[2], self.activation);
        let between = &mut self.scratch;
        let (mut x, rounds): (&[f32], bool) = match input {
            FloatVec::F32(numbers) => (numbers, false),
            FloatVec::Bf16(numbers) => {
                let pairs = between.input.par_iter_mut().zip(&*numbers).with_min_len(MIN_LEN_PER_THREAD);
                pairs.for_each(|(x, &bits)| *x = bf16_to_f32(bits));
                (&between.input, true)
            }
        };
        if activation.is_some() {
            layer_norm(x, k, &mut between.normalized);
            if rounds {
                let numbers = between.normalized.par_iter_mut().with_min_len(MIN_LEN_PER_THREAD);
                numbers.for_each(|x| *x = bf16_to_f32(to_bf16(*x)));
            }
            x = &between.normalized;
        }
        let activated = |y: f32| activation.map_or(y, |activation| activation.eval_f32(y));
        match output {
            FloatVec::F32(numbers) => {
                layer.run(x, k, numbers);
                if activation.is_some() {
                    numbers.par_iter_mut().with_min_len(MIN_LEN_PER_THREAD).for_each(|y| *y = activated(*y));
                }
            }
            FloatVec::Bf16(numbers) => {
                layer.run(x, k, &mut between.output);
                let pairs = numbers.par_iter_mut().zip(&between.output).with_min_len(MIN_LEN_PER_THREAD);
                pairs.for_each(|(bits, &y)| *bits = to_bf16(activated(y)));
            }
        }
        Ok(())
    }

    fn outputs(&mut self, set: &mut HostLinearSet) -> Result<Vec<Output>, ZooError> {
        set.output.poison();
        self.launch(set)?;
        Ok(self.read(set))
    }

    fn last_outputs(&mut self, set: &mut HostLinearSet) -> Result<Option<Vec<Output>>, ZooError> {
        Ok(Some(self.read(set)))
    }
}
