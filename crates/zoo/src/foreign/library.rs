//! Shared libraries with the interface of `calorimeter.h`.
//!
//! Libraries are not sandboxed; one that crashes kills its worker only.

use super::ForeignProblem;
use super::argument::{BufferRole, ResolvedArgument, ResolvedBuffer};
use super::memory::AlignedBytes;
use super::outputs::{CallBuffers, call_and_read, read_last};
use crate::rotating_workload::{self, SetPass, WorkloadProperties};
use crate::{Output, Workload, ZooError};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

/// Interface version of this program.
const INTERFACE_VERSION: u32 = 1;

/// `calorimeter_axis`.
#[repr(C)]
struct CAxis {
    name: *const c_char,
    value: u64,
}

/// `calorimeter_argument`.
#[repr(C)]
struct CArgument {
    kind: *const c_char,
    role: u32,
    length: u64,
    data: *mut c_void,
}

/// `calorimeter_problem`.
#[repr(C)]
struct CProblem {
    axis_count: u64,
    axes: *const CAxis,
    argument_count: u64,
    arguments: *const CArgument,
    seed: u64,
}

/// `CALORIMETER_VALUE`; smaller values are the roles of buffers.
const SCALAR_ROLE: u32 = 3;

type VersionFn = unsafe extern "C" fn() -> u32;
type PrepareFn = unsafe extern "C" fn(*const CProblem, *mut *mut c_void) -> c_int;
type RunFn = unsafe extern "C" fn(*mut c_void) -> c_int;
type FinishFn = unsafe extern "C" fn(*mut c_void);
type MessageFn = unsafe extern "C" fn() -> *const c_char;

/// Loaded library and its functions.
struct LibraryInterface {
    path: String,
    prepare: PrepareFn,
    run: RunFn,
    finish: FinishFn,
    message: Option<MessageFn>,
    /// Last field, because it must be unloaded after the functions are out of use.
    _library: Library,
}

impl LibraryInterface {
    fn load(path: &str) -> Result<Self, ZooError> {
        let failed = |why: String| match why.starts_with(path) {
            true => ZooError::Device(why),
            false => ZooError::Device(format!("{path}: {why}")),
        };
        // SAFETY: loading a library runs its initializers; the user requested it by naming the library.
        let library = unsafe { Library::new(path) }.map_err(|error| failed(cause_of(&error)))?;
        let version: VersionFn = function(&library, "calorimeter_version").map_err(failed)?;
        // SAFETY: a library that exports this name implements `calorimeter.h`, which declares this type.
        let found = unsafe { version() };
        if found != INTERFACE_VERSION {
            let why = format!(
                "interface version {found} does not match version {INTERFACE_VERSION} of this program; rebuild the library with \
                 its calorimeter.h"
            );
            return Err(failed(why));
        }
        Ok(Self {
            path: path.to_owned(),
            prepare: function(&library, "calorimeter_prepare").map_err(failed)?,
            run: function(&library, "calorimeter_run").map_err(failed)?,
            finish: function(&library, "calorimeter_finish").map_err(failed)?,
            message: function(&library, "calorimeter_message").ok(),
            _library: library,
        })
    }

    /// Converts a nonzero return value to an error that includes the message of the library, if any.
    fn check(&self, name: &str, answer: c_int) -> Result<(), ZooError> {
        if answer == 0 {
            return Ok(());
        }
        // SAFETY: the type is declared by `calorimeter.h`.
        let message = self.message.map_or(ptr::null(), |message| unsafe { message() });
        let words = if message.is_null() {
            String::new()
        } else {
            // SAFETY: not null, and by the interface a zero-terminated string.
            format!(": {}", unsafe { CStr::from_ptr(message) }.to_string_lossy())
        };
        Err(ZooError::Device(format!("{}: {name} returned {answer}{words}", self.path)))
    }
}

/// Looks up a required function of a library.
fn function<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    // SAFETY: `calorimeter.h` declares the function of this name with type `T`; it is called while the library is
    // loaded.
    unsafe { library.get::<T>(name) }.map(|symbol| *symbol).map_err(|_| {
        format!("missing function {name}; a library must implement the interface of calorimeter.h (docs: foreign)")
    })
}

/// Message of the underlying cause, which is more specific than its wrapper.
fn cause_of(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Buffer set: memory, and the state that the library prepared for it. Nothing moves while the library holds pointers
/// to it.
struct LibraryState {
    interface: Arc<LibraryInterface>,
    declared: Vec<ResolvedBuffer>,
    memory: Vec<AlignedBytes>,
    initial_contents: Arc<Vec<Option<Vec<u8>>>>,
    state: *mut c_void,
    /// Tables that the library may read while its state lives.
    _tables: ProblemTables,
}

/// Tables of a problem in the C interface; pointers lead from one to another.
struct ProblemTables {
    _names: Vec<CString>,
    _values: Vec<AlignedBytes>,
    _axes: Vec<CAxis>,
    _arguments: Vec<CArgument>,
    problem: Box<CProblem>,
}

// SAFETY: pointers lead to memory owned by this value or by the library. By the interface the library may be called
// from any thread, one at a time; `&mut` ensures the latter.
unsafe impl Send for LibraryState {}

impl LibraryState {
    fn prepare(
        interface: &Arc<LibraryInterface>,
        problem: &ForeignProblem,
        first: &Arc<Vec<Option<Vec<u8>>>>,
    ) -> Result<Self, ZooError> {
        let given = problem.arguments()?;
        let (mut declared, mut memory) = (Vec::new(), Vec::new());
        for argument in &given {
            if let ResolvedArgument::Buffer(buffer) = argument {
                memory.push(match &first[declared.len()] {
                    Some(content) => AlignedBytes::copy_of(content),
                    None => AlignedBytes::new(buffer.bytes() as usize, 0xFF),
                });
                declared.push(buffer.clone());
            }
        }
        let told = ProblemTables::new(problem, &given, &mut memory)?;
        let mut state = ptr::null_mut();
        // SAFETY: the tables have the layout of `calorimeter.h` and outlive the state.
        let answer = unsafe { (interface.prepare)(&raw const *told.problem, &raw mut state) };
        interface.check("calorimeter_prepare", answer)?;
        Ok(Self {
            interface: interface.clone(),
            declared,
            memory,
            initial_contents: first.clone(),
            state,
            _tables: told,
        })
    }
}

impl ProblemTables {
    fn new(
        problem: &ForeignProblem,
        given: &[ResolvedArgument],
        memory: &mut [AlignedBytes],
    ) -> Result<Self, ZooError> {
        let text = |name: &str| {
            CString::new(name)
                .map_err(|_| ZooError::Shape(format!("invalid axis name {name:?}: it contains a zero byte")))
        };
        let (mut names, mut values, mut axes, mut arguments) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (name, value) in problem.axes.iter() {
            let name = text(name)?;
            // Moving a `CString` does not move its bytes.
            axes.push(CAxis { name: name.as_ptr(), value });
            names.push(name);
        }
        let mut memory = memory.iter_mut();
        for argument in given {
            let (kind, role, length, data) = match argument {
                ResolvedArgument::Buffer(ResolvedBuffer { element, length, role, .. }) => {
                    let role = match role {
                        BufferRole::In => 0,
                        BufferRole::Out => 1,
                        BufferRole::InOut => 2,
                    };
                    let data = memory.next().map_or(ptr::null_mut(), AlignedBytes::start);
                    (element.to_string(), role, *length, data)
                }
                ResolvedArgument::Value(bytes, kind) => {
                    let mut value = AlignedBytes::copy_of(bytes);
                    let data = value.start();
                    values.push(value);
                    ((*kind).to_owned(), SCALAR_ROLE, 1, data)
                }
            };
            let kind = text(&kind)?;
            arguments.push(CArgument { kind: kind.as_ptr(), role, length, data: data.cast() });
            names.push(kind);
        }
        let problem = Box::new(CProblem {
            axis_count: axes.len() as u64,
            axes: axes.as_ptr(),
            argument_count: arguments.len() as u64,
            arguments: arguments.as_ptr(),
            seed: problem.seed,
        });
        Ok(Self { _names: names, _values: values, _axes: axes, _arguments: arguments, problem })
    }
}

impl CallBuffers for LibraryState {
    fn buffers(&self) -> &[ResolvedBuffer] {
        &self.declared
    }

    fn fill(&mut self, index: usize, byte: u8) -> Result<(), ZooError> {
        self.memory[index].fill(byte);
        Ok(())
    }

    fn restore(&mut self, index: usize) -> Result<(), ZooError> {
        if let Some(content) = &self.initial_contents[index] {
            self.memory[index].write(content);
        }
        Ok(())
    }

    fn read(&mut self, index: usize) -> Result<Vec<u8>, ZooError> {
        Ok(self.memory[index].read())
    }

    fn call(&mut self) -> Result<(), ZooError> {
        // SAFETY: `state` was prepared by the library and not finished yet.
        let answer = unsafe { (self.interface.run)(self.state) };
        if answer == 0 { Ok(()) } else { self.interface.check("calorimeter_run", answer) }
    }
}

impl Drop for LibraryState {
    fn drop(&mut self) {
        // SAFETY: prepared once and finished once, while the memory passed to the library still exists.
        unsafe { (self.interface.finish)(self.state) };
    }
}

struct LibraryPass;

/// Loads a library and prepares each buffer set.
pub(super) fn open(path: &str, problem: &ForeignProblem, sets: u32) -> Result<Box<dyn Workload>, ZooError> {
    let interface = Arc::new(LibraryInterface::load(path)?);
    let first = Arc::new(problem.initial_contents()?);
    let states = (0..sets).map(|_| LibraryState::prepare(&interface, problem, &first)).collect::<Result<_, _>>()?;
    let properties = WorkloadProperties { kernel: Some(path.to_owned()), ..Default::default() };
    Ok(rotating_workload::open(LibraryPass, states, properties))
}

impl SetPass for LibraryPass {
    type Set = LibraryState;

    fn launch(&mut self, state: &mut LibraryState) -> Result<(), ZooError> {
        state.call()
    }

    fn outputs(&mut self, state: &mut LibraryState) -> Result<Vec<Output>, ZooError> {
        call_and_read(state)
    }

    fn last_outputs(&mut self, state: &mut LibraryState) -> Result<Option<Vec<Output>>, ZooError> {
        read_last(state)
    }
}
