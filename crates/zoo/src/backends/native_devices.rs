//! Native device handles.

#[cfg(feature = "cuda")]
use calorimeter_kernels::native::CudaDevice;
use std::path::Path;
#[cfg(feature = "cuda")]
use std::{collections::HashMap, path::PathBuf, sync::Arc};

/// Device handles that the workloads of a process share.
#[derive(Default)]
pub struct NativeDevices {
    /// CUDA devices of native workloads, by index.
    #[cfg(feature = "cuda")]
    pub(super) native: HashMap<u16, Arc<CudaDevice>>,
    /// Directory in which the devices cache compiled kernels and chosen algorithms.
    #[cfg(feature = "cuda")]
    pub(super) cache_dir: Option<PathBuf>,
}

impl NativeDevices {
    /// Devices that read and write a cache directory of compiled kernels and of the fastest library algorithms.
    pub fn with_cache_dir(folder: Option<&Path>) -> Self {
        #[cfg(feature = "cuda")]
        return Self { cache_dir: folder.map(Path::to_path_buf), ..Self::default() };
        #[cfg(not(feature = "cuda"))]
        {
            let _ = folder;
            Self::default()
        }
    }
}
