//! Small computations of known cost on any device, as works that can be timed.

use calorimeter_kernels::probes::{HostProbes, Probe, Probes};
use calorimeter_timing::{Failure, Work};
use calorimeter_zoo::{Device, Implementation, Machines};

/// A probe as the timing crate takes it.
pub struct Probed(pub Box<dyn Probe>);

impl Work for Probed {
    fn launch(&mut self) -> Result<(), Failure> {
        Ok(self.0.launch()?)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(self.0.settle()?)
    }
}

/// The probes of a device: native ones where there are some. The mock device has none.
pub fn probes(device: Device, machines: &mut Machines) -> Result<Box<dyn Probes>, Failure> {
    let _ = &machines;
    match device {
        Device::Cpu => Ok(Box::new(HostProbes)),
        #[cfg(feature = "cuda")]
        Device::Cuda(index) => Ok(Box::new(calorimeter_kernels::probes::NativeProbes::new(machines.native(index)?))),
        #[cfg(feature = "wgpu")]
        Device::Vulkan(_) | Device::Metal(_) => {
            let client = calorimeter_zoo::backends::wgpu::client(device)?;
            Ok(Box::new(calorimeter_kernels::probes::CubeProbes::new(client)))
        }
        other => Err(format!("there are no probes for {other} in this build").into()),
    }
}

/// Whose kernels the probes of a device are, which decides on their clock.
pub fn implementation(device: Device) -> Implementation {
    if matches!(device, Device::Cuda(_)) { Implementation::Native } else { Implementation::Eager }
}
