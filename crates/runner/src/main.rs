//! The binary `calorimeter`.

use calorimeter_runner::Calorimeter;
use calorimeter_timing::memory::CountingAllocator;
use std::alloc::System;
use std::process::ExitCode;

/// Counts what a case allocates on the host while that is asked for, and costs a look at a flag otherwise.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator(System);

fn main() -> ExitCode {
    Calorimeter::new().main()
}
