//! Workloads of foreign work.

use super::command::CommandWorkload;
use super::{ForeignProblem, ForeignProgram, library};
use crate::{NativeDevices, Setup, Workload, ZooError};

impl ForeignProblem {
    /// Creates the workload of a subject.
    pub(crate) fn open(&self, setup: Setup, machines: &mut NativeDevices) -> Result<Box<dyn Workload>, ZooError> {
        self.support(setup.implementation, setup.device)?;
        let sets = setup.sets.max(1);
        match &self.subject(setup.implementation)?.program {
            ForeignProgram::Command { words, directory } => {
                Ok(Box::new(CommandWorkload::new(words, directory, &self.axes)?))
            }
            ForeignProgram::Library { path } => library::open(path, self, sets),
            ForeignProgram::Worker { words } => {
                let why = format!("`{}` is an external worker, which this function does not start", words.join(" "));
                Err(ZooError::Unsupported(why))
            }
            ForeignProgram::Unsupported { reason } => Err(ZooError::Unsupported(reason.clone())),
            #[cfg(feature = "native")]
            ForeignProgram::Kernel(source) => {
                let machine = machines.native(crate::backends::cuda_index(setup.device)?)?;
                super::kernel::open(source, self, machine, sets)
            }
            #[cfg(not(feature = "native"))]
            ForeignProgram::Kernel(_) => {
                let _ = machines;
                Err(ZooError::Unsupported(crate::backends::missing_feature("native")))
            }
        }
    }
}
