//! What inspections find, and the one place where it becomes a part of a record.

use calorimeter_case::record::{Footprint, FusionState, LaunchTimes, Profile};
use calorimeter_case::{CaseId, Record};

/// What an inspection says of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Which.
    pub case: CaseId,
    /// What was found, if anything was.
    pub facet: Option<Facet>,
    /// What a reader should know.
    pub warnings: Vec<String>,
}

/// What one inspection adds to records; no other adds the same.
#[derive(Debug, Clone, PartialEq)]
pub enum Facet {
    /// Times of single launches.
    Launches(Vec<u64>),
    /// Their percentiles.
    Percentiles(LaunchTimes),
    /// What a trace shows.
    Trace(Profile),
    /// What went to and from memory.
    #[cfg(feature = "cuda")]
    Traffic(calorimeter_case::record::Traffic),
    /// Whether it was fused.
    Fusion(FusionState),
    /// The memory that it takes.
    Footprint(Footprint),
}

impl Finding {
    /// Writes it into the record of its case.
    pub fn enter(self, record: &mut Record) {
        record.outcome.warnings.extend(self.warnings);
        match self.facet {
            None => {}
            Some(Facet::Launches(nanos)) => record.time.iterations_ns = nanos,
            Some(Facet::Percentiles(times)) => record.time.launch_ns = Some(Box::new(times)),
            Some(Facet::Trace(profile)) => record.profile = profile,
            #[cfg(feature = "cuda")]
            Some(Facet::Traffic(traffic)) => record.traffic = Some(traffic),
            Some(Facet::Fusion(state)) => record.execution.fusion_state = Some(state),
            Some(Facet::Footprint(footprint)) => record.footprint = footprint,
        }
    }
}
