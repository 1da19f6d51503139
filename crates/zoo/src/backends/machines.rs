//! Handles to devices.

#[cfg(feature = "cuda")]
use calorimeter_kernels::native::Machine;
#[cfg(feature = "cuda")]
use std::{collections::HashMap, sync::Arc};

/// Handles to devices that workloads of one process share.
#[derive(Default)]
pub struct Machines {
    /// The CUDA devices of native workloads.
    #[cfg(feature = "cuda")]
    pub(super) native: HashMap<u16, Arc<Machine>>,
}
