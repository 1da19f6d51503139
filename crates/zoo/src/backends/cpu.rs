//! This machine's processor, through burn-flex.

use super::BurnBackend;
use super::driver::Driver;
use crate::{Device, ZooError};
use burn_flex::{Flex, FlexDevice};

pub type Eager = Flex;

impl BurnBackend for Flex {
    fn handle(_: Device) -> Result<FlexDevice, ZooError> {
        Ok(FlexDevice)
    }
}

/// The processor: its memory is the system's, and nothing breaks it.
pub struct Processor;

impl Driver for Processor {}
