//! CUDA platform.

mod probe_matmul;

use super::device_defaults::DeviceDefaults;
use super::memory::{self, TrackedPasses, record_pool};
use super::other_users;
use super::{Advice, DeviceMemory, GraphCapture, Platform, Probing, Sensing, StopwatchChoice};
use crate::devices::{DeviceFacts, DiscoveredDevice};
use crate::peaks::MatmulPrecision;
use calorimeter_case::{Device, Implementation, Warning};
use calorimeter_kernels::native::{self, CudaDevice, LibraryStatus};
use calorimeter_kernels::probes::{NativeProbes, Probes};
use calorimeter_shapes::Shape;
use calorimeter_timing::cuda::{ActivityKinds, CudaEvents, Cupti, GraphClock, KernelClock};
use calorimeter_timing::memory::{Timeline, TimelineMark};
use calorimeter_timing::telemetry::{ClockLock, Source, nvml, nvml_lock};
use calorimeter_timing::{Failure, Stopwatch, WallClock, Work, nvtx};
use calorimeter_zoo::{DeviceKind, NativeDevices, Setup, ZooError};
use probe_matmul::ProbeMatmul;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// NVIDIA GPUs.
#[derive(Debug)]
pub(super) struct Cuda;

/// CUPTI activity kinds for memory recordings.
const MEMORY_RECORDS: ActivityKinds = ActivityKinds { kernels: false, copies: false, memory: true, calls: false };

impl Platform for Cuda {
    fn kinds(&self) -> &'static [DeviceKind] {
        &[DeviceKind::Cuda]
    }

    fn find(&self) -> Vec<DiscoveredDevice> {
        let gpus = native::list_gpus().unwrap_or_default();
        gpus.into_iter()
            .map(|gpu| DiscoveredDevice {
                device: Device::Cuda(gpu.ordinal as u16),
                driver: format!("CUDA {}, compute capability {}", gpu.driver_version, gpu.compute_capability),
                identity: format!("{} {}", gpu.name, gpu.uuid),
                name: gpu.name,
                software: false,
                stated_gbps: gpu.memory_bytes_per_second.map(|rate| rate as f64 / 1e9),
                cache: Some(gpu.l2_bytes),
                intel: false,
            })
            .collect()
    }

    fn advice(&self, found: bool) -> Option<Advice> {
        if !found {
            let reason = match native::list_gpus() {
                Ok(_) => "the driver is installed but finds no GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES".into(),
                Err(error) => error.to_string(),
            };
            return Some(format!("No CUDA device: {reason}.").into());
        }
        let row = |library: LibraryStatus| {
            let need = if library.required { "" } else { " (optional)" };
            let state = match library.problem {
                Some(problem) => format!("missing{need}: {}. {problem}", library.purpose),
                None => format!("loaded: {}", library.purpose),
            };
            (library.name.to_owned(), state)
        };
        let mut rows: Vec<_> = native::libraries().into_iter().map(row).collect();
        rows.push(("NVTX".into(), nvtx::state().to_string()));
        Some(Advice { heading: "CUDA libraries on the loader's path:".into(), rows })
    }

    fn stopwatch(
        &self,
        setup: Setup,
        machines: &mut NativeDevices,
        _: &mut dyn Work,
    ) -> Result<StopwatchChoice, Failure> {
        let warning = |why, times| Warning::fallback_clock(format!("no kernel records ({why})"), times);
        Ok(match Cupti::load() {
            Ok(cupti) => (Box::new(KernelClock::new(cupti)), None),
            Err(why) if setup.implementation == Implementation::Native => {
                let stream = native_device(setup.device, machines)?.stream().clone();
                (Box::new(CudaEvents::new(stream)), Some(warning(why, "from CUDA events")))
            }
            Err(why) => (Box::new(WallClock::slope()), Some(warning(why, "wall-clock slopes"))),
        })
    }

    fn clock(&self) -> String {
        match Cupti::load() {
            Ok(_) => "cupti".into(),
            Err(why) => format!("slope for burn, cuda-events for native: {why}"),
        }
    }

    fn clock_lock(&self, _: Device, facts: &DeviceFacts) -> Result<Box<dyn ClockLock>, String> {
        nvml_lock(uuid(facts))
    }

    fn defaults(&self, _: bool) -> DeviceDefaults {
        // The largest size fills the device; smaller ones finish before the power cap.
        DeviceDefaults { peak_matmul_sizes: &[2048, 4096, 8192], ..DeviceDefaults::default() }
    }

    fn graphs(&self) -> Option<&dyn GraphCapture> {
        Some(self)
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

impl GraphCapture for Cuda {
    fn can_capture(&self, implementation: Implementation) -> bool {
        implementation == Implementation::Native
    }

    fn stopwatch(&self, setup: Setup, machines: &mut NativeDevices) -> Result<StopwatchChoice, Failure> {
        let stream = native_device(setup.device, machines)?.stream().clone();
        // Captures every buffer set once; otherwise replays would hit the cache.
        let captured = NonZeroU32::new(setup.sets).unwrap_or(NonZeroU32::MIN);
        Ok((Box::new(GraphClock::new(stream, captured)), None))
    }
}

impl Sensing for Cuda {
    fn sensors(&self, _: Device, facts: &DeviceFacts) -> Result<Box<dyn Source>, String> {
        nvml(uuid(facts))
    }

    fn other_users(&self, device: Device, facts: &DeviceFacts) -> Result<Vec<String>, String> {
        other_users::current_users(self.sensors(device, facts)?.as_mut())
    }
}

impl Probing for Cuda {
    fn probes(&self, device: Device, machines: &mut NativeDevices) -> Result<Box<dyn Probes>, Failure> {
        Ok(Box::new(NativeProbes::new(native_device(device, machines)?)))
    }

    fn probe_implementation(&self) -> Implementation {
        Implementation::Native
    }

    fn cache_exceeding_buffers(&self, cache_bytes: u64, _: u64) -> (u64, u32) {
        ((4 * cache_bytes).max(1 << 30), 1)
    }

    fn extra_matmul(
        &self,
        kind: MatmulPrecision,
        form: Shape,
        device: Device,
        machines: &mut NativeDevices,
    ) -> Option<Result<Box<dyn Work>, Failure>> {
        let make = match kind {
            MatmulPrecision::Tf32 => ProbeMatmul::tf32,
            MatmulPrecision::E4m3 => ProbeMatmul::e4m3,
            _ => return None,
        };
        let made = native_device(device, machines).map_err(Failure::from);
        Some(made.and_then(|machine| Ok(Box::new(make(&machine, form)?) as Box<dyn Work>)))
    }

    fn second_stopwatch(
        &self,
        setup: Setup,
        machines: &mut NativeDevices,
    ) -> Result<Option<Box<dyn Stopwatch>>, Failure> {
        // Without CUPTI, events are already the primary clock.
        if setup.implementation != Implementation::Native || Cupti::load().is_err() {
            return Ok(None);
        }
        Ok(Some(Box::new(CudaEvents::new(native_device(setup.device, machines)?.stream().clone()))))
    }
}

impl DeviceMemory for Cuda {
    fn record(&self, setup: Setup, patience: Duration, run: &mut TrackedPasses<'_>) -> Result<Timeline, Failure> {
        if setup.implementation == Implementation::Native {
            return record_driver(run);
        }
        let until = memory::recording_limit(setup.device, patience, run)?;
        // Combines the pool's statistics with driver records of its pages.
        let Ok(cupti) = Cupti::load() else { return record_pool(setup.device, until, run) };
        let mut start = 0;
        let (pool, activity) = cupti.record(MEMORY_RECORDS, || {
            start = cupti.now();
            record_pool(setup.device, until, run)
        })?;
        let Timeline { source, end_ns, events, lost, .. } = Timeline::from_activities(&activity, start, cupti.now());
        Ok(Timeline { source, end_ns, events, lost, ..pool })
    }
}

/// UUID by which NVML identifies the device: the last word of its identity.
fn uuid(facts: &DeviceFacts) -> &str {
    facts.identity.rsplit(' ').next().unwrap_or_default()
}

/// Records the memory of a run that allocates each block from the driver.
fn record_driver(run: &mut TrackedPasses<'_>) -> Result<Timeline, Failure> {
    let cupti = Cupti::load()?;
    let (mut marks, start) = (Vec::new(), cupti.now());
    let mut mark = |name: &'static str| marks.push(TimelineMark { at_ns: cupti.now() - start, name: name.into() });
    let ((), activity) = cupti.record(MEMORY_RECORDS, || Ok(run(&mut mark, &|| false)?))?;
    Ok(Timeline { marks, ..Timeline::from_activities(&activity, start, cupti.now()) })
}

/// CUDA device shared by all native workloads.
fn native_device(device: Device, machines: &mut NativeDevices) -> Result<Arc<CudaDevice>, ZooError> {
    match device {
        Device::Cuda(index) => machines.native(index),
        other => Err(ZooError::Device(format!("not a CUDA device: {other}"))),
    }
}
