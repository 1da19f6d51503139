//! CPU platform.

use super::device_defaults::DeviceDefaults;
use super::memory;
use super::{DeviceMemory, Platform, Probing, Sensing, StopwatchChoice};
use crate::devices::{DeviceFacts, DiscoveredDevice};
use crate::host::{available_memory, cpu_name};
use calorimeter_case::{Device, Dtype, Implementation};
use calorimeter_kernels::probes::{HostProbes, Probes};
use calorimeter_timing::memory::Timeline;
use calorimeter_timing::telemetry::{CounterValues, Counters, Source, last_level_cache, processor};
use calorimeter_timing::{Failure, WallClock, Work};
use calorimeter_zoo::{DeviceKind, NativeDevices, Setup};
use std::time::Duration;

/// The processor of this machine.
#[derive(Debug)]
pub(super) struct Cpu;

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
            ..DiscoveredDevice::with_name(Device::Cpu, cpu_name())
        }]
    }

    // ANCHOR: stopwatch
    fn stopwatch(&self, _: Setup, _: &mut NativeDevices, _: &mut dyn Work) -> Result<StopwatchChoice, Failure> {
        Ok((Box::new(WallClock::synchronous()), None))
    }

    fn clock(&self) -> String {
        "wall".into()
    }
    // ANCHOR_END: stopwatch

    fn is_synchronous(&self) -> bool {
        true
    }

    fn defaults(&self, _: bool) -> DeviceDefaults {
        DeviceDefaults {
            quick_array_bytes: 256 << 20,
            quick_case_time: Duration::from_millis(500),
            peak_matmul_sizes: &[256, 512, 1024, 2048],
            // The next size takes eight times as long, which is too slow.
            max_matmul_time: Duration::from_millis(1500),
            max_matmul_size: 2048,
            noise_matmul_sizes: &[128, 256],
            noise_add_lengths: &[1 << 10, 1 << 16, 1 << 20],
            matmul_sizes: &[256, 512, 1024, 2048],
            quick_matmul_sizes: &[256, 1024],
            // All computations are in f32 regardless of the requested dtype.
            dtypes: &[Dtype::F32],
            quick_dtypes: &[Dtype::F32],
            fusion_implementations: &[Implementation::Eager, Implementation::Fused],
            ..DeviceDefaults::default()
        }
    }

    fn shares_memory(&self, _: bool) -> bool {
        true
    }

    fn sensing(&self) -> Option<&dyn Sensing> {
        Some(self)
    }

    fn probing(&self) -> Option<&dyn Probing> {
        Some(self)
    }

    fn memory(&self) -> Option<&dyn DeviceMemory> {
        Some(self)
    }
}

impl Sensing for Cpu {
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
        work.synchronize().ok()?;
        counters.read().ok()
    }
}

impl Probing for Cpu {
    fn probes(&self, _: Device, _: &mut NativeDevices) -> Result<Box<dyn Probes>, Failure> {
        Ok(Box::new(HostProbes))
    }

    fn matmul_implementations(&self) -> Vec<Implementation> {
        // The faster one depends on the processor; only burn supports f16.
        vec![Implementation::Native, Implementation::Eager]
    }

    fn cache_exceeding_buffers(&self, cache_bytes: u64, _: u64) -> (u64, u32) {
        // A copy needs twice the buffer, and other processes need memory, too.
        let most = available_memory().unwrap_or(4 << 30) / 8;
        ((4 * cache_bytes).clamp(256 << 20, most.clamp(256 << 20, 2 << 30)), 1)
    }
}

impl DeviceMemory for Cpu {
    fn free_bytes(&self, _: Device, _: &mut NativeDevices) -> Option<u64> {
        available_memory()
    }

    fn record(&self, _: Setup, _: Duration, run: &mut memory::TrackedPasses<'_>) -> Result<Timeline, Failure> {
        memory::record_allocator(run)
    }
}
