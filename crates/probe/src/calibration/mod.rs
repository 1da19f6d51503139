//! Calibration: operations that measure the peaks of a device, and the profile computed from their records.

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
mod precisions;
mod profile;
mod purpose;
mod registry;
mod show;

pub use fusion::fusion_profiles;
pub use journal::read_journal;
pub use machines::compare_machines;
pub use machines_text::machines_table;
pub use operations::{CalibrationOperation, Operations, all_operations};
pub use part::CalibrationPart;
pub use patterns::{PATTERNS, Pattern, Patterns};
pub use peaks::StatedPeaks;
pub use profile::{CalibrationProfile, ProfileLabels};
pub use registry::{add, is_profile, latest};
pub use show::show;
