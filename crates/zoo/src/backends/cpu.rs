//! This machine's processor, through burn-flex.

use super::BurnBackend;
use crate::{Device, ZooError};
use burn_flex::{Flex, FlexDevice};

pub type Eager = Flex;

impl BurnBackend for Flex {
    fn handle(_: Device) -> Result<FlexDevice, ZooError> {
        Ok(FlexDevice)
    }
}
