//! External programs, as requested by a file or the command line.

use super::{Entry, Origin, Size, Wanted};
use calorimeter_case::Device;
use calorimeter_zoo::Subject;
use calorimeter_zoo::foreign::{Amount, Argument, Foreign, ForeignWork, Program, labeled};

/// External programs that perform the same work.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Programs {
    /// Name of the work; default: the kernel, or the kind of the first program.
    pub name: Option<String>,
    /// Programs with optional names; the first one is the reference.
    pub programs: Vec<(Option<String>, Program)>,
    /// Arguments of kernels and libraries.
    pub arguments: Vec<Argument>,
    /// Allowed relative difference of outputs from the first program's.
    pub tolerance: Option<f64>,
    /// Floating-point operations of one call.
    pub flops: Option<Amount>,
    /// Minimum memory traffic of one call in bytes.
    pub bytes: Option<Amount>,
}

impl Programs {
    /// Builds the entry; fails if the description is incomplete. Kernels run on a GPU, other programs are timed on the
    /// host.
    pub fn entry(self, origin: Origin, sizes: Vec<Size>) -> Result<Entry, String> {
        let Self { name, programs, arguments, tolerance, flops, bytes } = self;
        let kernel = programs.iter().any(|(_, program)| matches!(program, Program::Kernel(_)));
        let name = name.or_else(|| programs.first().map(|(_, program)| usual_name(program))).unwrap_or_default();
        let work = ForeignWork { name, subjects: labeled(programs), arguments, tolerance, flops, bytes };
        work.check()?;
        let foreign = Foreign::from(work);
        let sizes = if sizes.is_empty() { vec![Size::none()] } else { sizes };
        let device = if kernel { Device::Cuda(0) } else { Device::Cpu };
        let device = Some(Wanted::This(device));
        Ok(Entry { element: foreign.element(), device, ..Entry::new(origin, Subject::Foreign(foreign), sizes) })
    }
}

fn usual_name(program: &Program) -> String {
    match program {
        Program::Kernel(source) => source.entry.clone(),
        Program::Command { .. } | Program::Library { .. } => program.kind().to_owned(),
    }
}
