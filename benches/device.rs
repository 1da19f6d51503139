//! Device, clocks and cases of the benchmarks.

// Each benchmark is a separate program and uses a part of this module.
#![allow(dead_code, reason = "each benchmark uses a part of this module")]

use calorimeter_recipes::RecipeVariant;
use calorimeter_shapes::Axes;
use calorimeter_timing::{DeviceTime, Failure, Stopwatch, WallClock, Work};
use calorimeter_zoo::{Device, Implementation, NativeDevices, Setup, Subject, Task, Workload};
use criterion::Criterion;
use criterion::measurement::{Measurement, WallTime};
use std::time::Duration;

/// Device from `CALORIMETER_BENCH_DEVICE` (`cpu`, `cuda`, `vulkan:1`, …); default is the CPU.
pub(crate) fn device() -> Device {
    let name = std::env::var("CALORIMETER_BENCH_DEVICE").unwrap_or_else(|_| "cpu".into());
    name.parse().unwrap_or_else(|error| panic!("CALORIMETER_BENCH_DEVICE: {error}"))
}

/// Configures short measurements, so that all benchmarks together take less than ten minutes.
pub(crate) fn with_short_times<M: Measurement + 'static>(criterion: Criterion<M>) -> Criterion<M> {
    criterion
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1000))
        .sample_size(10)
        .configure_from_args()
}

/// Criterion with device times.
pub(crate) fn device_criterion() -> Criterion<DeviceTime> {
    with_short_times(Criterion::default().with_measurement(DeviceTime))
}

/// Criterion with wall-clock times.
pub(crate) fn host_criterion() -> Criterion<WallTime> {
    with_short_times(Criterion::default())
}

/// Stopwatch for a device: launches on the CPU are synchronous; on other devices the slope method removes the cost of
/// synchronization.
pub(crate) fn clock(device: Device) -> Box<dyn Stopwatch> {
    if device == Device::Cpu { Box::new(WallClock::synchronous()) } else { Box::new(WallClock::slope()) }
}

/// Adapter from a workload of the zoo to the timing crate.
pub(crate) struct WorkloadAdapter(Box<dyn Workload>);

impl Work for WorkloadAdapter {
    fn launch(&mut self) -> Result<(), Failure> {
        Ok(self.0.launch()?)
    }

    fn synchronize(&mut self) -> Result<(), Failure> {
        Ok(self.0.synchronize()?)
    }
}

/// Creates the task of a model or operator at a size.
pub(crate) fn task(name: &str, axes: &Axes, dtype: &str) -> Task {
    let subject: Subject = name.parse().unwrap_or_else(|error| panic!("{error}"));
    let element = dtype.parse().unwrap_or_else(|error| panic!("{error}"));
    Task::new(subject, axes, element, None, 42).unwrap_or_else(|error| panic!("{error}"))
}

/// Opens a case with enough buffer sets that operands are not cached, or returns the reason why the device does not
/// support it.
pub(crate) fn open_case(
    task: &Task,
    variant: RecipeVariant,
    implementation: Implementation,
    machines: &mut NativeDevices,
) -> Result<WorkloadAdapter, String> {
    let device = device();
    let config = task.support(variant, implementation, device).map_err(|error| error.to_string())?;
    let setup = Setup { implementation, device, sets: 4 };
    let mut job = task
        .open(&task.inputs(), &config, Some(variant), setup, machines)
        .map(WorkloadAdapter)
        .map_err(|error| error.to_string())?;
    // Compilation and autotuning happen before timing.
    job.launch().and_then(|()| job.synchronize()).map_err(|error| error.to_string())?;
    Ok(job)
}
