//! Preparation of a run: from the request to a plan.

use super::{PreparedRun, Request, RunError};
use crate::dialects::{self, Document};
use crate::entries::{MAX_LAUNCHES, resolve};
use crate::expression;
use crate::plan::Plan;
use calorimeter_probe::devices::{self, Devices};

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
