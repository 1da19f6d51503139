//! Clock lock of NVIDIA GPUs. It affects every program that uses the GPU, until it is unlocked or the driver is
//! reloaded.

use super::NvmlGpu;
use crate::telemetry::{ClockLock, LockedClock};
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::ClockLimitId;
use nvml_wrapper::enums::device::GpuLockedClocksSetting;
use nvml_wrapper::error::NvmlError;

/// Clock lock of the GPU with this UUID, or why it has none.
pub fn nvml_lock(uuid: &str) -> Result<Box<dyn ClockLock>, String> {
    let NvmlGpu { device, parent, .. } = NvmlGpu::find(uuid)?;
    if parent.is_some() {
        return Err("it is a MIG slice, which shares its clock with the other slices".into());
    }
    Ok(Box::new(NvmlClockLock { device, uuid: uuid.to_owned() }))
}

struct NvmlClockLock {
    device: Device<'static>,
    uuid: String,
}

impl ClockLock for NvmlClockLock {
    fn lock(&mut self, clock: LockedClock) -> Result<(), String> {
        self.device.set_gpu_locked_clocks(locked_setting(clock)).map_err(|error| lock_error(error, clock))
    }

    fn unlock(&mut self) -> Result<(), String> {
        self.device.reset_gpu_locked_clocks().map_err(|error| format!("NVML cannot unlock it: {error}"))
    }

    fn unlock_command(&self) -> String {
        format!("sudo nvidia-smi -i {} --reset-gpu-clocks", self.uuid)
    }
}

fn locked_setting(clock: LockedClock) -> GpuLockedClocksSetting {
    match clock {
        // Clock at which no load exceeds the GPU's thermal design power.
        LockedClock::Base => {
            GpuLockedClocksSetting::Symbolic { lower_bound: ClockLimitId::Tdp, upper_bound: ClockLimitId::Tdp }
        }
        LockedClock::Mhz(mhz) => GpuLockedClocksSetting::Numeric { min_clock_mhz: mhz.get(), max_clock_mhz: mhz.get() },
    }
}

/// Formats an error with the missing requirement.
fn lock_error(error: NvmlError, clock: LockedClock) -> String {
    match error {
        NvmlError::NoPermission => "locking its clock requires root, and in a container also CAP_SYS_ADMIN".into(),
        NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_) => {
            "its clock cannot be locked: this requires Volta or newer, and a driver with support for it".into()
        }
        NvmlError::InvalidArg => format!(
            "its clock cannot be locked at {clock}; `nvidia-smi --query-supported-clocks=graphics --format=csv` lists \
             the supported clocks"
        ),
        other => format!("NVML cannot lock its clock: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_errors_name_the_requirement() {
        let clock = "1".parse().unwrap();
        for (error, expected) in [
            (NvmlError::NoPermission, "CAP_SYS_ADMIN"),
            (NvmlError::NotSupported, "Volta"),
            (NvmlError::InvalidArg, "1 MHz"),
            (NvmlError::GpuLost, &NvmlError::GpuLost.to_string()),
        ] {
            let message = lock_error(error, clock);
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn mhz_clock_sets_both_bounds() {
        assert_eq!(locked_setting("1200".parse().unwrap()).into_min_and_max_clocks(), (1200, 1200));
        let (min, max) = locked_setting(LockedClock::Base).into_min_and_max_clocks();
        assert!(min == max && min > 1_000_000, "{min} {max}");
    }
}
