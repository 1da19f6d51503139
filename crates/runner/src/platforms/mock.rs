//! The scripted device: what its cases do is in `crate::mock`.

use super::platform::Platform;
use super::trials::Trials;
use crate::devices::DiscoveredDevice;
use crate::worker::DeviceFacts;
use calorimeter_case::{Device, Dtype, Implementation};
use calorimeter_zoo::DeviceKind;

/// The scripted device.
#[derive(Debug)]
pub struct Mock;

impl Platform for Mock {
    fn kinds(&self) -> &'static [DeviceKind] {
        &[DeviceKind::Mock]
    }

    fn find(&self) -> Vec<DiscoveredDevice> {
        vec![DiscoveredDevice::named(Device::Mock, "mock")]
    }

    fn clock(&self) -> String {
        "mock".into()
    }

    fn has_graphs(&self, _: Implementation) -> bool {
        true
    }

    fn is_scripted(&self) -> bool {
        true
    }

    fn others(&self, _: Device, _: &DeviceFacts) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    // It stands for a processor.
    fn trials(&self, _: bool) -> Trials {
        Trials {
            noise_product: 256,
            dtypes: &[Dtype::F32],
            fusion: &[Implementation::Eager, Implementation::Fused],
            ..Trials::default()
        }
    }
}
