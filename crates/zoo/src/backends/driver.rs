//! What devices can be asked besides running work on them.

use super::Machines;
use crate::Device;
use crate::ZooError;

/// What a device's memory pool says of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// Bytes that were asked for and are in use.
    pub allocated: u64,
    /// The same with their padding.
    pub active: u64,
    /// Bytes that the pool holds of the device.
    pub reserved: u64,
}

/// A question to a device's pools, which may be put from any thread.
pub type Ask = Box<dyn Fn() -> Option<PoolUsage> + Send>;

/// What the devices of a backend can be asked, and told. One that cannot be asked leaves the defaults.
pub trait Driver: Sync {
    /// Asks the memory pools of a device, those of every thread that has worked on it.
    fn pool(&self, _: Device) -> Option<Ask> {
        None
    }

    /// Gives what a device's pools hold and nobody uses back to the device.
    fn empty_pool(&self, _: Device) -> Result<(), ZooError> {
        Ok(())
    }

    /// Whether a block of a device's pools that was given back may serve a tensor of another size. It may, until it is
    /// switched off: then the pools hold as many blocks of each size as were ever in use together.
    fn share_blocks(&self, _: Device, _: bool) -> Result<(), ZooError> {
        Ok(())
    }

    /// Bytes that are free on a device.
    fn free_memory(&self, _: Device, _: &mut Machines) -> Option<u64> {
        None
    }

    /// Why nothing can run on a device in this process any more, if that is so.
    fn broken(&self, _: Device, _: &Machines) -> Option<String> {
        None
    }
}
