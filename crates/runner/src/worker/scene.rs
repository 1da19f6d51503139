//! What every step of a group's way needs.

use super::context::Context;
use super::event::Listener;
use super::operands::Operands;
use super::protocol::Assignment;
use crate::platforms;
use calorimeter_case::TuningLevel;
use calorimeter_zoo::Implementation;
use std::path::PathBuf;

/// What every step of a group's way needs.
pub struct Scene<'a> {
    pub assignment: &'a Assignment,
    pub operands: &'a mut Operands,
    pub context: &'a mut Context,
    pub listener: &'a mut dyn Listener,
}

impl Scene<'_> {
    /// How finely sizes are told apart where this implementation's kernels are tuned, if that is not each by itself.
    pub fn level(&self, implementation: Implementation) -> Option<TuningLevel> {
        let tuned = implementation != Implementation::Native && !platforms::of(self.operands.device).is_synchronous();
        Some(self.context.level).filter(|level| tuned && *level != TuningLevel::default())
    }

    /// Where measured peaks are kept. Those of tuned products that shared a choice are this process's alone.
    pub fn kept_peaks(&self) -> Option<PathBuf> {
        let shared = self.context.level != TuningLevel::default() && platforms::of(self.operands.device).tunes();
        self.context.kept_peaks.clone().filter(|_| !shared)
    }
}
