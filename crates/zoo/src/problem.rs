//! Model at a shape in a dtype, with seeded tensors.

use crate::gate::{self, Bias, GateResult, Mismatch, ToDigest, Tolerance};
use crate::gate_data::{self, GATE_SEED};
use crate::matrix::rotate_segments;
use crate::stream::{Distribution, RandomStream};
use crate::{ExactLinear, Layout, Matrix, Model, Operand, Output, Reference, RotationAxis, Tensors, ZooError};
#[cfg(feature = "native")]
use calorimeter_kernels::native::LineRotation;
use calorimeter_recipes::format::Format;
use calorimeter_recipes::{Dtype, Element, PrecisionHint, QuantConfig, Weight};
use calorimeter_shapes::Shape;
use serde::{Deserialize, Serialize};

/// Model at a shape; independent of implementation and device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Problem {
    /// Model.
    pub model: Model,
    /// Sizes.
    pub shape: Shape,
    /// Dtype of input, output and unquantized weights.
    pub dtype: Dtype,
    /// Seed of the tensors.
    pub seed: u64,
}

impl Problem {
    /// Returns the sizes of the tensors.
    pub fn layout(&self) -> Layout {
        self.model.layout(self.shape)
    }

    /// Twice the multiply-adds of all matmuls.
    pub fn flops(&self) -> u64 {
        self.model.flops(self.shape)
    }

    /// Minimum memory traffic: input and weights read once, output written once.
    pub fn bytes(&self, treatment: &QuantConfig) -> u64 {
        let Layout { input, output, .. } = self.layout();
        (input.0 * input.1 + output.0 * output.1) * self.dtype.bytes() + self.weight_bytes(treatment)
    }

    /// Bytes of the stored weights.
    pub fn weight_bytes(&self, treatment: &QuantConfig) -> u64 {
        self.layout().linears.iter().map(|&(n, k)| treatment.weight_bytes(n as usize, k as usize)).sum()
    }

    /// Estimated device memory.
    pub fn memory(&self, treatment: &QuantConfig) -> u64 {
        let Layout { input, output, linears, intermediate } = self.layout();
        // Two overlapping outputs and the reference output; a stored weight is unpacked layer by layer.
        let elements = input.0 * input.1 + 3 * output.0 * output.1 + intermediate;
        let unpacked = linears.iter().map(|&(n, k)| treatment.dequantized_bytes(n as usize, k as usize)).max();
        // A quantized input exists as quantized values and in f32, and so does the unscaled output of the GEMM. Kernels
        // pad a few rows to 32, and short k and n to 32 and 16.
        let held = |&(n, k): &(u64, u64)| input.0.max(32) * (5 * k.next_multiple_of(32) + 8 * n.next_multiple_of(16));
        let widest = linears.iter().map(held).max().filter(|_| treatment.input.is_some());
        elements * self.dtype.bytes() + unpacked.unwrap_or(0) + widest.unwrap_or(0) + self.weight_bytes(treatment)
    }

    /// Creates input and weights from the seed.
    pub fn tensors(&self) -> Tensors {
        let Layout { input: (rows, cols), linears, .. } = self.layout();
        let input = Operand::normal(rows, cols, Element::Float(self.dtype)).matrix(self.seed);
        let weights = linears
            .iter()
            .enumerate()
            .map(|(layer, &(n, k))| {
                let bound = 1.0 / (k as f32).sqrt();
                let seed = self.seed.wrapping_add(1 + layer as u64);
                let values =
                    RandomStream::new(seed, Distribution::Uniform(-bound, bound)).first_values((n * k) as usize);
                Weight::new(n as usize, k as usize, values, self.dtype)
            })
            .collect();
        Tensors { input, weights }
    }

    /// Creates input and weights for the gate, in which wrong scales produce visible errors. They are not timed.
    pub fn gate_tensors(&self) -> Tensors {
        let seed = self.seed ^ GATE_SEED;
        gate_data::scale_tensors(&Self { seed, ..*self }.tensors(), self.dtype, seed)
    }

    /// Returns the input of a buffer set: rows of set 0, rotated by the index of the set.
    ///
    /// An output that was written for another set then fails the comparison. With a single row or sequence all sets are
    /// identical.
    pub fn input_of_set(&self, tensors: &Tensors, set: u32) -> Matrix {
        tensors.input.rotated(RotationAxis::Rows, self.shift(set, tensors.input.rows))
    }

    /// Rotates an output of a set back to set 0.
    pub fn rotate_back(&self, mut output: Output, set: u32) -> Output {
        let (moved, all) = (self.shift(set, output.rows) * output.cols, output.values.len());
        // The gate rejects an output of another size.
        if moved > 0 && moved <= all {
            output.values = rotate_segments(&output.values, all, all - moved);
        }
        output
    }

    /// True if the output of a set equals the rotated output of set 0, bit for bit.
    pub fn is_rotation_of(&self, output: &Output, first: &Output, set: u32) -> bool {
        let (moved, all) = (self.shift(set, output.rows) * output.cols, output.values.len());
        moved <= all && output.is_rotation_of(first, all, moved)
    }

    /// Rotation axis, and the number of rows by which an input or output of `rows` rows is rotated in a set.
    pub(crate) fn rotation(&self, set: u32, rows: usize) -> (RotationAxis, usize) {
        (RotationAxis::Rows, self.shift(set, rows))
    }

    /// Rotation of an input or output of `rows` rows in bytes.
    #[cfg(feature = "native")]
    pub(crate) fn rotation_in_bytes(&self, set: u32, rows: usize, bytes: usize) -> LineRotation {
        LineRotation { lines: 1, bytes, shift: self.shift(set, rows) * (bytes / rows.max(1)) }
    }

    /// Rows by which the tensors of a set are rotated.
    fn shift(&self, set: u32, rows: usize) -> usize {
        let together = self.model.rows_per_group();
        set as usize % (rows / together).max(1) * together
    }

    /// Computes the reference from the quantized operands that a correct implementation uses.
    pub fn reference(&self, tensors: &Tensors, treatment: &QuantConfig) -> Result<Reference, ZooError> {
        let sample = self.model.sample(self.shape);
        let linears = tensors.weights.iter().map(|weight| ExactLinear::new(weight, treatment));
        let linears: Vec<ExactLinear> = linears.collect::<Result<_, _>>()?;
        let values = self.model.reference(self.shape, &tensors.input, &linears, &sample);
        let Layout { output: (rows, cols), .. } = self.layout();
        let whole = sample.len() as u64 == rows * cols;
        let projection = if whole { None } else { self.model.projection(&tensors.input, &linears) };
        Ok(Reference { sample, values, projection })
    }

    /// Compares an output with the reference.
    ///
    /// `may_use_tf32` allows TF32 tolerances for f32 problems; the result reports if they were needed.
    pub fn judge(
        &self,
        treatment: &QuantConfig,
        output: &impl ToDigest,
        reference: &Reference,
        may_use_tf32: bool,
    ) -> Result<GateResult, Mismatch> {
        let output = &*output.to_digest(reference);
        let bias = self.bias(treatment);
        // A recipe that requests TF32 is always judged with TF32 tolerances.
        let is_tf32 = treatment.precision_hint == Some(PrecisionHint::Tf32);
        match gate::judge_with_bias(output, reference, &self.tolerance(treatment, is_tf32), &bias) {
            Err(_) if may_use_tf32 && self.dtype == Dtype::F32 && !is_tf32 => {
                let bias = bias.with_tf32(self.layout().linears.len() as u32);
                gate::judge_with_bias(output, reference, &self.tolerance(treatment, true), &bias)
                    .map(|rel_l2| GateResult { rel_l2, tf32: true })
            }
            judged => judged.map(|rel_l2| GateResult { rel_l2, tf32: is_tf32 }),
        }
    }

    /// Compares all elements of an output, rotated back to set 0, with the accepted output of set 0.
    pub fn judge_against_output(
        &self,
        treatment: &QuantConfig,
        output: &Output,
        right: &Output,
        tf32: bool,
    ) -> Result<(), Mismatch> {
        gate::judge_against_output(output, right, &self.tolerance(treatment, tf32))
    }

    /// Allowed deviation from one of the slope of a correct output on its reference.
    fn bias(&self, treatment: &QuantConfig) -> Bias {
        let depths: Vec<u64> = self.layout().linears.iter().map(|&(_, k)| k).collect();
        let bias = Bias::new(self.dtype, &depths);
        let bias = match self.requantized_format(treatment) {
            Some(format) => bias.with_requantized(format),
            None => bias,
        };
        match treatment.precision_hint {
            Some(PrecisionHint::Tf32) => bias.with_tf32(depths.len() as u32),
            Some(PrecisionHint::FastAccumulation) => bias.with_fast_accumulation(&depths),
            _ => bias,
        }
    }

    /// Tolerance of a correct implementation; `tf32` if f32 operands may be rounded to TF32.
    pub fn tolerance(&self, treatment: &QuantConfig, tf32: bool) -> Tolerance {
        let Layout { input: (rows, _), linears, .. } = self.layout();
        let depth = linears.iter().map(|&(_, k)| k).max().unwrap_or(1);
        let before = self.model.roundings();
        let roundings = before + linears.len() as u32 * treatment.roundings();
        let layers = linears.len() as u32;
        let mut tolerance = Tolerance::new(self.dtype, roundings, depth);
        let mut error = self.dtype.unit_roundoff() * f64::from(roundings).sqrt();
        if tf32 {
            tolerance = tolerance.with_tf32(layers);
            error += gate::tf32_error(layers);
        }
        if treatment.precision_hint == Some(PrecisionHint::FastAccumulation) {
            tolerance = tolerance.with_fast_accumulation(layers, depth);
            error += gate::fast_accumulation_error(layers, depth);
        }
        match self.requantized_format(treatment) {
            Some(format) => {
                let width = linears.iter().map(|&(_, k)| k).min().unwrap_or(1);
                // The reference computes the whole input of a single layer, but only sampled rows of later layers.
                let whole = linears.len() == 1 || self.model.sample(self.shape).rows.len() as u64 == rows;
                tolerance.with_requantized(error, layers, width, format, whole)
            }
            None => tolerance,
        }
    }

    /// Format of quantized layer inputs, if they were computed and rounded before, or are quantized with other
    /// roundings: values may then fall on the other side of a quantization boundary.
    fn requantized_format(&self, treatment: &QuantConfig) -> Option<Format> {
        treatment.input.filter(|_| self.model.roundings() > 0 || treatment.rounds_independently)
    }
}
