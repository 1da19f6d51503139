//! Measures peaks: copies and reads of known size, and matrix products.

use super::{Limit, Peaks};
use crate::clocks::stopwatch;
use crate::rig::{Probed, implementation, probes};
use crate::worker::{Job, Told};
use calorimeter_recipes::{Dtype, Treatment};
use calorimeter_shapes::Shape;
use calorimeter_timing::{Arm, Failure, Options, Overhead, Quiet, Regime, Work, measure};
use calorimeter_zoo::{Device, Machines, Problem, Setup, open};
use std::time::{Duration, Instant};

/// A device to find the peaks of.
pub struct Probe<'a> {
    /// What is known of it.
    pub told: &'a Told,
    /// How its clocks are set.
    pub policy: String,
    /// The device.
    pub device: Device,
    /// Whether burn's products may be tuned for it, which takes seconds.
    pub may_tune: bool,
    /// Handles to devices.
    pub machines: &'a mut Machines,
}

/// A buffer is no larger than this where graphics APIs allow no more.
const LARGEST_GRAPHICS_BUFFER: u64 = 64 << 20;
/// Short bursts after rests, in which a device runs at its highest clock.
const BURSTS: u32 = 20;
const BURST: u32 = 3;
const REST: Duration = Duration::from_millis(20);
/// A product whose measurement takes longer than this is not made larger: eight times as long is too long.
const LONG: Duration = Duration::from_millis(1500);

impl Probe<'_> {
    /// Whether there is anything to measure.
    pub fn can(&self) -> bool {
        self.device != Device::Mock
    }

    /// The peaks before any is known.
    pub fn nothing(&self) -> Peaks {
        let (device, driver) = (self.told.identity.clone(), self.told.driver.clone());
        Peaks { device, driver, policy: self.policy.clone(), ..Peaks::default() }
    }

    /// How good the figures for products can be.
    pub fn limit(&self) -> Limit {
        // Two units that multiply and add sixteen numbers at once, at a clock that no processor reaches on all its cores.
        const TFLOPS_PER_CORE: f64 = 64.0 * 6e9 / 1e12;
        match self.device {
            Device::Cuda(_) => Limit::Measured,
            Device::Vulkan(_) | Device::Metal(_) if !self.told.software => Limit::Guessed,
            _ => {
                let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
                Limit::Theory(cores as f64 * TFLOPS_PER_CORE)
            }
        }
    }

    /// Memory far larger than the cache, in 10⁹ bytes per second: the faster of reading and copying.
    pub fn memory(&mut self) -> Result<f64, String> {
        let beyond = 4 * self.told.cache_bytes;
        let (bytes, sets) = match self.device {
            Device::Cuda(_) => (beyond.max(1 << 30), 1),
            Device::Cpu => (beyond.clamp(256 << 20, 1 << 30), 1),
            _ => (LARGEST_GRAPHICS_BUFFER, (beyond / LARGEST_GRAPHICS_BUFFER + 1).min(16) as u32),
        };
        self.traffic(bytes, sets)
    }

    /// Memory that the cache holds: a quarter of it.
    pub fn cache(&mut self) -> Result<f64, String> {
        let bytes = (self.told.cache_bytes / 4).clamp(1 << 20, LARGEST_GRAPHICS_BUFFER);
        self.traffic(bytes, 1)
    }

    fn traffic(&mut self, bytes: u64, sets: u32) -> Result<f64, String> {
        let mut probes = probes(self.device, self.machines).map_err(|error| error.to_string())?;
        let mut best = Err("nothing was tried".to_owned());
        for kind in [Traffic::Read, Traffic::Copy] {
            let mut rate = || -> Result<f64, Failure> {
                let mut made = match kind {
                    Traffic::Read => probes.read(bytes, sets)?,
                    Traffic::Copy => probes.copy(bytes, sets)?,
                };
                made.check()?;
                let moved = made.bytes();
                Ok(moved as f64 / self.shortest(&mut Probed(made))?)
            };
            best = better(best, rate());
        }
        best
    }

    /// Square products in 10¹² operations per second: the fastest of several sizes.
    pub fn products(&mut self, kind: &str) -> Result<f64, String> {
        let sizes: &[u64] = match self.device {
            // The largest fill the device; the smaller are done before it reaches its power cap.
            Device::Cuda(_) => &[2048, 4096, 8192],
            Device::Cpu => &[256, 512, 1024, 2048],
            _ if !self.may_tune => return Err("its kernels may not be tuned in this run".into()),
            _ if self.told.software => &[64, 128],
            _ => &[1024, 2048, 4096],
        };
        let mut best = Err("nothing was tried".to_owned());
        for &size in sizes {
            let start = Instant::now();
            let rate = self.product(kind, size);
            let failed = rate.is_err();
            best = better(best, rate);
            if failed || (self.device == Device::Cpu && start.elapsed() > LONG) {
                break;
            }
        }
        best
    }

    fn product(&mut self, kind: &str, size: u64) -> Result<f64, Failure> {
        let operations = 2.0 * (size as f64).powi(3);
        #[cfg(feature = "cuda")]
        if let (Device::Cuda(index), "tf32" | super::E4M3) = (self.device, kind) {
            let machine = self.machines.native(index)?;
            let make = if kind == "tf32" { super::products::Product::tf32 } else { super::products::Product::e4m3 };
            return Ok(operations / self.shortest(&mut make(&machine, size as usize)?)? / 1e3);
        }
        let dtype: Dtype = kind.parse()?;
        let problem = Problem { model: "linear".parse()?, shape: Shape::new(size, size, size)?, dtype, seed: 1 };
        let setup = Setup { implementation: implementation(self.device), device: self.device, sets: 1 };
        let workload = open(&problem, &problem.tensors(), &Treatment::none(dtype), setup, self.machines)?;
        Ok(operations / self.shortest(&mut Job(workload))? / 1e3)
    }

    /// Nanoseconds of a launch in the fastest window: a peak that something held back is none.
    fn shortest(&mut self, work: &mut dyn Work) -> Result<f64, Failure> {
        for _ in 0..3 {
            work.launch()?;
        }
        work.settle()?;
        let setup = Setup { implementation: implementation(self.device), device: self.device, sets: 1 };
        let (mut stopwatch, _) = stopwatch(Regime::DeviceHot, setup, self.machines, work)?;
        let options = Options {
            min_windows: 15,
            min_time: Duration::from_millis(100),
            max_time: Duration::from_millis(400),
            max_warm_up: Duration::from_millis(400),
            ..Options::default()
        };
        let measured = measure(&mut [Arm::new(work, stopwatch.as_mut())], &options, &mut Quiet).remove(0)?;
        let mut shortest = measured.scatter.min;
        if self.device != Device::Cpu {
            // Under load a device lowers its clock to keep within its power; a case whose arms leave it pauses need not.
            for _ in 0..BURSTS {
                std::thread::sleep(REST);
                let launches = BURST.next_multiple_of(stopwatch.unit());
                let nanos = stopwatch.window(work, launches)?.resolve()? as f64;
                if stopwatch.overhead() == Overhead::Outside && nanos > 0.0 {
                    shortest = shortest.min(nanos / f64::from(launches));
                }
            }
        }
        Ok(shortest)
    }
}

/// The higher figure, or the last reason why there is none.
fn better(known: Result<f64, String>, new: Result<f64, Failure>) -> Result<f64, String> {
    match (known, new) {
        (Ok(known), Ok(new)) => Ok(known.max(new)),
        (Ok(known), Err(_)) => Ok(known),
        (Err(_), new) => new.map_err(|error| error.to_string()),
    }
}

enum Traffic {
    Read,
    Copy,
}
