//! Request of a run, as stored in its journal.

use super::RunError;
use crate::dialects::ConfigSource;
use crate::entries::{Entry, Overrides, ResolvedEntry};
use crate::fingerprint::fnv1a;
use crate::plan::Plan;
use calorimeter_case::CaseId;
use calorimeter_sinks::journal;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Complete input of a run; stored in the journal, so that a run can be resumed without its files.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Request {
    /// Configuration files.
    pub sources: Vec<ConfigSource>,
    /// Entries without a file; they follow those of the files. Optional, because old journals do not have the field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Entry>,
    /// Settings of the command line, which override the entries.
    pub overrides: Overrides,
}

impl Request {
    /// Reads the request from a journal.
    pub fn from_journal(dir: &Path) -> Result<Self, RunError> {
        let header = journal::read_header(dir)?;
        serde_json::from_value(header.config)
            .map_err(|error| RunError::MissingConfig { dir: dir.to_owned(), cause: error.to_string() })
    }

    /// Request for resuming, together with the resolved entries for the reader.
    pub(super) fn with_plan(&self, plan: &Plan) -> serde_json::Value {
        let mut config = serde_json::to_value(self).unwrap_or_default();
        let resolved = plan.entries().iter().map(ResolvedEntry::describe).collect();
        config["resolved"] = serde_json::Value::Array(resolved);
        config
    }

    /// Fingerprint of the content. A journal can be resumed only with an equal fingerprint.
    pub(super) fn fingerprint(&self, plan: &Plan) -> String {
        // Paths of files are excluded, their text is included. Case ids cover the resolution of `auto` and of CSV files
        // with shapes.
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
