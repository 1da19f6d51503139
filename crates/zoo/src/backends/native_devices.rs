//! Native device handles.

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
