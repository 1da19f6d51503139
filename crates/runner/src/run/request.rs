//! What is asked for, as a journal keeps it.

use super::RunError;
use crate::dialects::Source;
use crate::entries::{Entry, Overrides, ResolvedEntry};
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
    /// The request that the journal of an earlier run holds.
    pub fn of_journal(dir: &Path) -> Result<Self, RunError> {
        let header = journal::read_header(dir)?;
        serde_json::from_value(header.config)
            .map_err(|error| RunError::NoConfig { dir: dir.to_owned(), cause: error.to_string() })
    }

    /// The request, from which a run is resumed, and what it was resolved to, for the reader.
    pub(super) fn with_plan(&self, plan: &Plan) -> serde_json::Value {
        let mut config = serde_json::to_value(self).unwrap_or_default();
        let resolved = plan.entries().iter().map(ResolvedEntry::describe).collect();
        config["resolved"] = serde_json::Value::Array(resolved);
        config
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
