//! CPU platform.

use super::memory;
use super::platform::{Choice, Platform};
use super::trials::Trials;
use crate::devices::DiscoveredDevice;
use crate::host::{available_memory, cpu_name};
use crate::worker::DeviceFacts;
use calorimeter_case::{Device, Dtype, Implementation};
use calorimeter_kernels::probes::{HostProbes, Probes};
use calorimeter_timing::memory::Timeline;
use calorimeter_timing::telemetry::{CounterValues, Counters, Source, last_level_cache, processor};
use calorimeter_timing::{Failure, WallClock, Work};
use calorimeter_zoo::{DeviceKind, Machines, Setup};
use std::time::Duration;

/// The processor of this machine.
#[derive(Debug)]
pub struct Cpu;

impl Platform for Cpu {
    fn kinds(&self) -> &'static [DeviceKind] {
        &[DeviceKind::Cpu]
    }

    fn find(&self) -> Vec<DiscoveredDevice> {
        // May be fewer than the available threads, if RAYON_NUM_THREADS is set.
        let threads = rayon::current_num_threads();
        vec![DiscoveredDevice {
            driver: format!("{threads} threads"),
            cache: last_level_cache(),
            ..DiscoveredDevice::named(Device::Cpu, cpu_name())
        }]
    }

    // ANCHOR: stopwatch
    fn stopwatch(&self, _: Setup, _: &mut Machines, _: &mut dyn Work) -> Result<Choice, Failure> {
        Ok((Box::new(WallClock::synchronous()), None))
    }

    fn clock(&self) -> String {
        "wall".into()
    }
    // ANCHOR_END: stopwatch

    fn is_synchronous(&self) -> bool {
        true
    }

    fn sensors(&self, _: Device, _: &DeviceFacts) -> Result<Box<dyn Source>, String> {
        Ok(processor())
    }

    fn counters(&self, work: &mut dyn Work, launches: u32) -> Option<CounterValues> {
        // If counters are unavailable, the journal's header has the reason among the facts of the processor.
        let mut counters = Counters::open().ok()?;
        counters.start().ok()?;
        for _ in 0..launches {
            work.launch().ok()?;
        }
        work.settle().ok()?;
        counters.read().ok()
    }

    fn probes(&self, _: Device, _: &mut Machines) -> Result<Box<dyn Probes>, Failure> {
        Ok(Box::new(HostProbes))
    }

    fn multiplied_by(&self) -> Vec<Implementation> {
        // The faster one depends on the processor; only burn supports f16.
        vec![Implementation::Native, Implementation::Eager]
    }

    fn trials(&self, _: bool) -> Trials {
        Trials {
            quick_array: 256 << 20,
            quick_time: Duration::from_millis(500),
            peak_products: &[256, 512, 1024, 2048],
            // The next size takes eight times as long, which is too slow.
            patience: Duration::from_millis(1500),
            largest_product: 2048,
            noise_products: &[128, 256],
            noise_sums: &[1 << 10, 1 << 16, 1 << 20],
            products: &[256, 512, 1024, 2048],
            quick_products: &[256, 1024],
            // All computations are in f32 regardless of the requested dtype.
            dtypes: &[Dtype::F32],
            quick_dtypes: &[Dtype::F32],
            fusion: &[Implementation::Eager, Implementation::Fused],
            ..Trials::default()
        }
    }

    fn beyond_the_cache(&self, cache_bytes: u64) -> (u64, u32) {
        // A copy needs twice the buffer, and other processes need memory, too.
        let most = available_memory().unwrap_or(4 << 30) / 8;
        ((4 * cache_bytes).clamp(256 << 20, most.clamp(256 << 20, 2 << 30)), 1)
    }

    fn shares_memory(&self, _: bool) -> bool {
        true
    }

    fn free_memory(&self, _: Device, _: &mut Machines) -> Option<u64> {
        available_memory()
    }

    fn follow(&self, _: Setup, _: Duration, run: &mut memory::Passes<'_>) -> Result<Timeline, Failure> {
        memory::from_the_allocator(run)
    }
}
