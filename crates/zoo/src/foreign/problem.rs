//! Work of others at a size, with seeded inputs.

use super::argument::{Buffer, Given};
use super::{Foreign, ForeignSubject, Program};
use crate::gate::{self, Evidence, Judged, Mismatch, Tolerance};
use crate::{Output, Reference, Sample, ZooError};
use calorimeter_case::{Axes, Device, DeviceKind, Implementation};
use calorimeter_recipes::{Dtype, Element};

/// Work of others at a size.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ForeignProblem {
    /// What is done, and by whom.
    pub foreign: Foreign,
    /// The size, by names that arguments and commands use.
    pub axes: Axes,
    /// Seed of what buffers hold.
    pub seed: u64,
}

/// Sums of so many numbers may differ by their order.
const DEPTH: u64 = 1 << 20;

impl ForeignProblem {
    /// At a size; the error says what cannot be said of it.
    pub fn new(foreign: Foreign, axes: Axes, seed: u64) -> Result<Self, ZooError> {
        foreign.check().and_then(|()| foreign.check_at(&axes)).map_err(ZooError::Shape)?;
        Ok(Self { foreign, axes, seed })
    }

    /// Its arguments at this size.
    pub(super) fn arguments(&self) -> Result<Vec<Given>, ZooError> {
        let given = self.foreign.arguments.iter().map(|argument| argument.at(&self.axes));
        given.collect::<Result<_, _>>().map_err(ZooError::Shape)
    }

    fn buffers(&self) -> Vec<Buffer> {
        let buffer = |given| match given {
            Given::Buffer(buffer) => Some(buffer),
            Given::Value(..) => None,
        };
        // That they can be said at this size was found out when it was made.
        self.arguments().unwrap_or_default().into_iter().filter_map(buffer).collect()
    }

    /// What each buffer holds before a call, where that is read.
    pub(super) fn first_contents(&self) -> Vec<Option<Vec<u8>>> {
        self.buffers().iter().zip(self.seed..).map(|(buffer, seed)| buffer.content(seed)).collect()
    }

    /// Bytes of all buffers; nothing where there are none.
    pub fn buffer_bytes(&self) -> Option<u64> {
        let buffers = self.buffers();
        (!buffers.is_empty()).then(|| buffers.iter().map(Buffer::bytes).sum())
    }

    /// Floating-point operations of one call, where they are known.
    pub fn flops(&self) -> Option<u64> {
        self.foreign.flops.as_ref()?.at(&self.axes).ok()
    }

    /// The least traffic of one call, where it is known.
    pub fn bytes(&self) -> Option<u64> {
        self.foreign.bytes.as_ref()?.at(&self.axes).ok()
    }

    /// The program that an implementation is.
    pub(super) fn subject(&self, implementation: Implementation) -> Result<&'static ForeignSubject, ZooError> {
        self.foreign.subject(implementation).ok_or_else(|| {
            let known: Vec<&str> = self.foreign.subjects.iter().map(|subject| subject.label.as_str()).collect();
            ZooError::Unsupported(format!("{} is done by {}, not by {implementation}", self.foreign, known.join(", ")))
        })
    }

    /// Whether an implementation is started and waited for as a process.
    pub fn is_a_process(&self, implementation: Implementation) -> bool {
        self.subject(implementation).is_ok_and(|subject| matches!(subject.program, Program::Command { .. }))
    }

    /// Whether an implementation enqueues on the stream of CUDA's kernels.
    pub fn is_a_kernel(&self, implementation: Implementation) -> bool {
        self.subject(implementation).is_ok_and(|subject| matches!(subject.program, Program::Kernel(_)))
    }

    /// Whether an implementation runs on a device; the error says where it does.
    pub fn support(&self, implementation: Implementation, device: Device) -> Result<(), ZooError> {
        let subject = self.subject(implementation)?;
        match (&subject.program, device.kind()) {
            (_, DeviceKind::Mock) => Ok(()),
            (Program::Kernel(_), DeviceKind::Cuda) if cfg!(feature = "cuda") => Ok(()),
            (Program::Kernel(_), DeviceKind::Cuda) => {
                Err(ZooError::Unsupported("this program was built without the feature `cuda`".into()))
            }
            (Program::Kernel(_), _) => Err(ZooError::Unsupported(format!(
                "{} is CUDA C++ and needs an NVIDIA GPU, not {device}",
                subject.label
            ))),
            (Program::Command { .. } | Program::Library { .. }, _) => Ok(()),
        }
    }

    /// Outputs as what others are compared with.
    pub fn references(&self, outputs: &[Output]) -> Vec<Reference> {
        let reference = |output: &Output| Reference {
            sample: Sample { rows: (0..output.rows).collect(), cols: (0..output.cols).collect() },
            values: output.values.iter().map(|&value| f64::from(value)).collect(),
            projection: None,
        };
        outputs.iter().map(reference).collect()
    }

    /// Compares outputs with those of the first subject; the error of the worst is answered.
    pub fn judge(&self, outputs: &[impl Evidence], references: &[Reference]) -> Result<Judged, Mismatch> {
        if outputs.len() != references.len() {
            return Err(Mismatch::Size { got: outputs.len(), expected: references.len() });
        }
        let written = self.buffers().into_iter().filter(|buffer| buffer.role.is_written());
        let mut worst = Judged { rel_l2: 0.0, tf32: false };
        for ((output, reference), buffer) in outputs.iter().zip(references).zip(written) {
            let rel_l2 = gate::judge(output, reference, &self.tolerance(buffer.element))?;
            worst.rel_l2 = worst.rel_l2.max(rel_l2);
        }
        Ok(worst)
    }

    /// How far numbers of a type may be from those of the first subject.
    fn tolerance(&self, element: Element) -> Tolerance {
        let exact = Tolerance::default();
        let usual = match element {
            Element::Float(dtype) => Tolerance { slope: None, ..Tolerance::new(dtype, 2, DEPTH) },
            Element::Signed(_) | Element::Unsigned(_) => exact,
            // Steps of small floats are as many times as wide as those of f16 as bits are missing.
            Element::E4m3 => Tolerance::new(Dtype::F16, 2, DEPTH).of_codes(128.0),
            _ => Tolerance::new(Dtype::F16, 2, DEPTH).of_codes(256.0),
        };
        match self.foreign.tolerance {
            Some(stated) => Tolerance { rel_l2: stated, element: stated, ..Tolerance::default() },
            None => usual,
        }
    }
}
