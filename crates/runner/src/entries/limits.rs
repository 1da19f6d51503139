//! Limits on plans, checked before anything is expanded.

/// Maximum models of a file, or entries of a list of benchmarks.
pub(crate) const MAX_ENTRIES: usize = 10_000;
/// Maximum cases of a plan; each takes up to half a KiB of memory.
pub(crate) const MAX_CASES: u64 = 1_000_000;
/// Maximum windows of a case; each is stored in its record.
pub(crate) const MAX_WINDOWS: u32 = 100_000;
/// Maximum processes that measure a case.
pub(crate) const MAX_LAUNCHES: u32 = 100;
