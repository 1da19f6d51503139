//! Which devices are here, found without opening any.

mod discovered;
mod present;

pub use discovered::DiscoveredDevice;
pub use present::{DeviceError, Devices, here, present};
