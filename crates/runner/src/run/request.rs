//! What is asked for, as a journal keeps it.

use super::{Prepared, RunError};
use crate::devices::{self, Devices};
use crate::dialects::{self, Document, Source};
use crate::entries::{Entry, Overrides, resolve};
use crate::expression;
use crate::fingerprint::fnv1a;
use crate::plan::Plan;
use calorimeter_case::CaseId;
use calorimeter_sinks::journal;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Everything that decides what a run does; kept in the journal, so that a run can be resumed without its files.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Request {
    /// The configuration files.
    pub sources: Vec<Source>,
    /// What is asked for without a file, after those of the files. Journals from before it was there are still resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Entry>,
    /// What the command line set over all of it.
    pub overrides: Overrides,
}

impl Request {
    /// Resolves and plans for this machine; no device is opened.
    pub fn prepare(self) -> Result<Prepared, RunError> {
        self.prepare_for(devices::here())
    }

    /// Resolves and plans for the devices of a machine, without looking at this one.
    pub fn prepare_for(self, devices: &Devices) -> Result<Prepared, RunError> {
        let Document { mut entries, output_dir, notes } = dialects::read(&self.sources, devices)?;
        entries.extend(self.entries.iter().cloned());
        let entries = resolve(entries, &self.overrides, devices)?;
        let filter = match &self.overrides.filter {
            Some(pattern) => Some(expression::parse(pattern).map_err(RunError::Filter)?),
            None => None,
        };
        let cases = entries.iter().map(|e| e.tasks.len() * e.variants.len() * e.implementations.len()).sum();
        let plan = Plan::new(entries, filter.as_ref());
        if let Some(pattern) = self.overrides.filter.clone().filter(|_| plan.is_empty()) {
            return Err(RunError::NothingMatches { pattern, cases });
        }
        Ok(Prepared { request: self, plan, output_dir, notes })
    }

    /// The request that the journal of an earlier run holds.
    pub fn of_journal(dir: &Path) -> Result<Self, RunError> {
        let header = journal::read(dir)?.header;
        serde_json::from_value(header.config)
            .map_err(|error| RunError::NoConfig { dir: dir.to_owned(), cause: error.to_string() })
    }

    /// Tells runs of different content apart: a journal is resumed only by its own request.
    pub(super) fn fingerprint(&self, plan: &Plan) -> String {
        // Where a file lies does not matter, what it says does; the cases also say what `auto` and a CSV of shapes meant.
        let texts: Vec<&str> = self.sources.iter().map(|source| source.text.as_str()).collect();
        let cases: Vec<&CaseId> = plan.ids().collect();
        let content = match self.entries.as_slice() {
            [] => serde_json::to_vec(&(texts, &self.overrides, cases)),
            entries => serde_json::to_vec(&(texts, entries, &self.overrides, cases)),
        };
        let content = content.unwrap_or_default();
        format!("{:016x}", fnv1a(&content))
    }
}
