//! Calibration: a plan of operations that measures the peaks of a device, and a profile computed from its records.

mod compute_precision;
mod fusion;
mod fusion_verdict;
mod journal;
mod levels;
mod machines;
mod machines_text;
mod operation_profiles;
mod operations;
mod part;
mod patterns;
mod peaks;
mod plan;
mod precisions;
mod profile;
mod purpose;
mod registry;
mod show;

pub use fusion::fusion_profiles;
pub use journal::read_journal;
pub use machines::compare_machines;
pub use machines_text::machines_table;
pub use operations::{Operations, all_operations};
pub use patterns::Patterns;
pub use peaks::StatedPeaks;
pub use plan::{CalibrationOptions, CalibrationTarget, entries};
pub use profile::{CalibrationProfile, ProfileLabels};
pub use registry::{add, is_profile, latest};
pub use show::show;
