//! Model on CUDA with its own stream and buffers; weights are float or packed.

use super::digest;
use super::try_copy;
use super::upload::upload;
use super::weight::{duplicate_weight, encode_weight, upload_weight};
use crate::element_bytes::decode;
use crate::{DeviceCheck, Output, OutputDigest, OutputQuery, Problem, Tensors, Workload, ZooError};
use calorimeter_kernels::native::{CudaDevice, DeviceBuffer, DeviceMatrix, LayerPlan, NativeError, PrepackedWeight};
use calorimeter_recipes::{Element, PrecisionHint, QuantConfig};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Planned kernels of a model, with their scratch buffers.
pub(crate) trait ModelPass: Send {
    /// Linear layers in the order of the weights.
    fn layers(&self) -> Vec<&LayerPlan>;

    /// Enqueues one pass.
    fn enqueue(
        &mut self,
        input: &DeviceBuffer,
        weights: &[PrepackedWeight],
        output: &mut DeviceBuffer,
    ) -> Result<(), ZooError>;

    /// Kernels, and how they were chosen and configured.
    fn algorithm(&self) -> String;
}

/// Model workload; launches rotate through the sets.
struct NativeModelWorkload<P> {
    machine: Arc<CudaDevice>,
    problem: Problem,
    pass: P,
    sets: Vec<ModelBufferSet>,
    next: usize,
    size: (u64, u64),
    weight_bytes: u64,
    quantization_time: Option<Duration>,
    tf32: bool,
    /// Copy of the first checked output of set 0.
    reference: Option<DeviceBuffer>,
}

/// Buffers of one pass.
struct ModelBufferSet {
    input: DeviceBuffer,
    weights: Vec<PrepackedWeight>,
    output: DeviceBuffer,
    /// True after a pass on this set.
    ran: bool,
}

/// Quantizes and uploads the tensors of a model once per buffer set.
pub(crate) fn open<P: ModelPass + 'static>(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &QuantConfig,
    machine: Arc<CudaDevice>,
    sets: u32,
    pass: P,
) -> Result<Box<dyn Workload>, ZooError> {
    let (element, size) = (Element::Float(problem.dtype), problem.layout().output);
    let start = Instant::now();
    let prepared: Vec<_> = tensors.weights.iter().map(|weight| treatment.prepare(weight)).collect::<Result<_, _>>()?;
    let quantizing = (!treatment.is_unmodified()).then(|| start.elapsed());
    let weights: Vec<_> = prepared.into_iter().map(encode_weight).collect::<Result<_, _>>()?;
    let part_bytes = weights.iter().flat_map(|weight| weight.as_refs().into_parts()).map(Vec::len);
    let weight_bytes = part_bytes.sum::<usize>() as u64;
    let weights = weights.into_iter().zip(pass.layers());
    let mut uploaded: Vec<_> =
        weights.map(|(weight, layer)| upload_weight(&machine, weight, layer)).collect::<Result<_, _>>()?;
    let (first, count) = (upload(&machine, &tensors.input, element)?, sets.max(1));
    let mut set = |set: u32| -> Result<ModelBufferSet, NativeError> {
        let input = machine.rotate_lines(&first, problem.rotation_in_bytes(set, tensors.input.rows, first.len()))?;
        let of_set = match set + 1 == count {
            true => std::mem::take(&mut uploaded),
            false => uploaded.iter().map(|weight| duplicate_weight(&machine, weight)).collect::<Result<_, _>>()?,
        };
        let layers = of_set.into_iter().zip(pass.layers());
        let weights = layers.map(|(weight, layer)| layer.prepack(weight)).collect::<Result<_, _>>()?;
        let mut output = machine.allocate((size.0 * size.1) as usize * problem.dtype.width())?;
        output.fill(POISON)?;
        Ok(ModelBufferSet { input, weights, output, ran: false })
    };
    let sets: Vec<ModelBufferSet> = (0..count).map(&mut set).collect::<Result<_, _>>()?;
    let (problem, next, right, tf32) = (*problem, 0, None, treatment.precision_hint == Some(PrecisionHint::Tf32));
    Ok(Box::new(NativeModelWorkload {
        machine,
        problem,
        pass,
        sets,
        next,
        size,
        weight_bytes,
        quantization_time: quantizing,
        tf32,
        reference: right,
    }))
}

/// All ones is NaN in every float type.
const POISON: u8 = 0xFF;

impl<P: ModelPass> NativeModelWorkload<P> {
    /// Runs one pass on the next set into memory filled with NaN; returns the index of the set.
    fn poisoned_pass(&mut self) -> Result<usize, ZooError> {
        let set = self.next;
        self.sets[set].output.fill(POISON)?;
        self.launch()?;
        Ok(set)
    }

    fn read(&self, output: &DeviceBuffer) -> Result<Vec<Output>, ZooError> {
        let values = decode(&output.download()?, Element::Float(self.problem.dtype));
        Ok(vec![Output { rows: self.size.0 as usize, cols: self.size.1 as usize, values }])
    }

    /// Copies the output of set 0 as reference, once.
    fn save_reference(&mut self, set: usize) -> Result<(), ZooError> {
        if set == 0 && self.reference.is_none() {
            self.reference = try_copy(&self.machine, &self.sets[0].output)?;
        }
        Ok(())
    }
}

impl<P: ModelPass> Workload for NativeModelWorkload<P> {
    fn launch(&mut self) -> Result<(), ZooError> {
        let sets = self.sets.len();
        let ModelBufferSet { input, weights, output, ran } = &mut self.sets[self.next];
        *ran = true;
        self.next = (self.next + 1) % sets;
        self.pass.enqueue(input, weights, output)
    }

    fn synchronize(&mut self) -> Result<(), ZooError> {
        Ok(self.machine.synchronize()?)
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.poisoned_pass()?;
        self.save_reference(set)?;
        self.read(&self.sets[set].output)
    }

    fn device_check(&mut self) -> Option<&mut dyn DeviceCheck> {
        Some(self)
    }

    fn last_outputs(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        let ran = self.sets.get(set as usize).is_some_and(|set| set.ran);
        ran.then(|| self.read(&self.sets[set as usize].output)).transpose()
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

    fn skips_zeros(&self) -> bool {
        self.pass.layers().iter().all(|layer| layer.skips_zeros())
    }

    fn may_use_tf32(&self) -> bool {
        self.tf32
    }

    fn kernel(&self) -> Option<String> {
        Some(self.pass.algorithm())
    }
}

impl<P: ModelPass> DeviceCheck for NativeModelWorkload<P> {
    fn output_digests(&mut self, looks: &[OutputQuery<'_>]) -> Result<Option<Vec<OutputDigest>>, ZooError> {
        let [one] = looks else { return Ok(None) };
        if self.reference.is_none() && !digest::can_copy(&self.machine, std::slice::from_ref(&self.sets[0].output))? {
            return Ok(None);
        }
        let set = self.poisoned_pass()?;
        self.save_reference(set)?;
        let (buffer, kind) = (&self.sets[set].output, self.problem.dtype);
        let size = [self.size.0 as usize, self.size.1 as usize];
        Ok(Some(vec![digest::compute_digest(&self.machine, DeviceMatrix { buffer, kind, size }, one)?]))
    }

    fn reference_outputs(&mut self) -> Result<Option<Vec<Output>>, ZooError> {
        self.reference.as_ref().map(|right| self.read(right)).transpose()
    }

    fn matches_reference(&mut self, set: u32) -> Result<Option<bool>, ZooError> {
        let (Some(right), Some(ModelBufferSet { output, ran: true, .. })) =
            (&self.reference, self.sets.get(set as usize))
        else {
            return Ok(None);
        };
        let circle = self.problem.rotation_in_bytes(set, self.size.0 as usize, output.len());
        Ok(Some(self.machine.is_rotation_of(right, output, circle)?))
    }

    fn run_and_match(&mut self) -> Result<Option<bool>, ZooError> {
        if self.reference.is_none() {
            return Ok(None);
        }
        let set = self.poisoned_pass()?;
        self.matches_reference(set as u32)
    }
}
