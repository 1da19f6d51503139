//! The whole program, with recipes, shapes, operators, models and sinks of somebody else's.

use crate::{Exit, cli, worker};
use calorimeter_recipes::Family;
use calorimeter_shapes::Generator;
use calorimeter_sinks::Sink;
use std::process::ExitCode;

/// The program `calorimeter`, to which an outside crate adds what is its own: each addition has a name in YAML files, stands
/// in `list`, in the JSON Schema and in suggestions, and runs with gate, workers and tables like ours.
///
/// ```no_run
/// use calorimeter_runner::Calorimeter;
/// use calorimeter_shapes::Generator;
/// # static TALL: Generator = unimplemented!();
/// fn main() -> std::process::ExitCode {
///     Calorimeter::new().shapes(&TALL).main()
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

    fn noting<T, E: std::fmt::Display>(mut self, added: Result<T, E>) -> Self {
        self.refused.extend(added.err().map(|error| error.to_string()));
        self
    }

    /// Runs the program: as a worker if it was started as one, else what the command line says.
    pub fn main(self) -> ExitCode {
        if !self.refused.is_empty() {
            self.refused.iter().for_each(|why| eprintln!("error: {why}"));
            return Exit::Usage.into();
        }
        worker::serve_if_worker();
        cli::main().into()
    }
}
