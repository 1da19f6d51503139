//! Device discovery, without opening devices.

mod discovered;
mod facts;
mod machine;
mod sets;

pub use discovered::DiscoveredDevice;
pub use facts::DeviceFacts;
pub use machine::{Devices, MissingDevice, find_device, this_machine};
pub use sets::{buffer_set_count, cache_multiple};
