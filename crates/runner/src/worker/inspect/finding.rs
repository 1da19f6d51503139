//! Results of inspections, and their conversion to parts of a record.

use calorimeter_case::record::{Footprint, FusionState, LaunchTimes, Profile};
use calorimeter_case::{CaseId, Record, Warning};

/// Result of an inspection for one case.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct InspectionFinding {
    /// Id of the case.
    pub case: CaseId,
    /// Facet, if one was found.
    pub facet: Option<Facet>,
    /// Warnings for the reader of the record.
    pub warnings: Vec<Warning>,
}

/// Facet that one inspection adds to a record; each inspection has its own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Facet {
    /// Nanoseconds of single launches.
    Launches(Vec<u64>),
    /// Percentiles of single launches.
    Percentiles(LaunchTimes),
    /// Trace with its kernel table.
    Trace(Profile),
    /// Bytes read from and written to memory.
    #[cfg(feature = "native")]
    Traffic(calorimeter_case::record::Traffic),
    /// Fused or not.
    Fusion(FusionState),
    /// Memory usage.
    Footprint(Footprint),
}

impl InspectionFinding {
    /// Writes the finding into the record of its case.
    pub(crate) fn apply(self, record: &mut Record) {
        record.warnings.extend(self.warnings);
        match self.facet {
            None => {}
            Some(Facet::Launches(nanos)) => record.time.iterations_ns = nanos,
            Some(Facet::Percentiles(times)) => record.time.launch_ns = Some(Box::new(times)),
            Some(Facet::Trace(profile)) => record.profile = profile,
            #[cfg(feature = "native")]
            Some(Facet::Traffic(traffic)) => record.traffic = Some(traffic),
            Some(Facet::Fusion(state)) => record.execution.fusion_state = Some(state),
            Some(Facet::Footprint(footprint)) => record.footprint = footprint,
        }
    }
}
