//! Calibration: a plan of operations that measures the peaks of a device, and a profile computed from its records.

mod figures;
mod fusion;
mod levels;
mod measured;
mod numbers;
mod operations;
mod parts;
mod patterns;
mod peaks;
mod plan;
mod precisions;
mod profile;
mod purpose;
mod registry;
mod show;
mod verdict;

pub use figures::OperationProfile;
pub use fusion::fusions;
pub use measured::measured;
pub use operations::{Operations, every_operation};
pub use patterns::Patterns;
pub use peaks::Stated;
pub use plan::{Machine, Wish, entries};
pub use profile::{Labels, Profile};
pub use registry::{is_profile, keep, latest};
pub use show::show;
