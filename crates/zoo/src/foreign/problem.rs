//! Foreign work at a size, with seeded inputs.

use super::argument::{ResolvedArgument, ResolvedBuffer};
use super::{Argument, ForeignHandle, ForeignProgram, ForeignSubject};
use crate::backends::missing_feature;
use crate::gate::{self, GateResult, LargestErrors, Mismatch, ToDigest, Tolerance};
use crate::{Output, OutputSample, Reference, ZooError};
use calorimeter_case::{Axes, Device, DeviceKind, Implementation};
use calorimeter_recipes::{Dtype, Element};
use serde::{Deserialize, Serialize};

/// Foreign work at a size.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ForeignProblem {
    /// Work and its programs.
    pub foreign: ForeignHandle,
    /// Axes by the names that arguments and commands use.
    pub axes: Axes,
    /// Seed of the buffer contents.
    pub seed: u64,
}

/// Assumed number of terms per sum, for the default tolerance.
const ASSUMED_DEPTH: u64 = 1 << 20;

impl ForeignProblem {
    /// Creates a problem; the error names what cannot be evaluated at this size.
    pub fn new(foreign: ForeignHandle, axes: Axes, seed: u64) -> Result<Self, ZooError> {
        foreign.check().and_then(|()| foreign.check_at(&axes)).map_err(ZooError::Shape)?;
        Ok(Self { foreign, axes, seed })
    }

    /// Evaluates the arguments at this size.
    pub(super) fn arguments(&self) -> Result<Vec<ResolvedArgument>, ZooError> {
        let given = self.foreign.arguments.iter().map(|argument| argument.resolve(&self.axes));
        given.collect::<Result<_, _>>().map_err(ZooError::Shape)
    }

    /// Buffers of a call, in argument order.
    pub fn buffers(&self) -> Vec<ResolvedBuffer> {
        let buffer = |given| match given {
            ResolvedArgument::Buffer(buffer) => Some(buffer),
            ResolvedArgument::Value(..) => None,
        };
        // [`Self::new`] has checked that they can be evaluated.
        self.arguments().unwrap_or_default().into_iter().filter_map(buffer).collect()
    }

    /// Scalars of a call, in argument order.
    pub fn scalars(&self) -> Vec<f64> {
        let scalars = self.foreign.arguments.iter().filter_map(|argument| match argument {
            Argument::Value(scalar) => scalar.number(&self.axes).ok(),
            Argument::Buffer { .. } => None,
        });
        scalars.collect()
    }

    /// Initial content of each buffer; `None` for buffers that are only written.
    pub fn initial_contents(&self) -> Result<Vec<Option<Vec<u8>>>, ZooError> {
        self.buffers().iter().zip(self.seed..).map(|(buffer, seed)| buffer.initial_bytes(seed)).collect()
    }

    /// Bytes of all buffers; `None` without buffers.
    pub fn buffer_bytes(&self) -> Option<u64> {
        let buffers = self.buffers();
        (!buffers.is_empty()).then(|| buffers.iter().map(ResolvedBuffer::bytes).sum())
    }

    /// Floating-point operations of one call, if known.
    pub fn flops(&self) -> Option<u64> {
        self.foreign.flops.as_ref()?.evaluate(&self.axes).ok()
    }

    /// Minimum memory traffic of one call, if known.
    pub fn bytes(&self) -> Option<u64> {
        self.foreign.bytes.as_ref()?.evaluate(&self.axes).ok()
    }

    /// Returns the subject of an implementation.
    pub(super) fn subject(&self, implementation: Implementation) -> Result<&'static ForeignSubject, ZooError> {
        self.foreign.subject(implementation).ok_or_else(|| {
            let known: Vec<&str> = self.foreign.subjects.iter().map(|subject| subject.label.as_str()).collect();
            ZooError::Unsupported(format!(
                "unknown subject {implementation} of {}: expected {}",
                self.foreign,
                known.join(", ")
            ))
        })
    }

    /// True if the implementation is a command, which each launch starts and waits for.
    pub fn is_process(&self, implementation: Implementation) -> bool {
        self.subject(implementation).is_ok_and(|subject| matches!(subject.program, ForeignProgram::Command { .. }))
    }

    /// True if the implementation is a kernel on the CUDA stream.
    pub fn is_kernel(&self, implementation: Implementation) -> bool {
        self.subject(implementation).is_ok_and(|subject| matches!(subject.program, ForeignProgram::Kernel(_)))
    }

    /// Command line of an implementation that is an external worker.
    pub fn worker_words(&self, implementation: Implementation) -> Option<&'static [String]> {
        match &self.subject(implementation).ok()?.program {
            ForeignProgram::Worker { words } => Some(words),
            _ => None,
        }
    }

    /// Checks that an implementation runs on a device; the error names a suitable one.
    pub fn support(&self, implementation: Implementation, device: Device) -> Result<(), ZooError> {
        let subject = self.subject(implementation)?;
        match (&subject.program, device.kind()) {
            (ForeignProgram::Unsupported { reason }, _) => Err(ZooError::Unsupported(reason.clone())),
            (_, DeviceKind::Mock) => Ok(()),
            (ForeignProgram::Worker { .. }, DeviceKind::Cuda) if !cfg!(feature = "native") => {
                Err(ZooError::Unsupported(missing_feature("native")))
            }
            (ForeignProgram::Worker { .. }, DeviceKind::Cpu | DeviceKind::Cuda) => Ok(()),
            (ForeignProgram::Worker { .. }, _) => Err(ZooError::Unsupported(format!(
                "{} runs in an external worker, which supports cpu and cuda, not {device}",
                subject.label
            ))),
            (ForeignProgram::Kernel(_), DeviceKind::Cuda) if cfg!(feature = "native") => Ok(()),
            (ForeignProgram::Kernel(_), DeviceKind::Cuda) => Err(ZooError::Unsupported(missing_feature("native"))),
            (ForeignProgram::Kernel(_), _) => Err(ZooError::Unsupported(format!(
                "{} is CUDA C++ and needs an NVIDIA GPU, not {device}",
                subject.label
            ))),
            (ForeignProgram::Command { .. } | ForeignProgram::Library { .. }, _) => Ok(()),
        }
    }

    /// Converts the outputs of the first subject to references for the others.
    pub fn references(&self, outputs: &[Output]) -> Vec<Reference> {
        let reference = |output: &Output| Reference {
            sample: OutputSample { rows: (0..output.rows).collect(), cols: (0..output.cols).collect() },
            values: output.values.iter().map(|&value| f64::from(value)).collect(),
            projection: None,
        };
        outputs.iter().map(reference).collect()
    }

    /// Compares outputs with references; returns the result of the worst output.
    pub fn judge(&self, outputs: &[impl ToDigest], references: &[Reference]) -> Result<GateResult, Mismatch> {
        if outputs.len() != references.len() {
            return Err(Mismatch::OutputCount { got: outputs.len(), expected: references.len() });
        }
        let written = self.buffers().into_iter().filter(|buffer| buffer.role.is_written());
        let mut worst = GateResult { rel_l2: 0.0, tf32: false };
        for ((output, reference), buffer) in outputs.iter().zip(references).zip(written) {
            let rel_l2 = match &self.foreign.element_tolerance {
                Some(tolerance) => gate::judge_elements(output, reference, tolerance)?,
                None => gate::judge(output, reference, &self.tolerance(buffer.element))?,
            };
            worst.rel_l2 = worst.rel_l2.max(rel_l2);
        }
        Ok(worst)
    }

    /// Largest elementwise errors of all outputs; `None` if an output is not finite or has a wrong size.
    pub fn largest_errors(&self, outputs: &[Output], references: &[Reference]) -> Option<LargestErrors> {
        let each = outputs.iter().zip(references).map(|(output, reference)| LargestErrors::of(output, reference));
        each.reduce(|a, b| Some(a?.max(b?))).flatten().filter(|_| outputs.len() == references.len())
    }

    /// Tolerance of an output with this element type.
    fn tolerance(&self, element: Element) -> Tolerance {
        let exact = Tolerance::default();
        let usual = match element {
            Element::Float(dtype) => Tolerance { slope: None, ..Tolerance::new(dtype, 2, ASSUMED_DEPTH) },
            Element::Signed(_) | Element::Unsigned(_) => exact,
            // Quantization steps of small floats relative to f16: a factor of two per missing mantissa bit.
            Element::E4m3 => Tolerance::new(Dtype::F16, 2, ASSUMED_DEPTH).with_quantized_output(128.0),
            _ => Tolerance::new(Dtype::F16, 2, ASSUMED_DEPTH).with_quantized_output(256.0),
        };
        match self.foreign.tolerance {
            Some(stated) => Tolerance { rel_l2: stated, element: stated, ..Tolerance::default() },
            None => usual,
        }
    }
}
