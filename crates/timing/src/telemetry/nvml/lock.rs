//! The lock on the clock of NVIDIA's GPUs. It holds for every program that uses the GPU, until it is undone or the driver is
//! loaded anew.

use super::Gpu;
use crate::telemetry::{ClockLock, LockedClock};
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::ClockLimitId;
use nvml_wrapper::enums::device::GpuLockedClocksSetting;
use nvml_wrapper::error::NvmlError;

/// The lock on the clock of the GPU with this UUID, or why it has none.
pub fn nvml_lock(uuid: &str) -> Result<Box<dyn ClockLock>, String> {
    let Gpu { device, parent, .. } = Gpu::find(uuid)?;
    if parent.is_some() {
        return Err("it is a slice of a GPU (MIG), whose clock belongs to the other slices, too".into());
    }
    Ok(Box::new(Lock { device, uuid: uuid.to_owned() }))
}

struct Lock {
    device: Device<'static>,
    uuid: String,
}

impl ClockLock for Lock {
    fn lock(&mut self, clock: LockedClock) -> Result<(), String> {
        self.device.set_gpu_locked_clocks(setting(clock)).map_err(|why| refusal(why, clock))
    }

    fn unlock(&mut self) -> Result<(), String> {
        self.device.reset_gpu_locked_clocks().map_err(|why| format!("NVML does not unlock it: {why}"))
    }

    fn by_hand(&self) -> String {
        format!("sudo nvidia-smi -i {} --reset-gpu-clocks", self.uuid)
    }
}

fn setting(clock: LockedClock) -> GpuLockedClocksSetting {
    match clock {
        // The clock at which no load exceeds the power that the GPU is made for.
        LockedClock::Base => {
            GpuLockedClocksSetting::Symbolic { lower_bound: ClockLimitId::Tdp, upper_bound: ClockLimitId::Tdp }
        }
        LockedClock::Mhz(mhz) => GpuLockedClocksSetting::Numeric { min_clock_mhz: mhz.get(), max_clock_mhz: mhz.get() },
    }
}

/// What is missing, for the person who can give it.
fn refusal(why: NvmlError, clock: LockedClock) -> String {
    match why {
        NvmlError::NoPermission => {
            "whoever runs this may not lock its clock: that takes root, and in a container CAP_SYS_ADMIN as well".into()
        }
        NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_) => {
            "its clock cannot be locked: that takes a GPU since Volta, and a driver that knows of it".into()
        }
        NvmlError::InvalidArg => format!(
            "its clock cannot be locked at {clock}; `nvidia-smi --query-supported-clocks=graphics --format=csv` lists the \
             clocks that it has"
        ),
        other => format!("NVML does not lock its clock: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_right_that_is_missing() {
        let clock = "1".parse().unwrap();
        for (why, said) in [
            (NvmlError::NoPermission, "takes root"),
            (NvmlError::NotSupported, "since Volta"),
            (NvmlError::InvalidArg, "at 1 MHz; `nvidia-smi"),
            (NvmlError::GpuLost, "NVML does not lock its clock"),
        ] {
            let told = refusal(why, clock);
            assert!(told.contains(said), "{told}");
        }
    }

    #[test]
    fn a_clock_in_megahertz_is_both_bounds() {
        assert_eq!(setting("1200".parse().unwrap()).into_min_and_max_clocks(), (1200, 1200));
        let (least, most) = setting(LockedClock::Base).into_min_and_max_clocks();
        assert!(least == most && least > 1_000_000, "{least} {most}");
    }
}
