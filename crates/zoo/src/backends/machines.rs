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
    /// Where libraries' algorithms that were the fastest are kept.
    #[cfg(feature = "cuda")]
    pub(super) choices: Option<PathBuf>,
}

impl Machines {
    /// Machines that keep which of a library's algorithms were the fastest in a folder, and take what is known there.
    pub fn keeping(folder: Option<&Path>) -> Self {
        #[cfg(feature = "cuda")]
        return Self { choices: folder.map(|folder| folder.join("cublaslt.txt")), ..Self::default() };
        #[cfg(not(feature = "cuda"))]
        {
            let _ = folder;
            Self::default()
        }
    }
}
