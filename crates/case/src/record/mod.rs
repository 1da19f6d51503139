//! What became of a case: the case, and a facet for each kind of thing that is known of it afterwards.
//!
//! Three rules hold for every field. Absent means *not measured*: an `Option` that is `None` is left out of the JSON, and
//! zero is never put in its place. JSON has no infinities and no NaN, so a float that is not finite is left out as well
//! (see [`finite`]); the SQNR of an exact result is infinite, which reads as no `sqnr_db` beside a `rel_l2` of 0.
//! Unknown fields are ignored on reading, so that a newer writer does not lock an older reader out.

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
mod weights;

pub use accuracy::Accuracy;
pub use column::{Cell, Column, Field, Kind, Read};
pub use execution::{Execution, FusionState, Rotation};
pub use footprint::{Bound, Footprint, Memory};
pub use number::finite;
pub use outcome::{Outcome, Status};
pub use preparation::{Preparation, Tuning};
pub use profile::{KernelShare, Profile};
pub use rates::{Against, Rates, Roof, Roofline};
pub use series::Series;
pub use speedup::{Speedup, SuiteSpeedup};
pub use telemetry::{Telemetry, TelemetrySample};
pub use time::{Estimate, LaunchTimes, Scatter, Time, Window};
pub use traffic::Traffic;
pub use weights::Weights;

use crate::Case;
use serde::{Deserialize, Serialize};

/// What became of a case: measured, or the reason why not. In JSON the fields of the case and of the facets stand side by
/// side in one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The case.
    #[serde(flatten)]
    pub case: Case,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What ran.
    #[serde(flatten)]
    pub execution: Execution,
    /// How long it took.
    #[serde(flatten)]
    pub time: Time,
    /// The comparison with the baseline.
    #[serde(default, skip_serializing_if = "Speedup::is_absent")]
    pub speedup: Option<Speedup>,
    /// Rates and their share of the machine's peaks.
    #[serde(flatten)]
    pub rates: Rates,
    /// How far the output is from the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Box<Accuracy>>,
    /// Its weights.
    #[serde(flatten)]
    pub weights: Weights,
    /// The memory it took.
    #[serde(flatten)]
    pub footprint: Footprint,
    /// What went to and from the device's memory, where its counters can be read and were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// What the device reported while the case was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Box<Telemetry>>,
    /// What a trace shows.
    #[serde(flatten)]
    pub profile: Profile,
    /// What came before the first window.
    #[serde(flatten)]
    pub preparation: Preparation,
}

impl Record {
    /// A record of `case` with nothing measured yet.
    pub fn new(case: Case, status: Status) -> Self {
        Self {
            case,
            outcome: status.into(),
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

    /// A record of a case that was not measured, and why.
    pub fn without_time(case: Case, status: Status, reason: impl Into<String>) -> Self {
        let mut record = Self::new(case, status);
        record.outcome.reason = Some(reason.into());
        record
    }

    /// Whether it has figures that may be used.
    pub fn is_ok(&self) -> bool {
        self.outcome.status == Status::Ok
    }

    /// Adds what a reader of the figures should know.
    pub fn warn(&mut self, warning: impl Into<String>) {
        self.outcome.warnings.push(warning.into());
    }
}
