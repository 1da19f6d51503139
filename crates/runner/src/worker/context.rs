//! State shared by all assignments of a worker process.

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

/// State shared by all assignments of a worker process.
pub struct Context {
    pub machines: Machines,
    pub silence: &'static Silence,
    pub sensors: Option<Sensors>,
    pub peaks: Option<Peaks>,
    /// Measured resolution of each clock.
    pub granularities: HashMap<(&'static str, Implementation), Granularity>,
    /// Autotune cache directory.
    pub tuning: Option<PathBuf>,
    /// Rounding of sizes in autotune keys.
    pub level: TuningLevel,
    /// True if this worker traces kernels instead of timing.
    pub looks: bool,
    /// Directory of measured peaks.
    pub kept_peaks: Option<PathBuf>,
    /// Inputs of the next group, computed in the background.
    pub ahead: Option<Ahead>,
    /// Case of the interference probe, until another assignment arrives.
    pub probed: Option<Probed>,
    /// Memory that was free before the first allocation. Pools keep what they allocated and may reuse it, so that later
    /// queries would be too low.
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
