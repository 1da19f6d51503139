//! Handles to devices.

#[cfg(feature = "cuda")]
use calorimeter_kernels::native::Machine;
use std::path::Path;
#[cfg(feature = "cuda")]
use std::{collections::HashMap, path::PathBuf, sync::Arc};

/// Handles to devices that workloads of one process share.
#[derive(Default)]
pub struct Machines {
    /// The CUDA devices of native workloads.
    #[cfg(feature = "cuda")]
    pub(super) native: HashMap<u16, Arc<Machine>>,
    /// Where they keep what took time to find out.
    #[cfg(feature = "cuda")]
    pub(super) folder: Option<PathBuf>,
}

impl Machines {
    /// Machines that keep compiled kernels, and which of a library's algorithms were the fastest, in a folder, and take what is
    /// known there.
    pub fn keeping(folder: Option<&Path>) -> Self {
        #[cfg(feature = "cuda")]
        return Self { folder: folder.map(Path::to_path_buf), ..Self::default() };
        #[cfg(not(feature = "cuda"))]
        {
            let _ = folder;
            Self::default()
        }
    }
}
