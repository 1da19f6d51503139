//! Calibration: what a device reaches, as a plan like any other and a profile made from its records alone.

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
