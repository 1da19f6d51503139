//! Preparation of a run: from the request to a plan.

use super::{PreparedRun, Request, RunError};
use crate::dialects::{self, Document};
use crate::entries::{MAX_LAUNCHES, Overrides, resolve};
use crate::expression;
use crate::plan::Plan;
use calorimeter_case::Implementation;
use calorimeter_external::ExternalProgram;
use calorimeter_probe::devices::{self, Devices};

impl Overrides {
    /// Registers the implementations of Python sources, and checks the names of implementations.
    fn register_python(&self) -> Result<(), RunError> {
        for source in &self.python {
            calorimeter_external::register(ExternalProgram::python(source))
                .map_err(|error| RunError::Python { source_name: source.clone(), error })?;
        }
        for implementation in self.implementations.iter().flatten() {
            let name = implementation.name();
            name.as_str().parse::<Implementation>().map_err(RunError::UnknownImplementation)?;
        }
        Ok(())
    }
}

impl Request {
    /// Resolves and plans for this machine; no device is opened.
    pub fn prepare(self) -> Result<PreparedRun, RunError> {
        self.prepare_for(devices::this_machine())
    }

    /// Resolves and plans for the given devices, without access to this machine's devices.
    pub fn prepare_for(self, devices: &Devices) -> Result<PreparedRun, RunError> {
        // The command line enforces this limit itself; a journal or an embedding program may exceed it.
        if let Some(launches) = self.overrides.launches.filter(|launches| *launches > MAX_LAUNCHES) {
            return Err(RunError::TooManyLaunches(launches));
        }
        // Before any name of an implementation is parsed.
        self.overrides.register_python()?;
        let Document { mut entries, output_dir, notes } = dialects::read(&self.sources, devices)?;
        entries.extend(self.entries.iter().cloned());
        let entries = resolve(entries, &self.overrides, devices)?;
        let filter = match &self.overrides.filter {
            Some(pattern) => Some(expression::parse(pattern).map_err(RunError::InvalidFilter)?),
            None => None,
        };
        let cases = entries.iter().map(|e| e.tasks.len() * e.variants.len() * e.implementations.len()).sum();
        let mut plan = Plan::new(entries, filter.as_ref());
        if let Some(pattern) = self.overrides.filter.clone().filter(|_| plan.is_empty()) {
            return Err(RunError::NoMatch { pattern, cases });
        }
        if let Some(shard) = self.overrides.shard {
            plan.keep_shard(shard);
        }
        Ok(PreparedRun { request: self, plan, output_dir, notes })
    }
}
