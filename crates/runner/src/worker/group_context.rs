//! State shared by all steps of one assignment.

use super::context::WorkerContext;
use super::event::WorkerListener;
use super::operands::GroupOperands;
use super::protocol::Assignment;
use calorimeter_case::TuningLevel;
use calorimeter_probe::platforms::{self, Probing};
use calorimeter_zoo::Implementation;
use std::path::PathBuf;

/// State shared by all steps of one assignment.
pub(crate) struct GroupContext<'a> {
    pub assignment: &'a Assignment,
    pub operands: &'a mut GroupOperands,
    pub context: &'a mut WorkerContext,
    pub listener: &'a mut dyn WorkerListener,
}

impl GroupContext<'_> {
    /// Tuning level of an implementation; `None` if its kernels are not tuned or the level is the default.
    pub(crate) fn tuning_level(&self, implementation: Implementation) -> Option<TuningLevel> {
        let tuned =
            implementation != Implementation::Native && !platforms::for_device(self.operands.device).is_synchronous();
        Some(self.context.tuning_level).filter(|level| tuned && *level != TuningLevel::default())
    }

    /// Directory of measured peaks. `None` if GEMM peaks were tuned with a coarser level, because they are valid for
    /// this process only.
    pub(crate) fn peaks_dir(&self) -> Option<PathBuf> {
        let shared = self.context.tuning_level != TuningLevel::default()
            && platforms::for_device(self.operands.device).probing().is_some_and(Probing::autotunes_matmul);
        self.context.peaks_dir.clone().filter(|_| !shared)
    }
}
