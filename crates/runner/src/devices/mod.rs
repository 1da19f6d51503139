//! Which devices are here, found without opening any.

mod discovered;
mod present;

pub use discovered::{DiscoveredDevice, times_the_cache};
pub use present::{DeviceError, Devices, here, present};
