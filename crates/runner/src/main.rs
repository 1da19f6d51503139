//! Binary `calorimeter`.

use calorimeter_runner::Calorimeter;
use calorimeter_timing::memory::CountingAllocator;
use std::alloc::System;
use std::process::ExitCode;

/// Counts host allocations of a case while recording is enabled; otherwise it costs one flag check per allocation.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator(System);

fn main() -> ExitCode {
    Calorimeter::new().main()
}
