//! NVTX ranges for NVIDIA's tools, such as Nsight Systems and Nsight Compute.
//!
//! A tool sets [`VARIABLE`] to the path of its library before it starts a program. The first range loads that library,
//! which fills in the functions to call. Without the variable a range costs one load.
//!
//! ```
//! use calorimeter_timing::nvtx::{NvtxRange, state};
//!
//! let range = NvtxRange::start("int8wo 1x4096x4096");
//! // Ends here, and after every range that was started later on this thread.
//! drop(range);
//! println!("{}", state());
//! ```

#![allow(unsafe_code, reason = "a tool's library calls us and is called")]

use libloading::Library;
use std::error::Error;
use std::ffi::{CString, OsStr, c_char, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::mem::transmute;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::{fmt, ptr};

/// Environment variable with the path of a tool's library.
pub const VARIABLE: &str =
    if cfg!(target_pointer_width = "64") { "NVTX_INJECTION64_PATH" } else { "NVTX_INJECTION32_PATH" };

/// State of the connection to a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NvtxState {
    /// No tool is configured.
    Off,
    /// This library receives the ranges.
    On(PathBuf),
    /// This library was configured but does not accept ranges, with the reason.
    Failed(PathBuf, String),
}

impl fmt::Display for NvtxState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => write!(f, "NVTX ranges are disabled: {VARIABLE} is not set"),
            Self::On(library) => write!(f, "NVTX ranges are sent to {}", library.display()),
            Self::Failed(library, reason) => {
                write!(f, "NVTX ranges are unavailable: {VARIABLE} names {}, which {reason}", library.display())
            }
        }
    }
}

static STATE: LazyLock<NvtxState> = LazyLock::new(|| match std::env::var_os(VARIABLE) {
    None => NvtxState::Off,
    Some(library) => match load(&library) {
        Ok(()) => NvtxState::On(library.into()),
        Err(reason) => NvtxState::Failed(library.into(), reason),
    },
});

/// Returns the state of the connection to a tool; the first call loads its library.
pub fn state() -> &'static NvtxState {
    &STATE
}

/// Range on the calling thread, until it is dropped.
#[must_use = "a range ends when it is dropped"]
pub struct NvtxRange {
    // Ranges are stacked per thread, so a range must end on the thread where it began.
    thread: PhantomData<*const ()>,
}

impl NvtxRange {
    /// Begins a range, nested in those already open on this thread.
    pub fn start(name: &str) -> Self {
        if let Some(push) = function(PUSH_SLOT) {
            let name = CString::new(name.replace('\0', " ")).unwrap_or_default();
            // SAFETY: a tool stores nvtxRangePushA in this slot, which copies the name.
            unsafe { transmute::<*mut c_void, extern "system" fn(*const c_char) -> c_int>(push)(name.as_ptr()) };
        }
        Self { thread: PhantomData }
    }
}

impl Drop for NvtxRange {
    fn drop(&mut self) {
        if let Some(pop) = function(POP_SLOT) {
            // SAFETY: a tool stores nvtxRangePop in this slot.
            unsafe { transmute::<*mut c_void, extern "system" fn() -> c_int>(pop)() };
        }
    }
}

/// Returns a function of the core module, if a tool has registered it.
fn function(slot: usize) -> Option<*mut c_void> {
    let NvtxState::On(_) = *STATE else { return None };
    let function = TABLES[CORE_MODULE][slot]?.load(Ordering::Acquire);
    (!function.is_null()).then_some(function)
}

// Protocol of NVTX version 3, from NVIDIA's header.

/// Slot for a function pointer; null until a tool writes it.
type FunctionSlot = AtomicPtr<c_void>;
type FunctionTable = Box<[Option<&'static FunctionSlot>]>;

const CORE_MODULE: usize = 1;
const PUSH_SLOT: usize = 9;
const POP_SLOT: usize = 11;

/// Slots of the modules none, core, CUDA, OpenCL, CUDA runtime, core 2 and synchronization. Modules other than core
/// exist only because tools may expect them.
const SLOTS_PER_MODULE: [usize; 7] = [0, 16, 9, 15, 7, 16, 7];

/// Function tables of the modules. The first slot of a table has no function, and an additional, uncounted slot
/// terminates it.
static TABLES: LazyLock<[FunctionTable; 7]> = LazyLock::new(|| {
    let slot = || -> &'static FunctionSlot { Box::leak(Box::default()) };
    SLOTS_PER_MODULE.map(|slots| (0..=slots).map(|i| (0 < i && i < slots).then(slot)).collect())
});

#[repr(C)]
struct CallbacksExport {
    size: usize,
    module: extern "system" fn(c_int, *mut *const Option<&'static FunctionSlot>, *mut c_uint) -> c_int,
}

#[repr(C)]
struct VersionExport {
    size: usize,
    version: u32,
    reserved: u32,
    tool_has: extern "system" fn(u32),
}

static CALLBACKS: CallbacksExport = CallbacksExport { size: size_of::<CallbacksExport>(), module: module_table };
static VERSION: VersionExport = VersionExport { size: size_of::<VersionExport>(), version: 3, reserved: 0, tool_has };

extern "system" fn tool_has(_version: u32) {}

extern "system" fn module_table(
    module: c_int,
    table: *mut *const Option<&'static FunctionSlot>,
    slots: *mut c_uint,
) -> c_int {
    let Some(index) =
        usize::try_from(module).ok().filter(|index| (CORE_MODULE..SLOTS_PER_MODULE.len()).contains(index))
    else {
        return 0;
    };
    // SAFETY: a tool passes null or a valid pointer for each result.
    unsafe {
        if !table.is_null() {
            table.write(TABLES[index].as_ptr());
        }
        if !slots.is_null() {
            slots.write(SLOTS_PER_MODULE[index] as c_uint);
        }
    }
    1
}

extern "system" fn export_table(id: u32) -> *const c_void {
    match id {
        1 => (&raw const CALLBACKS).cast(),
        3 => (&raw const VERSION).cast(),
        _ => ptr::null(),
    }
}

/// Loads a tool's library for the rest of the process, or returns why it cannot be used.
fn load(path: &OsStr) -> Result<(), String> {
    type Initialize = extern "system" fn(extern "system" fn(u32) -> *const c_void) -> c_int;
    const ENTRY: &str = "InitializeInjectionNvtx2";
    // SAFETY: loading runs the code of a library that the user named for this purpose.
    let library = unsafe { Library::new(path) }.map_err(|error| {
        let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        format!("cannot be loaded: {reason}")
    })?;
    // SAFETY: the protocol defines this signature for the function of this name.
    let initialize = unsafe { library.get::<Initialize>(ENTRY) }.map_err(|_| format!("has no function {ENTRY}"))?;
    if initialize(export_table) == 0 {
        return Err("failed to initialize".into());
    }
    // From now on the tool's functions may be called, so the library stays loaded.
    std::mem::forget(library);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    /// A tool's library that logs its calls to a file.
    const TOOL: &str = r#"
use std::ffi::{CStr, c_char, c_void};
use std::io::Write;

#[repr(C)]
struct Callbacks { size: usize, module: extern "C" fn(i32, *mut *const *mut *const c_void, *mut u32) -> i32 }
#[repr(C)]
struct Version { size: usize, version: u32, reserved: u32, tool_has: extern "C" fn(u32) }

fn log(line: String) {
    let path = std::env::var_os("TOOL_LOG").unwrap();
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}
extern "C" fn push(name: *const c_char) -> i32 {
    log(format!("push {}", unsafe { CStr::from_ptr(name) }.to_str().unwrap()));
    0
}
extern "C" fn pop() -> i32 {
    log("pop".into());
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjectionNvtx2(export_table: extern "C" fn(u32) -> *const c_void) -> i32 {
    if std::env::var_os("TOOL_FAILS").is_some() {
        return 0;
    }
    unsafe {
        let version = &*export_table(3).cast::<Version>();
        (version.tool_has)(3);
        let callbacks = &*export_table(1).cast::<Callbacks>();
        log(format!("version {}, sizes {} {}", version.version, version.size, callbacks.size));
        assert!(export_table(2).is_null());
        let (mut table, mut slots) = (std::ptr::null(), 0);
        for module in 0..8 {
            let known = (callbacks.module)(module, &mut table, &mut slots);
            log(format!("module {module}: {known}, {slots} slots"));
            if known != 0 {
                assert!((*table).is_null() && (*table.add(slots as usize)).is_null());
                assert!((1..slots as usize).all(|i| (**table.add(i)).is_null()));
            }
            if module == 1 {
                **table.add(9) = push as *const c_void;
                **table.add(11) = pop as *const c_void;
            }
        }
    }
    1
}
"#;

    fn compile(source: &str, folder: &Path) -> PathBuf {
        let (from, library) = (folder.join("tool.rs"), folder.join("tool.so"));
        fs::write(&from, source).unwrap();
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        rustc.args(["--crate-type", "cdylib", "--edition", "2024", "-o"]).args([&library, &from]);
        assert!(rustc.status().unwrap().success());
        library
    }

    /// Set in the child process that starts ranges; the tests examine it from outside.
    const CHILD: &str = "CALORIMETER_TEST_ALONE";

    /// Child process that starts two ranges and prints its state.
    fn child() -> Command {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "nvtx::tests::ranges_nest_and_report_their_state", "--nocapture"]);
        child.env(CHILD, "1").env_remove(VARIABLE);
        child
    }

    /// Output of the child process, and the log of the tool.
    fn run(library: &Path, folder: &Path, fails: bool) -> (String, String) {
        let log = folder.join("log");
        let mut child = child();
        child.env(VARIABLE, library).env("TOOL_LOG", &log);
        if fails {
            child.env("TOOL_FAILS", "1");
        }
        let output = child.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        (String::from_utf8(output.stdout).unwrap(), fs::read_to_string(log).unwrap_or_default())
    }

    #[test]
    fn ranges_nest_and_report_their_state() {
        if std::env::var_os(CHILD).is_some() {
            let outer = NvtxRange::start("outer \"π\"");
            drop(NvtxRange::start("in\0ner"));
            drop(outer);
            println!("state: {:?}", state());
            return;
        }
        let printed = String::from_utf8(child().output().unwrap().stdout).unwrap();
        assert!(printed.contains("state: Off"), "{printed}");
    }

    #[test]
    fn tool_receives_nested_ranges() {
        let folder = tempfile::tempdir().unwrap();
        let library = compile(TOOL, folder.path());
        let (printed, log) = run(&library, folder.path(), false);
        let expected = "\
version 3, sizes 24 16
module 0: 0, 0 slots
module 1: 1, 16 slots
module 2: 1, 9 slots
module 3: 1, 15 slots
module 4: 1, 7 slots
module 5: 1, 16 slots
module 6: 1, 7 slots
module 7: 0, 7 slots
push outer \"π\"
push in ner
pop
pop
";
        assert_eq!(log, expected);
        assert!(printed.contains(&format!("state: {:?}", NvtxState::On(library))), "{printed}");
    }

    #[test]
    fn unusable_library_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("none.so");
        for (library, fails, part) in [
            (&missing, false, "none.so"),
            (&compile(TOOL, folder.path()), true, "tool.so"),
            (&compile("", folder.path()), false, "InitializeInjectionNvtx2"),
        ] {
            let (printed, log) = run(library, folder.path(), fails);
            let failed = format!("state: Failed({library:?}, ");
            assert!(printed.contains(&failed) && printed.contains(part) && log.is_empty(), "{printed}{log}");
        }
    }
}
