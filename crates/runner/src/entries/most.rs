//! How much may be asked for at once: what is counted before any of it is made.

/// Models of a file, or entries of a list of benchmarks.
pub const MOST_ENTRIES: usize = 10_000;
/// Cases of a plan, which takes up to half a kilobyte of memory for each.
pub const MOST_CASES: u64 = 1_000_000;
/// Windows of a case, each kept in its record.
pub const MOST_WINDOWS: u32 = 100_000;
/// Processes that measure a case.
pub const MOST_LAUNCHES: u32 = 100;
