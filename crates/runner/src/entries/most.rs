//! How much may be asked for at once: what is counted before any of it is made.

/// Models of a file, or entries of a list of benchmarks.
pub const MOST_ENTRIES: usize = 10_000;
/// Cases of a plan, which takes up to half a kilobyte of memory for each.
pub const MOST_CASES: u64 = 1_000_000;
