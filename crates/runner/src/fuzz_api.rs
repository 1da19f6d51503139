//! Entry points for tests and fuzz targets: read files that the program itself writes, which may be corrupt.

use crate::worker::autotune_cache::fault_of_file;
use calorimeter_case::Device;
use calorimeter_probe::calibration::{self, CalibrationProfile};
use calorimeter_probe::devices::DiscoveredDevice;
use calorimeter_probe::noise_floor::NoiseFloor;
use calorimeter_probe::{clock_notes, peaks};
use std::path::Path;

/// Reads a profile as `calibrate --show` does.
pub fn profile(path: &Path) -> Result<(), String> {
    CalibrationProfile::read(path).map(|profile| drop(calibration::show(&profile)))
}

/// Reads peaks as a run does from its cache.
pub fn peaks(path: &Path) -> Result<(), String> {
    let Some(peaks) = peaks::read_file(path)? else { return Ok(()) };
    for shares_memory in [false, true] {
        let trusted = peaks.clone().without_distrusted_rates(shares_memory);
        let rates = trusted.memory_gbps.into_iter().chain(trusted.products.values().map(|peak| peak.sustained));
        assert!(rates.into_iter().all(|rate| rate > 0.0 && rate.is_finite()), "{trusted:?}");
    }
    Ok(())
}

/// Reads the noise floor as verdicts use it.
pub fn noise(path: &Path) -> Result<(), String> {
    let floor = NoiseFloor::from_file(path, &DiscoveredDevice::with_name(Device::Mock(0), "mock"));
    assert!((0.01..1.0).contains(&floor.margin(0.01)), "{floor:?}");
    floor.note.map_or(Ok(()), Err)
}

/// Reads the note of a locked clock as the next start does.
pub fn clock_note(path: &Path) -> Result<(), String> {
    clock_notes::read(path).map(drop)
}

/// Checks autotune decisions as a worker does before it uses them.
pub fn decisions(path: &Path) -> Result<(), String> {
    fault_of_file(path.to_owned()).map_or(Ok(()), |(path, why)| Err(format!("{}: {why}", path.display())))
}
