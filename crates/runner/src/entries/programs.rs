//! External programs, as requested by a file or the command line.

use super::{DeviceSelection, Entry, Origin, Size};
use calorimeter_case::Device;
use calorimeter_zoo::Subject;
use calorimeter_zoo::foreign::{Argument, AxisExpression, ForeignHandle, ForeignProgram, ForeignWork, assign_labels};

/// External programs that perform the same work.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Programs {
    /// Name of the work; default: the kernel, or the kind of the first program.
    pub name: Option<String>,
    /// Programs with optional names; the first one is the reference.
    pub programs: Vec<(Option<String>, ForeignProgram)>,
    /// Arguments of kernels and libraries.
    pub arguments: Vec<Argument>,
    /// Allowed relative difference of outputs from the first program's.
    pub tolerance: Option<f64>,
    /// Floating-point operations of one call.
    pub flops: Option<AxisExpression>,
    /// Minimum memory traffic of one call in bytes.
    pub bytes: Option<AxisExpression>,
}

impl Programs {
    /// Builds the entry; fails if the description is incomplete. Kernels run on a GPU, other programs are timed on the
    /// host.
    pub fn entry(self, origin: Origin, sizes: Vec<Size>) -> Result<Entry, String> {
        let Self { name, programs, arguments, tolerance, flops, bytes } = self;
        let kernel = programs.iter().any(|(_, program)| matches!(program, ForeignProgram::Kernel(_)));
        let name = name.or_else(|| programs.first().map(|(_, program)| default_name(program))).unwrap_or_default();
        let work = ForeignWork {
            name,
            subjects: assign_labels(programs),
            arguments,
            tolerance,
            flops,
            bytes,
            element_tolerance: None,
            flashinfer_workload: None,
        };
        work.check()?;
        let foreign = ForeignHandle::from(work);
        let sizes = if sizes.is_empty() { vec![Size::without_axes()] } else { sizes };
        let device = if kernel { Device::Cuda(0) } else { Device::Cpu };
        let device = Some(DeviceSelection::Single(device));
        Ok(Entry { element: foreign.element(), device, ..Entry::new(origin, Subject::Foreign(foreign), sizes) })
    }
}

fn default_name(program: &ForeignProgram) -> String {
    match program {
        ForeignProgram::Kernel(source) => source.entry.clone(),
        _ => program.kind().to_owned(),
    }
}
