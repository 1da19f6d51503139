//! Availability of the shared libraries. The bindings panic on the first call into a missing library, so every code
//! path into a library begins with [`Library::require`].

use std::sync::OnceLock;

use cudarc::{cublaslt, cupti, driver, get_lib_name_candidates, nccl, nvrtc};

use super::{NativeError, cudnn_functions};

/// Availability of one shared library of the CUDA stack.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LibraryStatus {
    /// Usual file name.
    pub name: &'static str,
    /// Purpose.
    pub purpose: &'static str,
    /// True if native kernels require it.
    pub required: bool,
    /// True if it was loaded.
    pub loaded: bool,
    /// Reason why it could not be loaded, with advice.
    pub problem: Option<String>,
}

/// Returns the availability of every library that CUDA measurements can use, without touching a GPU.
///
/// ```
/// # #[cfg(feature = "cuda")]
/// for library in calorimeter_kernels::native::libraries() {
///     println!("{}: {}", library.name, library.problem.as_deref().unwrap_or("found"));
/// }
/// ```
pub fn libraries() -> Vec<LibraryStatus> {
    CudaLibrary::ALL
        .iter()
        .map(|library| {
            let missing = library.require().err();
            LibraryStatus {
                name: library.file(),
                purpose: library.purpose(),
                required: !matches!(library, CudaLibrary::Cudnn | CudaLibrary::Cupti | CudaLibrary::Nccl),
                loaded: missing.is_none(),
                problem: missing.map(|error| error.to_string()),
            }
        })
        .collect()
}

#[derive(Debug, Clone, Copy)]
pub(super) enum CudaLibrary {
    Driver,
    Nvrtc,
    CublasLt,
    Cudnn,
    Cupti,
    Nccl,
}

impl CudaLibrary {
    const ALL: [Self; 6] = [Self::Driver, Self::Nvrtc, Self::CublasLt, Self::Cudnn, Self::Cupti, Self::Nccl];

    fn file(self) -> &'static str {
        match self {
            Self::Driver => "libcuda.so",
            Self::Nvrtc => "libnvrtc.so",
            Self::CublasLt => "libcublasLt.so",
            Self::Cudnn => "libcudnn.so.9",
            Self::Cupti => "libcupti.so",
            Self::Nccl => "libnccl.so",
        }
    }

    fn purpose(self) -> &'static str {
        match self {
            Self::Driver => "any use of an NVIDIA GPU",
            Self::Nvrtc => "compiling CUDA C++ kernels",
            Self::CublasLt => "matrix multiplication",
            Self::Cudnn => "convolutions, in addition to a native kernel",
            Self::Cupti => "device times of kernels of other libraries",
            Self::Nccl => "collective communication between GPUs",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Driver => "install the NVIDIA driver",
            Self::Nvrtc | Self::CublasLt => {
                "install the CUDA toolkit or add the folder that holds the file to LD_LIBRARY_PATH"
            }
            Self::Cudnn => {
                "install cuDNN 9 and add the folder that holds the file and its parts to LD_LIBRARY_PATH, \
                 or do without cuDNN"
            }
            Self::Cupti => {
                "install the CUDA toolkit and add its extras/CUPTI/lib64 to LD_LIBRARY_PATH, \
                 or do without kernel records"
            }
            Self::Nccl => {
                "install NCCL with its development files (if there is only libnccl.so.2, a link with this name \
                 suffices), or do without collectives"
            }
        }
    }

    /// Stem of the file names that the bindings try.
    fn stem(self) -> &'static str {
        match self {
            Self::Driver => "cuda",
            Self::Nvrtc => "nvrtc",
            Self::CublasLt => "cublasLt",
            Self::Cudnn => "cudnn",
            Self::Cupti => "cupti",
            Self::Nccl => "nccl",
        }
    }

    /// Checked once per process: libcublasLt has hundreds of megabytes and is slow to load.
    fn is_present(self) -> bool {
        static FOUND: [OnceLock<bool>; CudaLibrary::ALL.len()] = [const { OnceLock::new() }; CudaLibrary::ALL.len()];
        *FOUND[self as usize].get_or_init(|| {
            // SAFETY: opening a library runs its initializers. These are NVIDIA's and are designed to be loaded this
            // way; the bindings open the same files on their first call.
            unsafe {
                match self {
                    Self::Driver => driver::sys::is_culib_present(),
                    Self::Nvrtc => nvrtc::sys::is_culib_present(),
                    Self::CublasLt => cublaslt::sys::is_culib_present(),
                    Self::Cudnn => cudnn_functions::is_present(),
                    Self::Cupti => cupti::sys::is_culib_present(),
                    Self::Nccl => nccl::sys::is_culib_present(),
                }
            }
        })
    }

    pub(super) fn require(self) -> Result<(), NativeError> {
        if self.is_present() {
            return Ok(());
        }
        let mut tried = match self {
            Self::Cudnn => cudnn_functions::LIBRARY_NAMES.map(str::to_string).to_vec(),
            _ => get_lib_name_candidates(self.stem()),
        };
        // The bindings also try Windows file names on other systems, which would confuse in the message.
        tried.retain(|name| cfg!(windows) || !name.contains("64"));
        Err(NativeError::LibraryMissing { file: self.file(), tried: tried.join(", "), advice: self.advice() })
    }
}
