//! The whole program, with recipes, shapes, operators, models, devices, implementations and sinks of somebody else's.

use crate::platforms::{self, Platform};
use crate::tell::tell;
use crate::{Exit, cli, dialects, worker};
use calorimeter_case::{DeviceKind, Implementation};
use calorimeter_recipes::Family;
use calorimeter_shapes::Generator;
use calorimeter_sinks::Sink;
use calorimeter_zoo::{
    Definition, ModelWays, Opener, Operation, OperatorWays, Subject, register_implementation, register_model,
    register_operator,
};
use std::process::ExitCode;

/// The program `calorimeter`, to which an outside crate adds what is its own: each addition has a name in YAML files, stands
/// in `list`, in the JSON Schema and in suggestions, and runs with gate, workers and tables like ours.
///
/// ```no_run
/// use calorimeter_runner::Calorimeter;
/// use calorimeter_sinks::{Run, Sink, SinkError};
///
/// struct Counting;
///
/// impl Sink for Counting {
///     fn name(&self) -> &'static str {
///         "counting"
///     }
///
///     fn write(&self, run: &Run) -> Result<Vec<std::path::PathBuf>, SinkError> {
///         eprintln!("{} cases", run.records.len());
///         Ok(Vec::new())
///     }
/// }
///
/// fn main() -> std::process::ExitCode {
///     Calorimeter::new().sink(&Counting).main()
/// }
/// ```
#[must_use = "nothing runs before `main`"]
#[derive(Default)]
pub struct Calorimeter {
    refused: Vec<String>,
}

impl Calorimeter {
    /// The program as it is.
    pub fn new() -> Self {
        dialects::name_ours();
        Self::default()
    }

    /// A family of recipes.
    pub fn recipe(self, family: &'static Family) -> Self {
        self.noting(calorimeter_recipes::Recipe::register(family))
    }

    /// A generator of shapes.
    pub fn shapes(self, generator: &'static Generator) -> Self {
        self.noting(calorimeter_shapes::register(generator))
    }

    /// A sink, which writes files of its own after each run.
    pub fn sink(self, sink: &'static dyn Sink) -> Self {
        self.noting(calorimeter_sinks::register(sink))
    }

    /// An operator, and the ways to run it: `|ways| ways.burn().cube()`.
    pub fn operator<O: Operation>(
        self,
        operator: O,
        ways: impl FnOnce(OperatorWays<'static, O>) -> OperatorWays<'static, O>,
    ) -> Self {
        self.noting(register_operator(operator).map(ways))
    }

    /// A model, to which every recipe applies, and the ways to run it.
    pub fn model<D: Definition>(
        self,
        model: D,
        ways: impl FnOnce(ModelWays<'static, D>) -> ModelWays<'static, D>,
    ) -> Self {
        self.noting(register_model(model).map(ways))
    }

    /// A platform, whose devices are found, listed, chosen and timed like ours; [`way`](Self::way)
    /// says what runs on them.
    pub fn platform(self, platform: &'static dyn Platform) -> Self {
        self.noting(platforms::register(platform))
    }

    /// An implementation, with a line about it. [`way`](Self::way) says what runs in it.
    pub fn implementation(self, name: &'static str, about: &'static str) -> Self {
        self.noting(Implementation::register(name, about))
    }

    /// What runs an operator or a model, whosever it is, in an implementation on a kind of device.
    pub fn way(self, subject: &str, implementation: &str, kind: DeviceKind, opener: impl Opener) -> Self {
        let implementation = match implementation.parse::<Implementation>() {
            Ok(implementation) => implementation,
            Err(error) => return self.noting::<(), _>(Err(error)),
        };
        match subject.parse::<Subject>() {
            Ok(subject) => self.noting(register_implementation(subject, implementation, kind, opener)),
            Err(error) => self.noting::<(), _>(Err(error)),
        }
    }

    fn noting<T, E: std::fmt::Display>(mut self, added: Result<T, E>) -> Self {
        self.refused.extend(added.err().map(|error| error.to_string()));
        self
    }

    /// Runs the program: as a worker if it was started as one, else what the command line says.
    pub fn main(self) -> ExitCode {
        if !self.refused.is_empty() {
            self.refused.iter().for_each(|why| tell!("error: {why}"));
            return Exit::Usage.into();
        }
        platforms::name_ours();
        worker::serve_if_worker();
        cli::main().into()
    }
}
