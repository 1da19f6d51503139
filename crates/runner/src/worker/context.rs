//! State shared by all assignments of a worker process.

use super::arm::state::ProbedCase;
use super::input_prefetch::InputPrefetch;
use super::panics;
use calorimeter_case::{Device, Implementation, TuningLevel};
use calorimeter_probe::peaks::DevicePeaks;
use calorimeter_probe::platforms;
use calorimeter_probe::sensors::Sensors;
use calorimeter_timing::{ClockResolution, JitMonitor};
use calorimeter_zoo::NativeDevices;
use std::collections::HashMap;
use std::path::PathBuf;

/// State shared by all assignments of a worker process.
pub(crate) struct WorkerContext {
    pub machines: NativeDevices,
    pub silence: &'static JitMonitor,
    pub sensors: Option<Sensors>,
    pub peaks: Option<DevicePeaks>,
    /// Measured resolution of each clock.
    pub granularities: HashMap<(&'static str, Implementation), ClockResolution>,
    /// Autotune cache directory.
    pub autotune_dir: Option<PathBuf>,
    /// Rounding of sizes in autotune keys.
    pub tuning_level: TuningLevel,
    /// Directory of measured peaks.
    pub peaks_dir: Option<PathBuf>,
    /// Inputs of the next group, computed in the background.
    pub prefetch: Option<InputPrefetch>,
    /// Case of the interference probe, until another assignment arrives.
    pub probed_case: Option<ProbedCase>,
    /// Memory that was free before the first allocation. Pools keep what they allocated and may reuse it, so that later
    /// queries would be too low.
    free_memory: Option<u64>,
}

impl WorkerContext {
    pub(crate) fn new() -> Self {
        panics::install_hook();
        Self {
            machines: NativeDevices::default(),
            silence: JitMonitor::install(),
            sensors: None,
            peaks: None,
            granularities: HashMap::new(),
            autotune_dir: None,
            tuning_level: TuningLevel::default(),
            peaks_dir: None,
            prefetch: None,
            probed_case: None,
            free_memory: None,
        }
    }

    pub(crate) fn free_memory(&mut self, device: Device) -> Option<u64> {
        if self.free_memory.is_none() {
            self.free_memory = platforms::for_device(device).memory()?.free_bytes(device, &mut self.machines);
        }
        self.free_memory
    }
}
