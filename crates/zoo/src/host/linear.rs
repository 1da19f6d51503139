//! Linear layer on the CPU, optionally between a layer normalization and an activation.
//!
//! Input and output have the dtype of the problem; accumulators are f32 or integers.

use crate::rotating_workload::{self, SetPass, WorkloadProperties};
use crate::{Activate, Activation, Layout, Output, Problem, Tensors, Workload, ZooError};
use calorimeter_kernels::host::{
    FloatVec, HostLayer, HostLayerContext, HostWeight, LAYER_KERNELS, QuantizedRows, layer_norm, prepare_layer,
};
use calorimeter_kernels::layer::{LinearShape, Rejection, candidates};
use calorimeter_kernels::rowwise::{bf16_to_f32, to_bf16};
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::{Dtype, Element, Format, QuantConfig, QuantizedTensor, Recipe, Weight};
use rayon::prelude::*;
use std::time::Instant;

/// Minimum elements per thread.
const MIN_LEN_PER_THREAD: usize = 1 << 14;

/// Input, weight and output of one pass.
struct HostLinearSet {
    input: FloatVec,
    layer: Box<dyn HostLayer>,
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
pub(crate) fn check_support(problem: &Problem, treatment: &QuantConfig) -> Result<(), String> {
    let [m, n, k] = layer_size(problem);
    if treatment.training.is_none() {
        match candidates(LAYER_KERNELS, &treatment.layer_spec(m), LinearShape { m, k, n }, &()) {
            Ok(_) => return Ok(()),
            Err(Rejection::NoKernel | Rejection::Spec(_)) => {}
            Err(reason) => {
                return Err(format!("`native` on the CPU cannot compute this layer: {reason}; `eager` runs it"));
            }
        }
    }
    let typical = LinearShape { m: 2, k: 4096, n: 4096 };
    let has_kernel = |recipe: &Recipe| {
        let treatment = recipe.quant_config(Dtype::Bf16, None);
        treatment.is_ok_and(|it| candidates(LAYER_KERNELS, &it.layer_spec(typical.m), typical, &()).is_ok())
    };
    let names: Vec<String> =
        Recipe::examples().into_iter().filter(has_kernel).map(|recipe| recipe.to_string()).collect();
    Err(format!(
        "`native` on the CPU supports {} in f32 and bf16 without sparsity; `eager` runs the others",
        names.join(", ")
    ))
}

/// Rows and columns of the output, and columns of the input.
fn layer_size(problem: &Problem) -> [usize; 3] {
    let Layout { input: (m, k), output: (_, n), .. } = problem.layout();
    [m, n, k].map(|size| size as usize)
}

/// Quantizes a weight for the kernels.
fn layer_context(weight: &Weight, treatment: &QuantConfig) -> Result<HostLayerContext, ZooError> {
    treatment.check(weight.n(), weight.k())?;
    let quantize = |x: &[f32], k: usize, format: Format| {
        let QuantizedTensor { codes, scales, .. } = quantize(x, k, format);
        QuantizedRows { codes, scales }
    };
    let weight = match treatment.quantize(weight)? {
        None => HostWeight::Floats(FloatVec::new(weight.values(), Element::Float(treatment.dtype))),
        Some(QuantizedTensor { codes, scales, zeros, .. }) => HostWeight::Quantized { codes, scales, zeros },
    };
    Ok(HostLayerContext { weight, quantize })
}

/// Creates the workload with a separate weight per set. With an activation, a layer normalization precedes the layer.
pub(crate) fn open(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &QuantConfig,
    activation: Option<Activation>,
    sets: u32,
) -> Result<Box<dyn Workload>, ZooError> {
    let [m, n, k] = layer_size(problem);
    let start = Instant::now();
    let context = layer_context(&tensors.weights[0], treatment)?;
    let quantization_time = (!treatment.is_unmodified()).then(|| start.elapsed());
    let element = Element::Float(problem.dtype);
    let (spec, shape) = (treatment.layer_spec(m), LinearShape { m, k, n });
    let set = |set: u32| -> Result<HostLinearSet, ZooError> {
        let layer = prepare_layer(&context, &spec, shape);
        Ok(HostLinearSet {
            input: FloatVec::new(&problem.input_of_set(tensors, set).values, element),
            layer: layer.map_err(|reason| ZooError::Unsupported(reason.to_string()))?,
            // Writing the output here maps its pages before the first launch.
            output: FloatVec::new(&vec![f32::NAN; m * n], element),
        })
    };
    let sets: Vec<HostLinearSet> = (0..sets.max(1)).map(set).collect::<Result<_, _>>()?;
    let mut between = HostLinearScratch::default();
    if let FloatVec::Bf16(_) = sets[0].input {
        (between.input, between.output) = (vec![0.0; m * k], vec![0.0; m * n]);
    }
    if activation.is_some() {
        between.normalized = vec![0.0; m * k];
    }
    let linear = sets[0].layer.kernel(m);
    let kernel = match activation {
        Some(activation) => format!("rows normalized; then {linear}; then {}", activation.name()),
        None => linear,
    };
    let weight_bytes = sets[0].layer.weight_bytes() as u64;
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
