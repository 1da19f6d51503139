//! The device that benchmarks run on, and what runs there.

// Each benchmark is a program of its own and uses its part of this.
#![allow(dead_code, reason = "each bench uses a part of it")]

use calorimeter_recipes::Variant;
use calorimeter_shapes::Axes;
use calorimeter_timing::{DeviceTime, Failure, Stopwatch, WallClock, Work};
use calorimeter_zoo::{Device, Implementation, Machines, Setup, Subject, Task, Workload};
use criterion::Criterion;
use criterion::measurement::{Measurement, WallTime};
use std::time::Duration;

/// The one that `CALORIMETER_BENCH_DEVICE` names (`cpu`, `cuda`, `vulkan:1`, …), or the CPU.
pub fn device() -> Device {
    let name = std::env::var("CALORIMETER_BENCH_DEVICE").unwrap_or_else(|_| "cpu".into());
    name.parse().unwrap_or_else(|error| panic!("CALORIMETER_BENCH_DEVICE: {error}"))
}

/// Short measurements: all benchmarks together take less than ten minutes.
pub fn quickly<M: Measurement + 'static>(criterion: Criterion<M>) -> Criterion<M> {
    criterion
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1000))
        .sample_size(10)
        .configure_from_args()
}

/// Criterion with the clocks of devices.
pub fn on_devices() -> Criterion<DeviceTime> {
    quickly(Criterion::default().with_measurement(DeviceTime))
}

/// Criterion with the host's clock.
pub fn on_the_host() -> Criterion<WallTime> {
    quickly(Criterion::default())
}

/// A clock for any device: work on a CPU has been done when a launch returns, elsewhere the cost of waiting is removed.
pub fn clock(device: Device) -> Box<dyn Stopwatch> {
    if device == Device::Cpu { Box::new(WallClock::synchronous()) } else { Box::new(WallClock::slope()) }
}

/// A case as the timing crate takes it.
pub struct Job(Box<dyn Workload>);

impl Work for Job {
    fn launch(&mut self) -> Result<(), Failure> {
        Ok(self.0.launch()?)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(self.0.settle()?)
    }
}

/// A model or an operator at a size.
pub fn task(name: &str, axes: &Axes, dtype: &str) -> Task {
    let subject: Subject = name.parse().unwrap_or_else(|error| panic!("{error}"));
    let element = dtype.parse().unwrap_or_else(|error| panic!("{error}"));
    Task::new(subject, axes, element, None, 42).unwrap_or_else(|error| panic!("{error}"))
}

/// The case on a device with buffers that no cache keeps, or why it does not exist there.
pub fn opened(
    task: &Task,
    variant: Variant,
    implementation: Implementation,
    machines: &mut Machines,
) -> Result<Job, String> {
    let device = device();
    let treatment = task.support(variant, implementation, device).map_err(|error| error.to_string())?;
    let setup = Setup { implementation, device, sets: 4 };
    let mut job = task.open(&task.inputs(), &treatment, setup, machines).map(Job).map_err(|error| error.to_string())?;
    // What is compiled or tuned is so before the clock runs.
    job.launch().and_then(|()| job.settle()).map_err(|error| error.to_string())?;
    Ok(job)
}
