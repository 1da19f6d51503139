//! Interface of the layer kernels in CubeCL.

use super::matrix::is_aligned;
use super::{CubeCapability, CubeError};
use crate::layer::{LayerBackend, LinearShape};
use crate::{LayerSpec, PackedTensor};
use cubecl::prelude::*;
use cubecl::server::Handle;
use std::marker::PhantomData;

/// Layer kernels on a CubeCL runtime.
#[derive(Debug)]
pub struct Cube<R>(PhantomData<R>);

impl<R: Runtime> LayerBackend for Cube<R> {
    type Capability = CubeCapability;
    type Context = CubeContext<R>;
    type Plan = CubeLayerPlan;
    type Error = CubeError;

    fn is_missing_algorithm(error: &CubeError) -> bool {
        matches!(error, CubeError::Misaligned { .. })
    }
}

/// Device and memory that a layer is prepared for.
#[derive(Clone)]
pub struct CubeContext<R: Runtime> {
    /// Client of the device.
    pub client: ComputeClient<R>,
    /// True if every input starts at a multiple of 16 bytes, so that it is read in vectors.
    pub aligned_input: bool,
}

impl<R: Runtime> CubeContext<R> {
    /// Context for inputs with the alignment of `x`.
    pub fn for_input(client: &ComputeClient<R>, x: &Handle) -> Self {
        Self { client: client.clone(), aligned_input: is_aligned(x) }
    }
}

/// Operands of a layer y = x · wᵀ.
#[derive(Debug, Clone)]
pub struct LayerOperands<'a> {
    /// Input in the dtype of the layer, or packed quantized values. Rows have no gaps.
    pub x: &'a Handle,
    /// Scales of a quantized input in f32, one per row.
    pub x_scales: Option<&'a Handle>,
    /// Weight; the quantized values start at a multiple of 16 bytes.
    pub weight: PackedTensor<&'a Handle>,
    /// Output in the dtype of the layer.
    pub y: &'a Handle,
}

impl LayerOperands<'_> {
    /// Scales of the input.
    pub(super) fn x_scales<R: Runtime>(&self) -> ArrayArg<R> {
        self.optional_words(self.x_scales)
    }

    /// Scales of the weight.
    pub(super) fn scales<R: Runtime>(&self) -> ArrayArg<R> {
        self.optional_words(self.weight.scales)
    }

    /// Zero points of the weight.
    pub(super) fn zeros<R: Runtime>(&self) -> ArrayArg<R> {
        self.optional_words(self.weight.zeros)
    }

    /// Kernels do not read the values that replace a missing part.
    fn optional_words<R: Runtime>(&self, part: Option<&Handle>) -> ArrayArg<R> {
        buffer_arg(part.unwrap_or(self.weight.codes), 4)
    }
}

/// Kernel argument for a buffer of vectors of `bytes` bytes.
pub(super) fn buffer_arg<R: Runtime>(buffer: &Handle, bytes: usize) -> ArrayArg<R> {
    // SAFETY: the length is that of the buffer.
    unsafe { ArrayArg::from_raw_parts(buffer.clone(), buffer.size_in_used() as usize / bytes) }
}

/// Layer that is prepared for one specification, shape and device.
pub struct CubeLayerPlan {
    spec: LayerSpec,
    shape: LinearShape,
    aligned_input: bool,
    launch: Box<dyn Fn(&LayerOperands) + Send + Sync>,
}

/// Result of the preparation of a layer.
pub(super) type PlanResult = Result<CubeLayerPlan, CubeError>;

impl CubeLayerPlan {
    /// `launch` receives operands of the sizes and formats of the layer.
    pub(super) fn new<R: Runtime>(
        context: &CubeContext<R>,
        spec: &LayerSpec,
        shape: LinearShape,
        launch: impl Fn(&ComputeClient<R>, &LayerOperands) + Send + Sync + 'static,
    ) -> Self {
        let CubeContext { client, aligned_input } = context.clone();
        let launch = Box::new(move |operands: &LayerOperands| launch(&client, operands));
        Self { spec: *spec, shape, aligned_input, launch }
    }

    /// Enqueues the layer.
    pub fn enqueue(&self, operands: &LayerOperands) -> Result<(), CubeError> {
        let Self { spec, shape, aligned_input, .. } = self;
        let LayerOperands { x, x_scales, weight, y } = operands;
        if x_scales.is_some() != spec.input.is_some() {
            return Err(CubeError::OtherLayer { operand: "x_scales" });
        }
        if (Some(weight.format), weight.rows, weight.cols) != (spec.weight, shape.n, shape.k) {
            return Err(CubeError::OtherLayer { operand: "weight" });
        }
        if *aligned_input && !is_aligned(x) {
            return Err(CubeError::Misaligned { operand: "x" });
        }
        if !is_aligned(weight.codes) {
            return Err(CubeError::Misaligned { operand: "weight.codes" });
        }
        let x_bytes = match spec.input {
            None => shape.x_bytes(spec.dtype),
            Some(format) => 4 * shape.m * format.words_per_row(shape.k),
        };
        check_size("x", x, x_bytes)?;
        x_scales.map_or(Ok(()), |scales| check_size("x_scales", scales, 4 * shape.m))?;
        let words = PackedTensor::word_counts(weight.format, weight.rows, weight.cols);
        check_part("weight.codes", Some(weight.codes), Some(words.codes))?;
        check_part("weight.scales", weight.scales, words.scales)?;
        check_part("weight.zeros", weight.zeros, words.zeros)?;
        check_size("y", y, shape.y_bytes(spec.dtype))?;
        (self.launch)(operands);
        Ok(())
    }
}

fn check_part(operand: &'static str, part: Option<&Handle>, words: Option<usize>) -> Result<(), CubeError> {
    match (part, words) {
        (_, None) => Ok(()),
        (Some(part), Some(words)) => check_size(operand, part, 4 * words),
        (None, Some(_)) => Err(CubeError::OtherLayer { operand }),
    }
}

fn check_size(operand: &'static str, buffer: &Handle, bytes: usize) -> Result<(), CubeError> {
    let (needs, has) = (bytes as u64, buffer.size_in_used());
    if has < needs { Err(CubeError::TooSmall { operand, needs, has }) } else { Ok(()) }
}
