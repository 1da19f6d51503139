//! The functions of cuDNN 9 that are called here, loaded at run time.

use std::{
    ffi::{c_char, c_int, c_void},
    sync::OnceLock,
};

use libloading::Library as Loaded;

/// What a handle and a descriptor are to the library.
pub(super) type Raw = *mut c_void;

/// The names it is looked for by; its parts lie beside it.
pub(super) const NAMES: [&str; 2] = ["libcudnn.so.9", "libcudnn.so"];

/// The first version whose functions are these.
const OLDEST: usize = 90_000;

/// The functions that are called here.
pub(super) struct Functions {
    pub(super) version: unsafe extern "C" fn() -> usize,
    pub(super) error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    pub(super) create: unsafe extern "C" fn(*mut Raw) -> c_int,
    pub(super) destroy: unsafe extern "C" fn(Raw) -> c_int,
    pub(super) set_stream: unsafe extern "C" fn(Raw, *mut c_void) -> c_int,
    pub(super) create_descriptor: unsafe extern "C" fn(c_int, *mut Raw) -> c_int,
    pub(super) destroy_descriptor: unsafe extern "C" fn(Raw) -> c_int,
    pub(super) finalize: unsafe extern "C" fn(Raw) -> c_int,
    pub(super) set_attribute: unsafe extern "C" fn(Raw, c_int, c_int, i64, *const c_void) -> c_int,
    pub(super) get_attribute: unsafe extern "C" fn(Raw, c_int, c_int, i64, *mut i64, *mut c_void) -> c_int,
    pub(super) execute: unsafe extern "C" fn(Raw, Raw, Raw) -> c_int,
    /// Never unloaded: the functions are in it.
    _library: Loaded,
}

/// Looked for once per process; `None` where there is none, or an older one.
pub(super) fn loaded() -> Option<&'static Functions> {
    static FOUND: OnceLock<Option<Functions>> = OnceLock::new();
    FOUND.get_or_init(|| NAMES.iter().find_map(|name| load(name))).as_ref()
}

fn load(name: &str) -> Option<Functions> {
    // SAFETY: opening a library runs its initializers; these are NVIDIA's own, meant to be opened this way.
    let library = unsafe { Loaded::new(name) }.ok()?;
    // SAFETY: each type is that of the function of this name in cuDNN's header.
    let functions = unsafe {
        Functions {
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
    // SAFETY: takes nothing and returns a number.
    (unsafe { (functions.version)() } >= OLDEST).then_some(functions)
}

/// Whether it is there.
pub(super) fn is_present() -> bool {
    loaded().is_some()
}
