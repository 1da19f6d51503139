//! CPU backend: burn-flex.

use super::BurnBackend;
use super::driver::BackendDriver;
use crate::{Device, ZooError};
use burn_flex::{Flex, FlexDevice};

pub(super) type CpuEager = Flex;

impl BurnBackend for Flex {
    fn handle(_: Device) -> Result<FlexDevice, ZooError> {
        Ok(FlexDevice)
    }
}

/// CPU. Memory belongs to the system, and faults do not persist.
pub(super) struct CpuDriver;

impl BackendDriver for CpuDriver {}
