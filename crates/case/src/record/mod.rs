//! Records: the result of a case, as the case and one facet per topic.
//!
//! Three rules apply to every field. Absent means *not measured*: an `Option` that is `None` is omitted from the JSON
//! and never replaced by zero. JSON has no infinities and no NaN, so a float that is not finite is omitted as well (see
//! [`finite`]). An exact result has an infinite SQNR: `sqnr_db` is absent and `rel_l2` is 0. Unknown fields are ignored
//! when reading, so that old readers accept the output of newer writers.

mod accuracy;
mod column;
mod execution;
mod footprint;
mod number;
mod outcome;
mod preparation;
mod profile;
mod rates;
mod series;
mod speedup;
mod telemetry;
mod time;
mod traffic;
mod warnings;
mod weights;

pub use accuracy::Accuracy;
pub use column::{Cell, CellKind, CellReader, Column, Field};
pub(crate) use column::{columns, fields};
pub use execution::{Execution, FusionState, Rotation};
pub use footprint::{Footprint, PeakBound, PeakMemory};
pub use number::finite;
pub use outcome::{Outcome, Status};
pub use preparation::{Preparation, Tuning};
pub use profile::{KernelShare, Profile};
pub use rates::{PeakKind, Rates, Roofline, RooflineBound};
pub use series::RecordSeries;
pub use speedup::{Speedup, SuiteSpeedup};
pub use telemetry::{Telemetry, TelemetrySample};
pub use time::{Estimate, LaunchTimes, Scatter, Time, WindowRecord};
pub use traffic::Traffic;
pub use warnings::{Warning, WarningCode, Warnings};
pub use weights::Weights;

use crate::Case;
use serde::{Deserialize, Serialize};

/// Result of a case: a measurement, or the reason why there is none. The JSON is one flat object with the fields of the
/// case and of all facets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Case.
    #[serde(flatten)]
    pub case: Case,
    /// Status and reason.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Warnings for readers of the record.
    #[serde(flatten)]
    pub warnings: Warnings,
    /// Kernels and stopwatch.
    #[serde(flatten)]
    pub execution: Execution,
    /// Times.
    #[serde(flatten)]
    pub time: Time,
    /// Comparison with the baseline.
    #[serde(default, skip_serializing_if = "Speedup::is_absent")]
    pub speedup: Option<Speedup>,
    /// Throughput and its share of the measured peaks.
    #[serde(flatten)]
    pub rates: Rates,
    /// Error of the output relative to the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Box<Accuracy>>,
    /// Weight storage.
    #[serde(flatten)]
    pub weights: Weights,
    /// Memory use.
    #[serde(flatten)]
    pub footprint: Footprint,
    /// Memory traffic, if the device has readable hardware counters and it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// Sensor readings of the device during the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Box<Telemetry>>,
    /// Kernels of the trace.
    #[serde(flatten)]
    pub profile: Profile,
    /// Priming and stopwatch resolution.
    #[serde(flatten)]
    pub preparation: Preparation,
}

impl Record {
    /// Creates a record of `case` without measurements.
    pub fn new(case: Case, status: Status) -> Self {
        Self {
            case,
            outcome: status.into(),
            warnings: Warnings::default(),
            execution: Execution::default(),
            time: Time::default(),
            speedup: None,
            rates: Rates::default(),
            accuracy: None,
            weights: Weights::default(),
            footprint: Footprint::default(),
            traffic: None,
            telemetry: None,
            profile: Profile::default(),
            preparation: Preparation::default(),
        }
    }

    /// Creates a record of a case that was not measured, with the reason.
    pub fn without_time(case: Case, status: Status, reason: impl Into<String>) -> Self {
        let mut record = Self::new(case, status);
        record.outcome.reason = Some(reason.into());
        record
    }

    /// True if the record has valid measurements.
    pub fn is_ok(&self) -> bool {
        self.outcome.status == Status::Ok
    }
}
