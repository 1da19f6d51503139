//! What the cases of one process share.

use super::ahead::Ahead;
use super::arm::sensors::Sensors;
use super::arm::state::Probed;
use super::panics;
use crate::peaks::Peaks;
use crate::platforms;
use calorimeter_case::{Device, Implementation, TuningLevel};
use calorimeter_timing::{Granularity, Silence};
use calorimeter_zoo::Machines;
use std::collections::HashMap;
use std::path::PathBuf;

/// What the cases of one process share.
pub struct Context {
    pub machines: Machines,
    pub silence: &'static Silence,
    pub sensors: Option<Sensors>,
    pub peaks: Option<Peaks>,
    /// What each clock can tell apart, once measured.
    pub granularities: HashMap<(&'static str, Implementation), Granularity>,
    /// Where tuned kernels are kept.
    pub tuning: Option<PathBuf>,
    /// How finely the tuner tells sizes apart.
    pub level: TuningLevel,
    /// Whether nothing is timed here and kernels are looked at.
    pub looks: bool,
    /// Where measured peaks are kept.
    pub kept_peaks: Option<PathBuf>,
    /// What the next group is likely to compute with.
    pub ahead: Option<Ahead>,
    /// What company is probed with, as long as nothing else is measured.
    pub probed: Option<Probed>,
    /// Memory that was free before anything was allocated: pools keep what they took, and may use it again.
    free_memory: Option<u64>,
}

impl Context {
    pub fn new(tuning: Option<PathBuf>, kept_peaks: Option<PathBuf>) -> Self {
        panics::remember();
        Self {
            machines: Machines::default(),
            silence: Silence::listen(),
            sensors: None,
            peaks: None,
            granularities: HashMap::new(),
            tuning,
            level: TuningLevel::default(),
            looks: false,
            kept_peaks,
            ahead: None,
            probed: None,
            free_memory: None,
        }
    }

    pub fn free_memory(&mut self, device: Device) -> Option<u64> {
        if self.free_memory.is_none() {
            self.free_memory = platforms::of(device).free_memory(device, &mut self.machines);
        }
        self.free_memory
    }
}
