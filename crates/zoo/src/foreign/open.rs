//! Workloads of foreign work.

use super::command::Started;
use super::{ForeignProblem, Program, library};
use crate::{Machines, Setup, Workload, ZooError};

impl ForeignProblem {
    /// Creates the workload of a subject.
    pub(crate) fn open(&self, setup: Setup, machines: &mut Machines) -> Result<Box<dyn Workload>, ZooError> {
        self.support(setup.implementation, setup.device)?;
        let sets = setup.sets.max(1);
        match &self.subject(setup.implementation)?.program {
            Program::Command { words, directory } => Ok(Box::new(Started::new(words, directory, &self.axes)?)),
            Program::Library { path } => library::open(path, self, sets),
            #[cfg(feature = "cuda")]
            Program::Kernel(source) => {
                let machine = machines.native(crate::backends::cuda::index(setup.device)?)?;
                super::kernel::open(source, self, machine, sets)
            }
            #[cfg(not(feature = "cuda"))]
            Program::Kernel(_) => {
                let _ = machines;
                Err(ZooError::Unsupported("this build lacks the feature `cuda`".into()))
            }
        }
    }
}
