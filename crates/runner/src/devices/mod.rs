//! Device discovery, without opening devices.

mod discovered;
mod present;
mod sets;

pub use discovered::DiscoveredDevice;
pub use present::{DeviceError, Devices, here, present};
pub use sets::{sets, times_the_cache};
