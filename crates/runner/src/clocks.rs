//! Which stopwatch times what.

use calorimeter_timing::{Failure, Stopwatch, WallClock, Work};
use calorimeter_zoo::{Device, Implementation, Machines};

/// The stopwatch for work of an implementation on a device, with a remark where it is not the one that should be.
pub fn stopwatch(
    device: Device,
    implementation: Implementation,
    machines: &mut Machines,
    work: &mut dyn Work,
) -> Result<(Box<dyn Stopwatch>, Option<String>), Failure> {
    let _ = (&implementation, &machines, &work);
    match device {
        Device::Cpu => Ok((Box::new(WallClock::synchronous()), None)),
        #[cfg(feature = "cuda")]
        Device::Cuda(index) if implementation == Implementation::Native => {
            let stream = machines.native(index)?.stream().clone();
            Ok((Box::new(calorimeter_timing::CudaEvents::new(stream)), None))
        }
        // The device's timestamps bracket a closure that runs on the device's own thread, where draining a fusion queue
        // waits for that very thread: fused work is timed from outside.
        #[cfg(feature = "wgpu")]
        Device::Vulkan(_) | Device::Metal(_) if implementation != Implementation::Fused => {
            let client = calorimeter_zoo::backends::wgpu::client(device)?;
            let slope = |why: &str| -> (Box<dyn Stopwatch>, Option<String>) {
                (Box::new(WallClock::slope()), Some(format!("{why}; times are wall-clock slopes")))
            };
            Ok(match calorimeter_timing::Timestamps::new(client) {
                None => slope("the adapter has no timestamp queries"),
                Some(timestamps) if timestamps.covers(work)? => (Box::new(timestamps), None),
                Some(_) => slope("a launch is longer than the compute pass that timestamps can bracket"),
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
        Device::Vulkan(_) | Device::Metal(_) => "timestamps for eager, slope for fused",
        Device::Mock => "mock",
    }
}
