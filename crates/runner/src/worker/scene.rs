//! State shared by all steps of one assignment.

use super::context::Context;
use super::event::Listener;
use super::operands::Operands;
use super::protocol::Assignment;
use crate::platforms;
use calorimeter_case::TuningLevel;
use calorimeter_zoo::Implementation;
use std::path::PathBuf;

/// State shared by all steps of one assignment.
pub struct Scene<'a> {
    pub assignment: &'a Assignment,
    pub operands: &'a mut Operands,
    pub context: &'a mut Context,
    pub listener: &'a mut dyn Listener,
}

impl Scene<'_> {
    /// Tuning level of an implementation; `None` if its kernels are not tuned or the level is the default.
    pub fn level(&self, implementation: Implementation) -> Option<TuningLevel> {
        let tuned = implementation != Implementation::Native && !platforms::of(self.operands.device).is_synchronous();
        Some(self.context.level).filter(|level| tuned && *level != TuningLevel::default())
    }

    /// Directory of measured peaks. `None` if GEMM peaks were tuned with a coarser level, because they are valid for
    /// this process only.
    pub fn kept_peaks(&self) -> Option<PathBuf> {
        let shared = self.context.level != TuningLevel::default() && platforms::of(self.operands.device).tunes();
        self.context.kept_peaks.clone().filter(|_| !shared)
    }
}
