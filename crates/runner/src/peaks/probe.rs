//! Measures peaks: copies and reads of known size, and matrix products.

use super::looks::Looks;
use super::{MEMORY, Peaks};
use crate::platforms::Probed;
use crate::platforms::{self, Platform};
use crate::regimes::stopwatch;
use crate::worker::DeviceFacts;
use crate::worker::arm::Job;
use calorimeter_case::Regime;
use calorimeter_recipes::{Dtype, Treatment};
use calorimeter_shapes::Shape;
use calorimeter_timing::{Arm, Failure, Options, Overhead, Quiet, Stopwatch, Work, measure};
use calorimeter_zoo::{Device, Machines, Problem, Setup, open};
use std::time::{Duration, Instant};

/// A device to find the peaks of.
pub struct Probe<'a> {
    /// What is known of it.
    pub told: &'a DeviceFacts,
    /// How its clocks are set.
    pub policy: String,
    /// The device.
    pub device: Device,
    /// Whether burn's products may be tuned for it, which takes seconds.
    pub may_tune: bool,
    /// Handles to devices.
    pub machines: &'a mut Machines,
}

/// A measured case, for a second look at what it does in a launch.
pub struct Beside<'a> {
    pub work: &'a mut dyn Work,
    pub stopwatch: &'a mut dyn Stopwatch,
    /// Operations that it counts, and the share of them that is done.
    pub operations: f64,
    pub share: f64,
    /// Bytes that it moves.
    pub bytes: f64,
}

/// A rate over that of a probe, measured in turns: the middle, and the low end of the interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    pub middle: f64,
    pub lo: f64,
    /// Launches of the probe in a nanosecond, times what one of them does.
    pub probe: f64,
}

const MAY_NOT_TUNE: &str = "its kernels may not be tuned in this run";
/// A buffer that is to stay in a cache is no larger than this.
const LARGEST_CACHED: u64 = 64 << 20;
/// Short bursts after rests, in which a device runs at its highest clock.
const BURSTS: u32 = 20;
const BURST: u32 = 3;
const REST: Duration = Duration::from_millis(20);
/// Looks at memory that others use, and how long one may take.
const LOOKS: u32 = 4;
const LOOK: Duration = Duration::from_millis(60);

impl Probe<'_> {
    fn platform(&self) -> &'static dyn Platform {
        platforms::of(self.device)
    }

    /// Whether there is anything to measure.
    pub fn can(&self) -> bool {
        !self.platform().is_scripted()
    }

    /// The peaks before any is known.
    pub fn nothing(&self) -> Peaks {
        let (device, driver) = (self.told.identity.clone(), self.told.driver.clone());
        Peaks { device, driver, policy: self.policy.clone(), ..Peaks::default() }
    }

    /// Memory far larger than the cache, in 10⁹ bytes per second: at each look the fastest of reading and copying.
    pub fn memory(&mut self) -> Result<Looks, String> {
        let (bytes, sets) = self.platform().beyond_the_cache(self.told.cache_bytes);
        // Of two sizes, neither of which the cache holds, the one that the system laid out better counts.
        let sizes = if self.shares_memory() && sets == 1 { vec![bytes / 2, bytes] } else { vec![bytes] };
        self.traffic(&sizes, sets)
    }

    /// Memory that the cache holds: a quarter of it, and half of that where a processor may do better with less.
    pub fn cache(&mut self) -> Result<Looks, String> {
        let bytes = (self.told.cache_bytes / 4).clamp(1 << 20, LARGEST_CACHED);
        let sizes = if self.shares_memory() { vec![bytes / 2, bytes] } else { vec![bytes] };
        self.traffic(&sizes, 1)
    }

    /// At each look the fastest of reading and copying at these sizes. A device of its own needs one look.
    fn traffic(&mut self, sizes: &[u64], sets: u32) -> Result<Looks, String> {
        let mut best = Err("nothing was tried".to_owned());
        for (kind, &bytes) in
            [Traffic::Read, Traffic::Copy].iter().flat_map(|kind| sizes.iter().map(move |b| (kind, b)))
        {
            let rates = self.mover(*kind, bytes, sets).and_then(|(mut mover, moved)| {
                let times =
                    if self.shares_memory() { self.looks(&mut mover)? } else { vec![self.shortest(&mut mover)?] };
                Ok(times.into_iter().map(|nanos| moved / nanos).collect::<Vec<f64>>())
            });
            best = match (best, rates) {
                (Ok(known), Ok(new)) => Ok(higher(known, &new)),
                (Err(_), new) => new.map_err(|error| error.to_string()),
                (known, Err(_)) => known,
            };
        }
        Ok(best?.into_iter().collect())
    }

    /// A probe of memory with the bytes that a launch of it moves.
    fn mover(&mut self, kind: Traffic, bytes: u64, sets: u32) -> Result<(Probed, f64), Failure> {
        let mut probes = self.platform().probes(self.device, self.machines)?;
        let mut made = match kind {
            Traffic::Read => probes.read(bytes, sets)?,
            Traffic::Copy => probes.copy(bytes, sets)?,
        };
        made.check()?;
        let moved = made.bytes() as f64;
        Ok((Probed(made), moved))
    }

    /// Square products in 10¹² operations per second: the fastest of several sizes.
    pub fn products(&mut self, kind: &str) -> Result<f64, String> {
        self.may_multiply()?;
        let trials = self.platform().trials(self.told.software);
        let mut best = Err("nothing was tried".to_owned());
        for &size in trials.peak_products {
            let start = Instant::now();
            let rate = self.product(kind, size);
            let failed = rate.is_err();
            best = better(best, rate);
            if failed || start.elapsed() > trials.patience {
                break;
            }
        }
        best
    }

    fn may_multiply(&self) -> Result<(), String> {
        if self.platform().tunes() && !self.may_tune { Err(MAY_NOT_TUNE.into()) } else { Ok(()) }
    }

    fn product(&mut self, kind: &str, size: u64) -> Result<f64, Failure> {
        let mut product = self.square(kind, size)?;
        Ok(operations(size) / self.shortest(product.as_mut())? / 1e3)
    }

    /// A product of square matrices.
    fn square(&mut self, kind: &str, size: u64) -> Result<Box<dyn Work>, Failure> {
        let form = Shape::new(size, size, size)?;
        if let Some(product) = self.platform().product(kind, form, self.device, self.machines) {
            return product;
        }
        let dtype: Dtype = kind.parse()?;
        let problem = Problem { model: "linear".parse()?, shape: form, dtype, seed: 1 };
        let workload = open(&problem, &problem.tensors(), &Treatment::none(dtype), self.setup(), self.machines)?;
        Ok(Box::new(Job(workload)))
    }

    fn setup(&self) -> Setup {
        Setup { implementation: self.platform().probed_by(), device: self.device, sets: 1 }
    }

    /// Whether others use its memory while peaks are measured.
    pub fn shares_memory(&self) -> bool {
        self.platform().shares_memory(self.told.software)
    }

    /// The share that a case reaches of what the device does now: of copies and reads far beyond its cache, whichever is
    /// faster, or of a square product of about as many operations.
    pub fn beside(&mut self, what: &str, case: &mut Beside<'_>) -> Result<Share, String> {
        if what != MEMORY {
            self.may_multiply()?;
            let most = self.platform().trials(self.told.software).largest_product;
            let size = side(case.operations * case.share, most);
            let share = self.square(what, size).and_then(|mut product| {
                self.in_turns(product.as_mut(), operations(size), case.operations * case.share, case)
            });
            return share.map_err(|error| error.to_string());
        }
        let (bytes, sets) = self.platform().beyond_the_cache(self.told.cache_bytes);
        let mut least: Option<Share> = None;
        for kind in [Traffic::Read, Traffic::Copy] {
            let share = self
                .mover(kind, bytes, sets)
                .and_then(|(mut mover, moved)| self.in_turns(&mut mover, moved, case.bytes, case));
            let share = share.map_err(|error| error.to_string())?;
            least = least.filter(|least| least.lo <= share.lo).or(Some(share));
        }
        least.ok_or_else(|| "nothing was tried".to_owned())
    }

    /// The rate of a case over that of a probe, by what a launch of each does.
    fn in_turns(
        &mut self,
        probe: &mut dyn Work,
        probes: f64,
        cases: f64,
        case: &mut Beside<'_>,
    ) -> Result<Share, Failure> {
        for _ in 0..3 {
            probe.launch()?;
        }
        probe.settle()?;
        let setup = self.setup();
        let (mut clock, _) = stopwatch(Regime::DeviceHot, setup, self.machines, probe)?;
        let mut arms = [Arm::new(probe, clock.as_mut()), Arm::new(case.work, case.stopwatch).against(0)];
        let mut measured = measure(&mut arms, &quickly(), &mut Quiet);
        let turns = measured.remove(1)?.comparison.ok_or("nothing was measured in turns")?;
        let (lo, per_launch) = (turns.lo.unwrap_or(turns.ratio), cases / probes);
        let probe = probes / measured.remove(0)?.time.median;
        Ok(Share { middle: per_launch * turns.ratio, lo: per_launch * lo, probe })
    }

    /// Nanoseconds of a launch in the fastest window of each of several looks, between which others may come and go.
    fn looks(&mut self, work: &mut dyn Work) -> Result<Vec<f64>, Failure> {
        work.launch()?;
        work.settle()?;
        let (mut stopwatch, _) = stopwatch(Regime::DeviceHot, self.setup(), self.machines, work)?;
        let mut look = || {
            std::thread::sleep(REST);
            if stopwatch.overhead() == Overhead::Inside {
                let measured = measure(&mut [Arm::new(work, stopwatch.as_mut())], &quickly(), &mut Quiet).remove(0)?;
                return Ok(measured.scatter.min);
            }
            // A launch takes milliseconds where memory is meant, so that few of them make a look.
            let (start, mut shortest) = (Instant::now(), f64::INFINITY);
            while start.elapsed() < LOOK {
                let launches = stopwatch.unit();
                let nanos = stopwatch.window(work, launches)?.resolve()?;
                if nanos > 0 {
                    shortest = shortest.min(nanos as f64 / f64::from(launches));
                }
            }
            if shortest.is_finite() { Ok(shortest) } else { Err("the clock stands still".into()) }
        };
        (0..LOOKS).map(|_| look()).collect()
    }

    /// Nanoseconds of a launch in the fastest window: a peak that something held back is none.
    fn shortest(&mut self, work: &mut dyn Work) -> Result<f64, Failure> {
        for _ in 0..3 {
            work.launch()?;
        }
        work.settle()?;
        let (mut stopwatch, _) = stopwatch(Regime::DeviceHot, self.setup(), self.machines, work)?;
        let measured = measure(&mut [Arm::new(work, stopwatch.as_mut())], &quickly(), &mut Quiet).remove(0)?;
        let mut shortest = measured.scatter.min;
        if !self.platform().is_synchronous() {
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

fn quickly() -> Options {
    Options {
        min_windows: 15,
        min_time: Duration::from_millis(100),
        max_time: Duration::from_millis(400),
        max_warm_up: Duration::from_millis(400),
        ..Options::default()
    }
}

fn operations(size: u64) -> f64 {
    2.0 * (size as f64).powi(3)
}

/// The side of a square product of about so many operations.
fn side(operations: f64, most: u64) -> u64 {
    const STEP: u64 = 64;
    let side = (operations / 2.0).cbrt() as u64;
    (side.div_ceil(STEP) * STEP).clamp(STEP, most)
}

/// The higher figure, or the last reason why there is none.
fn better(known: Result<f64, String>, new: Result<f64, Failure>) -> Result<f64, String> {
    match (known, new) {
        (Ok(known), Ok(new)) => Ok(known.max(new)),
        (Ok(known), Err(_)) => Ok(known),
        (Err(_), new) => new.map_err(|error| error.to_string()),
    }
}

/// Look by look the higher rate.
fn higher(known: Vec<f64>, new: &[f64]) -> Vec<f64> {
    known.into_iter().zip(new).map(|(known, &new)| known.max(new)).collect()
}

#[derive(Clone, Copy)]
enum Traffic {
    Read,
    Copy,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_product_has_about_as_many_operations_as_the_case() {
        assert_eq!(side(operations(1024), 8192), 1024);
        assert_eq!(side(operations(1000), 8192), 1024);
        assert_eq!((side(5.0, 8192), side(1e18, 2048)), (64, 2048));
    }
}
