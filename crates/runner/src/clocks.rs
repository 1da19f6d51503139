//! Which stopwatch times what.

use calorimeter_timing::{Stopwatch, WallClock};
use calorimeter_zoo::{Device, Implementation, Machines, ZooError};

/// The stopwatch for an implementation on a device, with a remark where it is not the one that should be.
pub fn stopwatch(
    device: Device,
    implementation: Implementation,
    machines: &mut Machines,
) -> Result<(Box<dyn Stopwatch>, Option<String>), ZooError> {
    let _ = (&implementation, &machines);
    match device {
        Device::Cpu => Ok((Box::new(WallClock::synchronous()), None)),
        #[cfg(feature = "cuda")]
        Device::Cuda(index) if implementation == Implementation::Native => {
            let stream = machines.native(index)?.stream().clone();
            Ok((Box::new(calorimeter_timing::CudaEvents::new(stream)), None))
        }
        #[cfg(feature = "wgpu")]
        Device::Vulkan(_) | Device::Metal(_) => {
            let client = calorimeter_zoo::backends::wgpu::client(device)?;
            Ok(match calorimeter_timing::Timestamps::new(client) {
                Some(timestamps) => (Box::new(timestamps), None),
                None => {
                    let why = "the adapter has no timestamp queries; times are wall-clock slopes".to_owned();
                    (Box::new(WallClock::slope()), Some(why))
                }
            })
        }
        _ => Ok((Box::new(WallClock::slope()), None)),
    }
}

/// The name of the clock that will be used, for `doctor`; no device is touched.
pub fn expected(device: Device) -> &'static str {
    match device {
        Device::Cpu => "wall",
        Device::Cuda(_) => "slope for burn, cuda-events for native",
        Device::Vulkan(_) | Device::Metal(_) => "timestamps",
        Device::Mock => "mock",
    }
}
