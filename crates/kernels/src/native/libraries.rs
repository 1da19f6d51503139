//! Which shared libraries there are. The bindings panic on the first call into one that is missing, so every path into
//! a library begins with [`Library::require`].

use std::sync::OnceLock;

use cudarc::{cublaslt, cupti, driver, get_lib_name_candidates, nccl, nvrtc};

use super::{NativeError, cudnn_functions};

/// Whether one of the shared libraries of CUDA can be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LibraryStatus {
    /// Usual file name.
    pub name: &'static str,
    /// What it is used for.
    pub purpose: &'static str,
    /// Whether native kernels need it.
    pub required: bool,
    /// Whether it was found.
    pub loaded: bool,
    /// Why it was not, and what to do about it.
    pub why: Option<String>,
}

/// The state of every library that CUDA measurements can use, without touching a GPU.
///
/// ```
/// # #[cfg(feature = "cuda")]
/// for library in calorimeter_kernels::native::libraries() {
///     println!("{}: {}", library.name, library.why.as_deref().unwrap_or("found"));
/// }
/// ```
pub fn libraries() -> Vec<LibraryStatus> {
    Library::ALL
        .iter()
        .map(|library| {
            let missing = library.require().err();
            LibraryStatus {
                name: library.file(),
                purpose: library.purpose(),
                required: !matches!(library, Library::Cudnn | Library::Cupti | Library::Nccl),
                loaded: missing.is_none(),
                why: missing.map(|error| error.to_string()),
            }
        })
        .collect()
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Library {
    Driver,
    Nvrtc,
    CublasLt,
    Cudnn,
    Cupti,
    Nccl,
}

impl Library {
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
            Self::CublasLt => "matrix products",
            Self::Cudnn => "convolutions, beside a kernel of our own",
            Self::Cupti => "device times of kernels launched by others",
            Self::Nccl => "exchange between several GPUs",
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
                 or do without it"
            }
            Self::Cupti => {
                "install the CUDA toolkit and add its extras/CUPTI/lib64 to LD_LIBRARY_PATH, \
                 or do without kernel records"
            }
            Self::Nccl => {
                "install NCCL with its development files (where there is only libnccl.so.2, a link of this name to it will \
                 do), or do without collectives"
            }
        }
    }

    /// The names the bindings look for.
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

    /// Asked once per process: libcublasLt is hundreds of megabytes, and loading it is not free.
    fn is_present(self) -> bool {
        static FOUND: [OnceLock<bool>; Library::ALL.len()] = [const { OnceLock::new() }; Library::ALL.len()];
        *FOUND[self as usize].get_or_init(|| {
            // SAFETY: opening a library runs its initializers; these are NVIDIA's own, meant to be opened this way, and
            // the bindings open the same files on their first call.
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
            Self::Cudnn => cudnn_functions::NAMES.map(str::to_string).to_vec(),
            _ => get_lib_name_candidates(self.stem()),
        };
        // Names in the manner of Windows are tried everywhere, and would only confuse elsewhere.
        tried.retain(|name| cfg!(windows) || !name.contains("64"));
        Err(NativeError::LibraryMissing { file: self.file(), tried: tried.join(", "), advice: self.advice() })
    }
}
