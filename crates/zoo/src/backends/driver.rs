//! Device memory and state, per backend.

use super::NativeDevices;
use crate::Device;
use crate::ZooError;

/// Memory usage of a device's pools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// Bytes requested and in use.
    pub allocated: u64,
    /// Bytes in use, including padding.
    pub active: u64,
    /// Bytes that the pools have allocated on the device.
    pub reserved: u64,
}

/// Query of a device's memory pools; callable from any thread.
pub type PoolQuery = Box<dyn Fn() -> Option<PoolUsage> + Send>;

/// Device memory and state of a backend. The defaults are for backends without such functions.
pub(super) trait BackendDriver: Sync {
    /// Returns a query that sums the pools of all threads that have used the device.
    fn pool_query(&self, _: Device) -> Option<PoolQuery> {
        None
    }

    /// Returns unused pool memory to the device.
    fn empty_pool(&self, _: Device) -> Result<(), ZooError> {
        Ok(())
    }

    /// Allows freed blocks to serve tensors of another size, which is the default.
    ///
    /// If disallowed, pools hold as many blocks of each size as were ever in use at the same time.
    fn share_blocks(&self, _: Device, _: bool) -> Result<(), ZooError> {
        Ok(())
    }

    /// Free device memory in bytes.
    fn free_memory(&self, _: Device, _: &mut NativeDevices) -> Option<u64> {
        None
    }

    /// Reason why this process cannot use the device any more, if there is one.
    fn failure(&self, _: Device, _: &NativeDevices) -> Option<String> {
        None
    }
}
