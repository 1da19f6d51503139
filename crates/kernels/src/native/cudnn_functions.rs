//! Functions of cuDNN 9, loaded at run time.

use std::{
    ffi::{c_char, c_int, c_void},
    sync::OnceLock,
};

use libloading::Library as Loaded;

/// Opaque pointer to a handle or descriptor.
pub(super) type RawPointer = *mut c_void;

/// Library file names; the sub-libraries must be in the same folder.
pub(super) const LIBRARY_NAMES: [&str; 2] = ["libcudnn.so.9", "libcudnn.so"];

/// Minimum version with these function signatures.
const MIN_VERSION: usize = 90_000;

/// Function pointers.
pub(super) struct CudnnFunctions {
    pub(super) version: unsafe extern "C" fn() -> usize,
    pub(super) error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    pub(super) create: unsafe extern "C" fn(*mut RawPointer) -> c_int,
    pub(super) destroy: unsafe extern "C" fn(RawPointer) -> c_int,
    pub(super) set_stream: unsafe extern "C" fn(RawPointer, *mut c_void) -> c_int,
    pub(super) create_descriptor: unsafe extern "C" fn(c_int, *mut RawPointer) -> c_int,
    pub(super) destroy_descriptor: unsafe extern "C" fn(RawPointer) -> c_int,
    pub(super) finalize: unsafe extern "C" fn(RawPointer) -> c_int,
    pub(super) set_attribute: unsafe extern "C" fn(RawPointer, c_int, c_int, i64, *const c_void) -> c_int,
    pub(super) get_attribute: unsafe extern "C" fn(RawPointer, c_int, c_int, i64, *mut i64, *mut c_void) -> c_int,
    pub(super) execute: unsafe extern "C" fn(RawPointer, RawPointer, RawPointer) -> c_int,
    /// Keeps the library loaded.
    _library: Loaded,
}

/// Loads the library once per process; `None` if it is missing or too old.
pub(super) fn load_once() -> Option<&'static CudnnFunctions> {
    static FOUND: OnceLock<Option<CudnnFunctions>> = OnceLock::new();
    FOUND.get_or_init(|| LIBRARY_NAMES.iter().find_map(|name| load(name))).as_ref()
}

fn load(name: &str) -> Option<CudnnFunctions> {
    // SAFETY: opening a library runs its initializers; these are NVIDIA's and are designed to be loaded this way.
    let library = unsafe { Loaded::new(name) }.ok()?;
    // SAFETY: each type matches the declaration of this function in cuDNN's header.
    let functions = unsafe {
        CudnnFunctions {
            version: *library.get(b"cudnnGetVersion").ok()?,
            error_string: *library.get(b"cudnnGetErrorString").ok()?,
            create: *library.get(b"cudnnCreate").ok()?,
            destroy: *library.get(b"cudnnDestroy").ok()?,
            set_stream: *library.get(b"cudnnSetStream").ok()?,
            create_descriptor: *library.get(b"cudnnBackendCreateDescriptor").ok()?,
            destroy_descriptor: *library.get(b"cudnnBackendDestroyDescriptor").ok()?,
            finalize: *library.get(b"cudnnBackendFinalize").ok()?,
            set_attribute: *library.get(b"cudnnBackendSetAttribute").ok()?,
            get_attribute: *library.get(b"cudnnBackendGetAttribute").ok()?,
            execute: *library.get(b"cudnnBackendExecute").ok()?,
            _library: library,
        }
    };
    // SAFETY: takes no arguments and returns an integer.
    (unsafe { (functions.version)() } >= MIN_VERSION).then_some(functions)
}

/// True if cuDNN is available.
pub(super) fn is_present() -> bool {
    load_once().is_some()
}
