//! CUDA platform.

mod products;

use super::memory::{self, Passes, from_the_pool};
use super::others;
use super::platform::{Choice, Platform};
use super::trials::Trials;
use crate::devices::DiscoveredDevice;
use crate::peaks::ProductKind;
use crate::worker::DeviceFacts;
use calorimeter_case::{Device, Implementation};
use calorimeter_kernels::native::{self, Machine};
use calorimeter_kernels::probes::{NativeProbes, Probes};
use calorimeter_shapes::Shape;
use calorimeter_timing::cuda::{CudaEvents, Cupti, GraphClock, KernelClock, Kinds};
use calorimeter_timing::memory::{Mark, Timeline};
use calorimeter_timing::telemetry::{ClockLock, Source, nvml, nvml_lock};
use calorimeter_timing::{Failure, Stopwatch, WallClock, Work, nvtx};
use calorimeter_zoo::{DeviceKind, Machines, Setup, ZooError};
use products::Product;
use std::fmt::Write;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// NVIDIA GPUs.
#[derive(Debug)]
pub struct Cuda;

/// CUPTI activity kinds for memory recordings.
const MEMORY: Kinds = Kinds { kernels: false, copies: false, memory: true, calls: false };

impl Platform for Cuda {
    fn kinds(&self) -> &'static [DeviceKind] {
        &[DeviceKind::Cuda]
    }

    fn find(&self) -> Vec<DiscoveredDevice> {
        let gpus = native::probe().unwrap_or_default();
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

    fn advice(&self, found: bool) -> String {
        let mut text = String::from("\nCUDA libraries on the loader's path:\n");
        for library in native::libraries() {
            let state = if library.loaded { "loaded" } else { "missing" };
            let need = if library.required { "" } else { ", optional" };
            let _ = writeln!(text, "  {:<12} {state:<8} {}{need}", library.name, library.purpose);
            if let (Some(why), true) = (&library.why, found) {
                let _ = writeln!(text, "               {why}");
            }
        }
        let _ = writeln!(text, "  {}", nvtx::state());
        match native::probe() {
            Ok(gpus) if gpus.is_empty() => text += "The CUDA driver is installed but finds no GPU.\n",
            Ok(_) => {}
            Err(error) => drop(writeln!(text, "No CUDA device: {error}")),
        }
        text
    }

    fn stopwatch(&self, setup: Setup, machines: &mut Machines, _: &mut dyn Work) -> Result<Choice, Failure> {
        Ok(match Cupti::load() {
            Ok(cupti) => (Box::new(KernelClock::new(cupti)), None),
            Err(why) if setup.implementation == Implementation::Native => {
                let stream = machine(setup.device, machines)?.stream().clone();
                let remark = format!("no kernel records ({why}); times are from CUDA events");
                (Box::new(CudaEvents::new(stream)), Some(remark))
            }
            Err(why) => {
                (Box::new(WallClock::slope()), Some(format!("no kernel records ({why}); times are wall-clock slopes")))
            }
        })
    }

    fn clock(&self) -> String {
        match Cupti::load() {
            Ok(_) => "cupti".into(),
            Err(why) => format!("slope for burn, cuda-events for native: {why}"),
        }
    }

    fn has_graphs(&self, implementation: Implementation) -> bool {
        implementation == Implementation::Native
    }

    fn graph_stopwatch(&self, setup: Setup, machines: &mut Machines) -> Result<Choice, Failure> {
        let stream = machine(setup.device, machines)?.stream().clone();
        // Captures every buffer set once; otherwise replays would hit the cache.
        let captured = NonZeroU32::new(setup.sets).unwrap_or(NonZeroU32::MIN);
        Ok((Box::new(GraphClock::new(stream, captured)), None))
    }

    fn other_stopwatch(&self, setup: Setup, machines: &mut Machines) -> Result<Option<Box<dyn Stopwatch>>, Failure> {
        // Without CUPTI, events are already the primary clock.
        if setup.implementation != Implementation::Native || Cupti::load().is_err() {
            return Ok(None);
        }
        Ok(Some(Box::new(CudaEvents::new(machine(setup.device, machines)?.stream().clone()))))
    }

    fn sensors(&self, _: Device, facts: &DeviceFacts) -> Result<Box<dyn Source>, String> {
        nvml(uuid(facts))
    }

    fn clock_lock(&self, _: Device, facts: &DeviceFacts) -> Result<Box<dyn ClockLock>, String> {
        nvml_lock(uuid(facts))
    }

    fn others(&self, device: Device, facts: &DeviceFacts) -> Result<Vec<String>, String> {
        others::at_this_moment(self.sensors(device, facts)?.as_mut())
    }

    fn probes(&self, device: Device, machines: &mut Machines) -> Result<Box<dyn Probes>, Failure> {
        Ok(Box::new(NativeProbes::new(machine(device, machines)?)))
    }

    fn probed_by(&self) -> Implementation {
        Implementation::Native
    }

    fn product(
        &self,
        kind: ProductKind,
        form: Shape,
        device: Device,
        machines: &mut Machines,
    ) -> Option<Result<Box<dyn Work>, Failure>> {
        let make = match kind {
            ProductKind::Tf32 => Product::tf32,
            ProductKind::E4m3 => Product::e4m3,
            _ => return None,
        };
        let made = machine(device, machines).map_err(Failure::from);
        Some(made.and_then(|machine| Ok(Box::new(make(&machine, form)?) as Box<dyn Work>)))
    }

    fn trials(&self, _: bool) -> Trials {
        // The largest size fills the device; smaller ones finish before the power cap.
        Trials { peak_products: &[2048, 4096, 8192], ..Trials::default() }
    }

    fn beyond_the_cache(&self, cache_bytes: u64) -> (u64, u32) {
        ((4 * cache_bytes).max(1 << 30), 1)
    }

    fn follow(&self, setup: Setup, patience: Duration, run: &mut Passes<'_>) -> Result<Timeline, Failure> {
        if setup.implementation == Implementation::Native {
            return from_the_driver(run);
        }
        let until = memory::until(setup.device, patience, run)?;
        // Combines the pool's statistics with driver records of its pages.
        let Ok(cupti) = Cupti::load() else { return from_the_pool(setup.device, until, run) };
        let mut start = 0;
        let (pool, activity) = cupti.record(MEMORY, || {
            start = cupti.now();
            from_the_pool(setup.device, until, run)
        })?;
        let Timeline { source, end_ns, events, lost, .. } = Timeline::of_device(&activity, start, cupti.now());
        Ok(Timeline { source, end_ns, events, lost, ..pool })
    }
}

/// UUID by which NVML identifies the device: the last word of its identity.
fn uuid(facts: &DeviceFacts) -> &str {
    facts.identity.rsplit(' ').next().unwrap_or_default()
}

/// Records the memory of a run that allocates each block from the driver.
fn from_the_driver(run: &mut Passes<'_>) -> Result<Timeline, Failure> {
    let cupti = Cupti::load()?;
    let (mut marks, start) = (Vec::new(), cupti.now());
    let mut mark = |name: &'static str| marks.push(Mark { at_ns: cupti.now() - start, name: name.into() });
    let ((), activity) = cupti.record(MEMORY, || Ok(run(&mut mark, &|| false)?))?;
    Ok(Timeline { marks, ..Timeline::of_device(&activity, start, cupti.now()) })
}

/// CUDA device shared by all native workloads.
fn machine(device: Device, machines: &mut Machines) -> Result<Arc<Machine>, ZooError> {
    match device {
        Device::Cuda(index) => machines.native(index),
        other => Err(ZooError::Device(format!("not a CUDA device: {other}"))),
    }
}
