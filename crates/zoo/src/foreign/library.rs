//! Shared libraries with the interface of `calorimeter.h`.
//!
//! What a library does is its own affair, also where it crashes: workers are there to be lost.

use super::ForeignProblem;
use super::argument::{Buffer, Given, Role};
use super::memory::Memory;
use super::outputs::{Buffers, fresh, left};
use crate::{Output, Workload, ZooError};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

/// The version of the interface that this program speaks.
const VERSION: u32 = 1;

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

/// `CALORIMETER_VALUE`; buffers have the numbers of their roles.
const VALUE: u32 = 3;

type Version = unsafe extern "C" fn() -> u32;
type Prepare = unsafe extern "C" fn(*const CProblem, *mut *mut c_void) -> c_int;
type Run = unsafe extern "C" fn(*mut c_void) -> c_int;
type Finish = unsafe extern "C" fn(*mut c_void);
type Message = unsafe extern "C" fn() -> *const c_char;

/// A loaded library, and its functions.
struct Interface {
    path: String,
    prepare: Prepare,
    run: Run,
    finish: Finish,
    message: Option<Message>,
    /// Unloaded last: the functions are in it.
    _library: Library,
}

impl Interface {
    fn load(path: &str) -> Result<Self, ZooError> {
        let failed = |why: String| match why.starts_with(path) {
            true => ZooError::Device(why),
            false => ZooError::Device(format!("{path}: {why}")),
        };
        // SAFETY: loading a library runs its initializers: the user named it so that it be run.
        let library = unsafe { Library::new(path) }.map_err(|error| failed(told(&error)))?;
        let version: Version = function(&library, "calorimeter_version").map_err(failed)?;
        // SAFETY: the type is that of `calorimeter.h`, which whoever has a function of this name has agreed to.
        let found = unsafe { version() };
        if found != VERSION {
            let why = format!(
                "it speaks version {found} of the interface, and this program version {VERSION}; build it with its \
                 calorimeter.h"
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

    /// Refuses an answer other than 0, with the library's own words where it has any.
    fn check(&self, name: &str, answer: c_int) -> Result<(), ZooError> {
        if answer == 0 {
            return Ok(());
        }
        // SAFETY: the type is that of `calorimeter.h`.
        let message = self.message.map_or(ptr::null(), |message| unsafe { message() });
        let words = if message.is_null() {
            String::new()
        } else {
            // SAFETY: not null, and by the interface a text that ends with a zero byte.
            format!(": {}", unsafe { CStr::from_ptr(message) }.to_string_lossy())
        };
        Err(ZooError::Device(format!("{}: {name} answered {answer}{words}", self.path)))
    }
}

/// A function of a library, which must have it.
fn function<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    // SAFETY: what has this name has the type that `calorimeter.h` declares, `T`; it is called while the library is loaded.
    unsafe { library.get::<T>(name) }.map(|symbol| *symbol).map_err(|_| {
        format!("it has no function {name}; a library is timed through the interface of calorimeter.h (docs: foreign)")
    })
}

/// What the loader says: the cause, which says more than what it is wrapped in.
fn told(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// One buffer set: memory, and what the library made for it. Nothing here moves while the library knows of it.
struct State {
    interface: Arc<Interface>,
    declared: Vec<Buffer>,
    memory: Vec<Memory>,
    first: Arc<Vec<Option<Vec<u8>>>>,
    state: *mut c_void,
    ran: bool,
    /// What the library was told, and may look at as long as its state lives.
    _told: Told,
}

/// The texts and tables of a problem, in which pointers lead from one to the other.
struct Told {
    _names: Vec<CString>,
    _values: Vec<Memory>,
    _axes: Vec<CAxis>,
    _arguments: Vec<CArgument>,
    problem: Box<CProblem>,
}

// SAFETY: the pointers lead to memory that the state owns, and to that of the library, which by the interface may be used
// from any thread as long as it is one at a time; `&mut` sees to that.
unsafe impl Send for State {}

impl State {
    fn prepare(
        interface: &Arc<Interface>,
        problem: &ForeignProblem,
        first: &Arc<Vec<Option<Vec<u8>>>>,
    ) -> Result<Self, ZooError> {
        let given = problem.arguments()?;
        let (mut declared, mut memory) = (Vec::new(), Vec::new());
        for argument in &given {
            if let Given::Buffer(buffer) = argument {
                memory.push(match &first[declared.len()] {
                    Some(content) => Memory::of(content),
                    None => Memory::filled(buffer.bytes() as usize, 0xFF),
                });
                declared.push(*buffer);
            }
        }
        let told = Told::new(problem, &given, &mut memory)?;
        let mut state = ptr::null_mut();
        // SAFETY: the tables are as `calorimeter.h` declares them, and outlive the state.
        let answer = unsafe { (interface.prepare)(&raw const *told.problem, &raw mut state) };
        interface.check("calorimeter_prepare", answer)?;
        Ok(Self {
            interface: interface.clone(),
            declared,
            memory,
            first: first.clone(),
            state,
            ran: false,
            _told: told,
        })
    }
}

impl Told {
    fn new(problem: &ForeignProblem, given: &[Given], memory: &mut [Memory]) -> Result<Self, ZooError> {
        let text = |name: &str| {
            CString::new(name).map_err(|_| ZooError::Shape(format!("the axis {name:?} has a zero byte in its name")))
        };
        let (mut names, mut values, mut axes, mut arguments) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (name, value) in problem.axes.iter() {
            let name = text(name)?;
            // What a text points to does not move with it.
            axes.push(CAxis { name: name.as_ptr(), value });
            names.push(name);
        }
        let mut memory = memory.iter_mut();
        for argument in given {
            let (kind, role, length, data) = match argument {
                Given::Buffer(Buffer { element, length, role, .. }) => {
                    let role = match role {
                        Role::In => 0,
                        Role::Out => 1,
                        Role::InOut => 2,
                    };
                    let data = memory.next().map_or(ptr::null_mut(), Memory::start);
                    (element.to_string(), role, *length, data)
                }
                Given::Value(bytes, kind) => {
                    let mut value = Memory::of(bytes);
                    let data = value.start();
                    values.push(value);
                    ((*kind).to_owned(), VALUE, 1, data)
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

impl Buffers for State {
    fn buffers(&self) -> &[Buffer] {
        &self.declared
    }

    fn fill(&mut self, index: usize, byte: u8) -> Result<(), ZooError> {
        self.memory[index].fill(byte);
        Ok(())
    }

    fn restore(&mut self, index: usize) -> Result<(), ZooError> {
        if let Some(content) = &self.first[index] {
            self.memory[index].write(content);
        }
        Ok(())
    }

    fn read(&mut self, index: usize) -> Result<Vec<u8>, ZooError> {
        Ok(self.memory[index].read())
    }

    fn call(&mut self) -> Result<(), ZooError> {
        self.ran = true;
        // SAFETY: `state` is what the library itself prepared, and `finish` was not called.
        let answer = unsafe { (self.interface.run)(self.state) };
        if answer == 0 { Ok(()) } else { self.interface.check("calorimeter_run", answer) }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: prepared once and finished once; the memory that the library was given is still there.
        unsafe { (self.interface.finish)(self.state) };
    }
}

/// A library on its buffer sets, which calls go through in turn.
struct Called {
    states: Vec<State>,
    next: usize,
}

/// Loads a library and has it prepare each buffer set.
pub fn open(path: &str, problem: &ForeignProblem, sets: u32) -> Result<Box<dyn Workload>, ZooError> {
    let interface = Arc::new(Interface::load(path)?);
    let first = Arc::new(problem.first_contents());
    let states = (0..sets).map(|_| State::prepare(&interface, problem, &first));
    Ok(Box::new(Called { states: states.collect::<Result<_, _>>()?, next: 0 }))
}

impl Workload for Called {
    fn launch(&mut self) -> Result<(), ZooError> {
        let state = self.next;
        self.next = (state + 1) % self.states.len();
        self.states[state].call()
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let state = self.next;
        self.next = (state + 1) % self.states.len();
        fresh(&mut self.states[state])
    }

    fn kept(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        match self.states.get_mut(set as usize) {
            Some(state) if state.ran => left(state),
            _ => Ok(None),
        }
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }

    fn weight_bytes(&self) -> u64 {
        0
    }

    fn kernel(&self) -> Option<String> {
        Some(self.states.first()?.interface.path.clone())
    }
}
