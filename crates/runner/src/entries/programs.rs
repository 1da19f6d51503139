//! Programs of others, as a file or the command line names them.

use super::{Entry, Origin, Size, Wanted};
use calorimeter_case::Device;
use calorimeter_zoo::Subject;
use calorimeter_zoo::foreign::{Amount, Argument, Foreign, ForeignWork, Program, labeled};

/// Programs that do the same work, with all that is said of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Programs {
    /// What the work is called; without it, as the kernel, or by a word for what the first program is.
    pub name: Option<String>,
    /// The programs, some with names of their own; the others are compared with the first.
    pub programs: Vec<(Option<String>, Program)>,
    /// What kernels and libraries are given.
    pub arguments: Vec<Argument>,
    /// How far outputs may be from the first's.
    pub tolerance: Option<f64>,
    /// Floating-point operations of one call.
    pub flops: Option<Amount>,
    /// The least traffic of one call.
    pub bytes: Option<Amount>,
}

impl Programs {
    /// An entry for them; the error says what they lack. Kernels run on a GPU, everything else is timed by the host.
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
