//! Probes of peaks: copies and reads of known size, and matmuls.

use super::forms::forms;
use super::known::{Peak, Peaks};
use super::limit::{Limit, ProductKind};
use super::looks::Looks;
use super::second_look::{Share, Turns};
use crate::platforms::Probed;
use crate::platforms::{self, Platform};
use crate::regimes::stopwatch;
use crate::worker::DeviceFacts;
use crate::worker::arm::Job;
use calorimeter_case::Regime;
use calorimeter_recipes::Treatment;
use calorimeter_shapes::Shape;
use calorimeter_timing::{Arm, Failure, Measurement, Options, Overhead, Quiet, Stopwatch, Work, measure, median};
use calorimeter_zoo::{Device, Machines, Problem, Setup, open};
use std::time::{Duration, Instant};

/// Measures the peaks of a device.
pub struct Probe<'a> {
    /// Known facts about the device.
    pub told: &'a DeviceFacts,
    /// Clock policy.
    pub policy: String,
    /// Device.
    pub device: Device,
    /// True if burn's matmuls may be autotuned, which takes seconds.
    pub may_tune: bool,
    /// Open device handles.
    pub machines: &'a mut Machines,
}

/// Case that is measured again, interleaved with probes.
pub struct Beside<'a, 'b> {
    pub probe: &'a mut Probe<'b>,
    pub work: &'a mut dyn Work,
    pub stopwatch: &'a mut dyn Stopwatch,
    /// Shape of a case that is a single matmul.
    pub form: Option<Shape>,
    /// Operations per launch.
    pub operations: f64,
    /// Bytes per launch.
    pub bytes: f64,
    /// Open probes, reused in the next round.
    pub rivals: Option<Rivals>,
}

/// Probes that stay open while rounds are repeated.
pub struct Rivals {
    over: Vec<Limit>,
    all: Vec<Rival>,
    since: Instant,
}

struct Rival {
    what: Limit,
    form: Option<Shape>,
    work: Box<dyn Work>,
    /// Operations or bytes per launch.
    amount: f64,
}

const MAY_NOT_TUNE: &str = "autotuning is off, and its kernels are not tuned";
/// Maximum size of a buffer that is meant to stay in the cache.
const LARGEST_CACHED: u64 = 64 << 20;
/// Short bursts after pauses, in which a device reaches its highest clock.
const BURSTS: u32 = 20;
const BURST: u32 = 3;
const REST: Duration = Duration::from_millis(20);
/// Samples of shared memory: number and maximum duration.
const LOOKS: u32 = 4;
const LOOK: Duration = Duration::from_millis(60);
/// Continuous load: lead-in that is not counted, counted time, and minimum duration of a window.
const LEAD: Duration = Duration::from_millis(400);
const HELD: Duration = Duration::from_secs(1);
const WINDOW: Duration = Duration::from_millis(50);
/// Time limit for repeated rounds, since the case has a timeout.
const PATIENCE: Duration = Duration::from_secs(60);

impl Probe<'_> {
    fn platform(&self) -> &'static dyn Platform {
        platforms::of(self.device)
    }

    /// False on the mock device, which has nothing to measure.
    pub fn can(&self) -> bool {
        !self.platform().is_scripted()
    }

    /// Peaks of this device without any value.
    pub fn nothing(&self) -> Peaks {
        let (device, driver) = (self.told.identity.clone(), self.told.driver.clone());
        Peaks { device, driver, policy: self.policy.clone(), ..Peaks::default() }
    }

    /// Bandwidth of memory far larger than the cache: the faster of read and copy in each sample.
    pub fn memory(&mut self) -> Result<Looks, String> {
        let (bytes, sets) = self.platform().beyond_the_cache(self.told.cache_bytes);
        // Two sizes, since physical page placement affects the bandwidth; the better one counts.
        let sizes = if self.shares_memory() && sets == 1 { vec![bytes / 2, bytes] } else { vec![bytes] };
        self.traffic(&sizes, sets)
    }

    /// Bandwidth of a buffer of a quarter of the cache, and on processors also of an eighth, which may be faster.
    pub fn cache(&mut self) -> Result<Looks, String> {
        let bytes = (self.told.cache_bytes / 4).clamp(1 << 20, LARGEST_CACHED);
        let sizes = if self.shares_memory() { vec![bytes / 2, bytes] } else { vec![bytes] };
        self.traffic(&sizes, 1)
    }

    /// The fastest of reads and copies at these sizes, sample by sample. A device with dedicated memory needs one
    /// sample.
    fn traffic(&mut self, sizes: &[u64], sets: u32) -> Result<Looks, String> {
        let mut best = Err("no probe available".to_owned());
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

    /// Opens a memory probe; returns it with the bytes per launch.
    fn mover(&mut self, kind: Traffic, bytes: u64, sets: u32) -> Result<(Probed, f64), Failure> {
        let mut probes = self.platform().probes(self.device, self.machines)?;
        let mut probe = match kind {
            Traffic::Read => probes.read(bytes, sets)?,
            Traffic::Copy => probes.copy(bytes, sets)?,
        };
        probe.check()?;
        let moved = probe.bytes() as f64;
        Ok((Probed(probe), moved))
    }

    /// Peak of square matmuls in TFLOP/s, the fastest of several sizes.
    pub fn products(&mut self, kind: ProductKind) -> Result<Peak, String> {
        self.may_multiply()?;
        let trials = self.platform().trials(self.told.software);
        let mut best = Err("no probe available".to_owned());
        for &size in trials.peak_products {
            let start = Instant::now();
            let rate = square(size).and_then(|form| Ok((self.burst(kind, form)?, form)));
            let failed = rate.is_err();
            best = better(best, rate);
            if failed || start.elapsed() > trials.patience {
                break;
            }
        }
        let (burst, form) = best?;
        let sustained = self.sustained(kind, form)?;
        Ok(Peak { burst: burst.max(sustained), sustained })
    }

    /// Precisions that the device supports.
    pub fn kinds(&mut self) -> Vec<ProductKind> {
        const SMALL: u64 = 256;
        let dtypes = self.platform().trials(self.told.software).dtypes;
        let has = |kind: &ProductKind| match (kind.dtype(), square(SMALL)) {
            (Some(dtype), _) => dtypes.contains(&dtype),
            (None, Ok(form)) => self.platform().product(*kind, form, self.device, self.machines).is_some(),
            (None, Err(_)) => false,
        };
        ProductKind::ALL.into_iter().filter(has).collect()
    }

    fn may_multiply(&self) -> Result<(), String> {
        if self.platform().tunes() && !self.may_tune { Err(MAY_NOT_TUNE.into()) } else { Ok(()) }
    }

    fn burst(&mut self, kind: ProductKind, form: Shape) -> Result<f64, Failure> {
        let nanos = self.fastest(kind, form, Self::shortest)?;
        Ok(form.flops() as f64 / nanos / 1e3)
    }

    /// Rate of a matmul under continuous load, in TFLOP/s.
    pub fn sustained(&mut self, kind: ProductKind, form: Shape) -> Result<f64, String> {
        let nanos = self.fastest(kind, form, Self::held);
        Ok(form.flops() as f64 / nanos.map_err(|error| error.to_string())? / 1e3)
    }

    /// Time of the fastest implementation of a matmul in nanoseconds.
    fn fastest(
        &mut self,
        kind: ProductKind,
        form: Shape,
        time: fn(&mut Self, &mut dyn Work) -> Result<f64, Failure>,
    ) -> Result<f64, Failure> {
        let mut fastest = f64::INFINITY;
        for mut product in self.products_of(kind, form)? {
            fastest = fastest.min(time(self, product.as_mut())?);
        }
        Ok(fastest)
    }

    /// Opens a matmul in every implementation that serves as probe and supports it.
    fn products_of(&mut self, kind: ProductKind, form: Shape) -> Result<Vec<Box<dyn Work>>, Failure> {
        if let Some(product) = self.platform().product(kind, form, self.device, self.machines) {
            return Ok(vec![product?]);
        }
        let dtype = kind.dtype().ok_or_else(|| format!("no {kind} matmul on this device"))?;
        let (mut products, mut failed): (Vec<Box<dyn Work>>, _) = (Vec::new(), None);
        let problem = Problem { model: "linear".parse()?, shape: form, dtype, seed: 1 };
        let tensors = problem.tensors();
        for implementation in self.platform().multiplied_by() {
            let setup = Setup { implementation, ..self.setup() };
            match open(&problem, &tensors, &Treatment::none(dtype), setup, self.machines) {
                Ok(workload) => products.push(Box::new(Job(workload))),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if products.is_empty() => Err(error.into()),
            _ => Ok(products),
        }
    }

    fn setup(&self) -> Setup {
        Setup { implementation: self.platform().probed_by(), device: self.device, sets: 1 }
    }

    /// True if other processes may use the same memory.
    pub fn shares_memory(&self) -> bool {
        self.platform().shares_memory(self.told.software)
    }

    /// Opens matmuls with about the FLOPs of a case.
    fn rival_products(
        &mut self,
        kinds: &[ProductKind],
        own: Option<Shape>,
        operations: f64,
    ) -> Result<Vec<Rival>, String> {
        self.may_multiply()?;
        let forms = forms(own, operations, self.platform().trials(self.told.software).largest_product);
        let (mut rivals, mut failed) = (Vec::new(), None);
        for (kind, form) in kinds.iter().flat_map(|kind| forms.iter().map(move |form| (*kind, *form))) {
            // Not every library supports every shape.
            match self.products_of(kind, form) {
                Ok(products) => rivals.extend(products.into_iter().map(|work| Rival {
                    what: Limit::Products(kind),
                    form: Some(form),
                    work,
                    amount: form.flops() as f64,
                })),
                Err(error) => failed = Some(error.to_string()),
            }
        }
        if rivals.is_empty() { Err(failed.unwrap_or_default()) } else { Ok(rivals) }
    }

    /// Opens reads and copies far larger than the cache.
    fn rival_traffic(&mut self) -> Result<Vec<Rival>, String> {
        let (bytes, sets) = self.platform().beyond_the_cache(self.told.cache_bytes);
        let rival = |kind| {
            let (mover, amount) = self.mover(kind, bytes, sets)?;
            Ok(Rival { what: Limit::Memory, form: None, work: Box::new(mover), amount })
        };
        [Traffic::Read, Traffic::Copy].into_iter().map(rival).collect::<Result<_, Failure>>().map_err(|e| e.to_string())
    }

    /// Time per launch in the fastest window of each of several samples, in nanoseconds. Other load may vary between
    /// samples.
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
            // Memory probes take milliseconds per launch, so a sample contains few launches.
            let (start, mut shortest) = (Instant::now(), f64::INFINITY);
            while start.elapsed() < LOOK {
                let launches = stopwatch.unit();
                let nanos = stopwatch.window(work, launches)?.resolve()?;
                if nanos > 0 {
                    shortest = shortest.min(nanos as f64 / f64::from(launches));
                }
            }
            if shortest.is_finite() { Ok(shortest) } else { Err("the stopwatch measured no time".into()) }
        };
        (0..LOOKS).map(|_| look()).collect()
    }

    /// Median time per launch under continuous load, in nanoseconds, as limited by heat and power. With shared memory,
    /// the load is divided into samples, since other processes may disturb some of them.
    fn held(&mut self, work: &mut dyn Work) -> Result<f64, Failure> {
        work.launch()?;
        work.settle()?;
        let (mut stopwatch, _) = stopwatch(Regime::DeviceHot, self.setup(), self.machines, work)?;
        let (mut launches, mut windows, start) = (stopwatch.unit(), Vec::new(), Instant::now());
        while start.elapsed() < LEAD + HELD || windows.is_empty() {
            let window_start = start.elapsed();
            let nanos = stopwatch.window(work, launches)?.resolve()? as f64 / f64::from(launches);
            if window_start >= LEAD {
                windows.push(nanos);
            } else if start.elapsed() - window_start < WINDOW {
                // The overhead of the stopwatch is negligible for windows of this duration.
                launches = launches.saturating_mul(2);
            }
        }
        let parts = if self.shares_memory() { LOOKS as usize } else { 1 };
        let rates: Looks = windows
            .chunks(windows.len().div_ceil(parts))
            .filter_map(median)
            .filter(|nanos| *nanos > 0.0)
            .map(f64::recip)
            .collect();
        Ok(rates.peak().ok_or("the stopwatch measured no time")?.recip())
    }

    /// Time per launch in the fastest window, in nanoseconds: a throttled rate is no peak.
    fn shortest(&mut self, work: &mut dyn Work) -> Result<f64, Failure> {
        for _ in 0..3 {
            work.launch()?;
        }
        work.settle()?;
        let (mut stopwatch, _) = stopwatch(Regime::DeviceHot, self.setup(), self.machines, work)?;
        let measured = measure(&mut [Arm::new(work, stopwatch.as_mut())], &quickly(), &mut Quiet).remove(0)?;
        let mut shortest = measured.scatter.min;
        if !self.platform().is_synchronous() {
            // Under load the device lowers its clock to stay within its power limit; a case with pauses may run at a
            // higher clock.
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

/// Options for a case interleaved with several probes, each possibly long; an interval needs at least six rounds.
fn in_turns() -> Options {
    Options { precision: 0.02, max_time: Duration::from_secs(1), ..quickly() }
}

impl Turns for Beside<'_, '_> {
    fn look(&mut self, over: &[Limit]) -> Result<Vec<Share>, String> {
        let amount = if over.contains(&Limit::Memory) { self.bytes } else { self.operations };
        let mut rivals = match self.rivals.take() {
            Some(rivals) if rivals.over == over => rivals,
            _ => self.opened(over)?,
        };
        if rivals.since.elapsed() > PATIENCE {
            return Err(format!("no two interleaved rounds agreed within {} s", PATIENCE.as_secs()));
        }
        let shares = self.shares(&mut rivals.all, amount);
        self.rivals = Some(rivals);
        shares.map_err(|error| error.to_string())
    }

    fn sustained(&mut self, kind: ProductKind, form: Shape) -> Result<f64, String> {
        self.rivals = None;
        self.probe.sustained(kind, form)
    }

    fn shares_memory(&self) -> bool {
        self.probe.shares_memory()
    }
}

impl Beside<'_, '_> {
    fn opened(&mut self, over: &[Limit]) -> Result<Rivals, String> {
        let all = if over.contains(&Limit::Memory) {
            self.probe.rival_traffic()?
        } else {
            let kinds: Vec<ProductKind> = over.iter().filter_map(|limit| limit.product()).collect();
            self.probe.rival_products(&kinds, self.form, self.operations)?
        };
        Ok(Rivals { over: over.to_vec(), all, since: Instant::now() })
    }

    /// Compares the case with each probe by the work per launch.
    fn shares(&mut self, rivals: &mut [Rival], case: f64) -> Result<Vec<Share>, Failure> {
        let mut clocks = Vec::with_capacity(rivals.len());
        for rival in rivals.iter_mut() {
            rival.work.launch()?;
            rival.work.settle()?;
            let setup = self.probe.setup();
            clocks.push(stopwatch(Regime::DeviceHot, setup, self.probe.machines, rival.work.as_mut())?.0);
        }
        let mut arms = vec![Arm::new(self.work, self.stopwatch)];
        let probes = rivals.iter_mut().zip(&mut clocks);
        arms.extend(probes.map(|(rival, clock)| Arm::new(rival.work.as_mut(), clock.as_mut()).against(0)));
        let mut measured = measure(&mut arms, &in_turns(), &mut Quiet).into_iter();
        measured.next().ok_or("no interleaved measurement")??;
        rivals.iter().zip(measured).map(|(rival, measured)| rival.share(case, &measured?)).collect()
    }
}

impl Rival {
    /// Comparison of a case, with `case` work per launch, with this probe.
    fn share(&self, case: f64, measured: &Measurement) -> Result<Share, Failure> {
        let comparison = measured.comparison.ok_or("no interleaved measurement")?;
        let work_ratio = case / self.amount;
        // Converts to GB/s or TFLOP/s.
        let unit = if self.what == Limit::Memory { 1.0 } else { 1e3 };
        Ok(Share {
            what: self.what,
            form: self.form,
            middle: work_ratio / comparison.ratio,
            lo: comparison.hi.filter(|_| comparison.sound).map(|hi| work_ratio / hi),
            rate: self.amount / measured.scatter.min / unit,
        })
    }
}

fn square(size: u64) -> Result<Shape, Failure> {
    Ok(Shape::new(size, size, size)?)
}

/// The higher rate with its shape, or the last error.
fn better(known: Result<(f64, Shape), String>, new: Result<(f64, Shape), Failure>) -> Result<(f64, Shape), String> {
    match (known, new) {
        (Ok(known), Ok(new)) => Ok(if new.0 > known.0 { new } else { known }),
        (Ok(known), Err(_)) => Ok(known),
        (Err(_), new) => new.map_err(|error| error.to_string()),
    }
}

/// Elementwise maximum.
fn higher(known: Vec<f64>, new: &[f64]) -> Vec<f64> {
    known.into_iter().zip(new).map(|(known, &new)| known.max(new)).collect()
}

#[derive(Clone, Copy)]
enum Traffic {
    Read,
    Copy,
}
