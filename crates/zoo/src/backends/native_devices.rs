//! Native device handles.

#[cfg(feature = "native")]
use crate::{Device, ZooError};
#[cfg(feature = "native")]
use calorimeter_kernels::native::CudaDevice;
use std::path::Path;
#[cfg(feature = "native")]
use std::{collections::HashMap, path::PathBuf, sync::Arc};

/// Device handles that the workloads of a process share.
#[derive(Default)]
pub struct NativeDevices {
    /// CUDA devices of native workloads, by index.
    #[cfg(feature = "native")]
    pub(super) native: HashMap<u16, Arc<CudaDevice>>,
    /// Directory in which the devices cache compiled kernels and chosen algorithms.
    #[cfg(feature = "native")]
    pub(super) cache_dir: Option<PathBuf>,
}

impl NativeDevices {
    /// Devices that read and write a cache directory of compiled kernels and of the fastest library algorithms.
    pub fn with_cache_dir(folder: Option<&Path>) -> Self {
        #[cfg(feature = "native")]
        return Self { cache_dir: folder.map(Path::to_path_buf), ..Self::default() };
        #[cfg(not(feature = "native"))]
        {
            let _ = folder;
            Self::default()
        }
    }
}

/// Index of a CUDA device; an error for other devices.
#[cfg(feature = "native")]
pub(crate) fn cuda_index(device: Device) -> Result<u16, ZooError> {
    match device {
        Device::Cuda(index) => Ok(index),
        other => Err(ZooError::Device(format!("{other} is not a CUDA device"))),
    }
}

#[cfg(feature = "native")]
impl NativeDevices {
    /// Returns the CUDA device for native workloads, opened on first use.
    pub fn native(&mut self, index: u16) -> Result<Arc<CudaDevice>, ZooError> {
        if let Some(machine) = self.native.get(&index) {
            return Ok(machine.clone());
        }
        let ordinal = usize::from(index);
        let opened = match &self.cache_dir {
            Some(folder) => CudaDevice::open_with_cache(ordinal, folder),
            None => CudaDevice::open(ordinal),
        };
        let machine = opened.map_err(|error| ZooError::Device(error.to_string()))?;
        self.native.insert(index, machine.clone());
        Ok(machine)
    }
}
