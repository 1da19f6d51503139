//! The complete program, extensible by recipes, shapes, operators, models, devices, implementations and sinks of other
//! crates.

use crate::{Exit, cli, dialects, worker};
use calorimeter_case::{DeviceKind, Implementation};
use calorimeter_probe::platforms::{self, Platform};
use calorimeter_recipes::RecipeFamily;
use calorimeter_shapes::Generator;
use calorimeter_sinks::{Sink, log_line};
use calorimeter_zoo::{
    Definition, ModelBuilder, Operation, OperatorBuilder, Subject, WorkloadFactory, register_implementation,
    register_model, register_operator,
};
use std::process::ExitCode;

/// Builder of the program `calorimeter`, to which another crate adds its own parts. Each addition has a name in YAML
/// files, appears in `list`, in the JSON Schema and in suggestions, and uses the same gate, workers and tables as the
/// built-in parts.
///
/// ```no_run
/// use calorimeter_runner::Calorimeter;
/// use calorimeter_sinks::{Sink, SinkError, SinkInput};
///
/// struct Counting;
///
/// impl Sink for Counting {
///     fn name(&self) -> &'static str {
///         "counting"
///     }
///
///     fn write(&self, run: &SinkInput) -> Result<Vec<std::path::PathBuf>, SinkError> {
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
    errors: Vec<String>,
}

impl Calorimeter {
    /// Creates the program without additions.
    pub fn new() -> Self {
        dialects::name_ours();
        Self::default()
    }

    /// Adds a family of recipes.
    pub fn recipe(self, family: &'static RecipeFamily) -> Self {
        self.record_error(calorimeter_recipes::Recipe::register(family))
    }

    /// Adds a shape generator.
    pub fn shapes(self, generator: &'static Generator) -> Self {
        self.record_error(calorimeter_shapes::register(generator))
    }

    /// Adds a sink, which writes its own files after each run.
    pub fn sink(self, sink: &'static dyn Sink) -> Self {
        self.record_error(calorimeter_sinks::register(sink))
    }

    /// Adds an operator and its implementations, e.g. `|ways| ways.burn().cube()`.
    pub fn operator<O: Operation>(
        self,
        operator: O,
        ways: impl FnOnce(OperatorBuilder<'static, O>) -> OperatorBuilder<'static, O>,
    ) -> Self {
        self.record_error(register_operator(operator).map(ways))
    }

    /// Adds a model and its implementations; every recipe applies to it.
    pub fn model<D: Definition>(
        self,
        model: D,
        ways: impl FnOnce(ModelBuilder<'static, D>) -> ModelBuilder<'static, D>,
    ) -> Self {
        self.record_error(register_model(model).map(ways))
    }

    /// Adds a platform. Its devices are discovered, listed, selected and timed like built-in ones; [`workload`](Self::workload)
    /// adds implementations for them.
    pub fn platform(self, platform: &'static dyn Platform) -> Self {
        self.record_error(platforms::register(platform))
    }

    /// Adds an implementation with a one-line description; [`workload`](Self::workload) adds its workloads.
    pub fn implementation(self, name: &'static str, about: &'static str) -> Self {
        self.record_error(Implementation::register(name, about))
    }

    /// Adds the code that runs an operator or model in an implementation on a device kind.
    pub fn workload(self, subject: &str, implementation: &str, kind: DeviceKind, opener: impl WorkloadFactory) -> Self {
        let implementation = match implementation.parse::<Implementation>() {
            Ok(implementation) => implementation,
            Err(error) => return self.record_error::<(), _>(Err(error)),
        };
        match subject.parse::<Subject>() {
            Ok(subject) => self.record_error(register_implementation(subject, implementation, kind, opener)),
            Err(error) => self.record_error::<(), _>(Err(error)),
        }
    }

    fn record_error<T, E: std::fmt::Display>(mut self, added: Result<T, E>) -> Self {
        self.errors.extend(added.err().map(|error| error.to_string()));
        self
    }

    /// Runs the program: as a worker if it was started as one, otherwise the command line.
    pub fn main(self) -> ExitCode {
        if !self.errors.is_empty() {
            self.errors.iter().for_each(|why| log_line!("error: {why}"));
            return Exit::Usage.into();
        }
        platforms::register_kinds();
        worker::serve_if_worker();
        cli::main().into()
    }
}
