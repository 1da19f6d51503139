//! Device discovery, without opening devices.

mod discovered;
mod machine;
mod sets;

pub use discovered::DiscoveredDevice;
pub use machine::{DeviceError, Devices, find_device, this_machine};
pub use sets::{buffer_set_count, cache_multiple};
