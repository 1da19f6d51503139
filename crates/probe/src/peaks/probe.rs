//! Probes of peaks: copies and reads of known size, and matmuls.

use super::device_peaks::{DevicePeaks, GemmPeak};
use super::limit::{Limit, MatmulPrecision};
use super::matmul_shapes::probe_shapes;
use super::rate_samples::RateSamples;
use super::recheck::{ProbeComparer, ProbeComparison};
use crate::devices::DeviceFacts;
use crate::platforms::{self, Platform, ProbeWork, Probing};
use crate::regimes::stopwatch;
use crate::timed_workload::TimedWorkload;
use calorimeter_case::Regime;
use calorimeter_recipes::QuantConfig;
use calorimeter_shapes::Shape;
use calorimeter_timing::{
    Arm, Failure, Measurement, NullObserver, Options, Overhead, Stopwatch, Work, measure, median, time_one,
};
use calorimeter_zoo::{Device, NativeDevices, Problem, Setup, open};
use std::time::{Duration, Instant};

/// Measures the peaks of a device.
pub struct PeakProbe<'a> {
    /// Known facts about the device.
    pub facts: &'a DeviceFacts,
    /// Clock policy.
    pub policy: String,
    /// Device.
    pub device: Device,
    /// True if burn's matmuls may be autotuned, which takes seconds.
    pub may_tune: bool,
    /// Open device handles.
    pub machines: &'a mut NativeDevices,
}

/// Case that is measured again, interleaved with probes.
pub struct CaseRecheck<'a, 'b> {
    /// Probe of the device.
    pub probe: &'a mut PeakProbe<'b>,
    /// Work of the case.
    pub work: &'a mut dyn Work,
    /// Stopwatch of the case.
    pub stopwatch: &'a mut dyn Stopwatch,
    /// Shape of a case that is a single matmul.
    pub shape: Option<Shape>,
    /// Operations per launch.
    pub operations: f64,
    /// Bytes per launch.
    pub bytes: f64,
    /// Open probes, reused in the next round.
    pub open_probes: Option<OpenProbes>,
}

/// Probes that stay open while rounds are repeated.
pub struct OpenProbes {
    limits: Vec<Limit>,
    probes: Vec<OpenProbe>,
    opened_at: Instant,
}

struct OpenProbe {
    limit: Limit,
    shape: Option<Shape>,
    work: Box<dyn Work>,
    /// Operations or bytes per launch.
    amount: f64,
}

const TUNING_FORBIDDEN: &str = "autotuning is off, and its kernels are not tuned";
/// Maximum size of a buffer that is meant to stay in the cache.
const MAX_CACHED_BYTES: u64 = 64 << 20;
/// Short bursts after pauses, in which a device reaches its highest clock.
const BURST_COUNT: u32 = 10;
const BURST_LAUNCHES: u32 = 3;
const BURST_PAUSE: Duration = Duration::from_millis(20);
/// Maximum predicted duration of a launch on a GPU: a matmul of this duration fills every device.
const MAX_LAUNCH_NANOS: f64 = 20e6;
/// Samples of shared memory: number and maximum duration.
const SAMPLE_COUNT: u32 = 4;
const SAMPLE_TIME: Duration = Duration::from_millis(60);
/// Continuous load: lead-in that is not counted, counted time, and minimum duration of a window.
const LOAD_LEAD_IN: Duration = Duration::from_millis(400);
const LOAD_TIME: Duration = Duration::from_secs(1);
const MIN_LOAD_WINDOW: Duration = Duration::from_millis(50);
/// Time limit for repeated rounds, since the case has a timeout.
const RECHECK_TIMEOUT: Duration = Duration::from_secs(60);

impl PeakProbe<'_> {
    fn platform(&self) -> &'static dyn Platform {
        platforms::for_device(self.device)
    }

    fn probing(&self) -> Result<&'static dyn Probing, Failure> {
        self.platform().require_probing(self.device)
    }

    /// False on simulated devices, which have nothing to measure.
    pub fn is_supported(&self) -> bool {
        !self.platform().is_simulated()
    }

    /// Peaks of this device without any value.
    pub fn empty_peaks(&self) -> DevicePeaks {
        let (device, driver) = (self.facts.identity.clone(), self.facts.driver.clone());
        DevicePeaks { device, driver, policy: self.policy.clone(), ..DevicePeaks::default() }
    }

    /// Bandwidth of memory far larger than the cache: the faster of read and copy in each sample.
    pub fn measure_memory(&mut self) -> Result<RateSamples, String> {
        let (bytes, sets) = self.cache_exceeding_buffers().map_err(|error| error.to_string())?;
        // Two sizes, since physical page placement affects the bandwidth; the better one counts.
        let sizes = if self.shares_memory() && sets == 1 { vec![bytes / 2, bytes] } else { vec![bytes] };
        self.measure_traffic(&sizes, sets)
    }

    /// Bandwidth of a buffer of a quarter of the cache, and on processors also of an eighth, which may be faster.
    pub fn measure_cache(&mut self) -> Result<RateSamples, String> {
        let bytes = (self.facts.cache_bytes / 4).clamp(1 << 20, MAX_CACHED_BYTES);
        let sizes = if self.shares_memory() { vec![bytes / 2, bytes] } else { vec![bytes] };
        self.measure_traffic(&sizes, 1)
    }

    /// The fastest of reads and copies at these sizes, sample by sample. A device with dedicated memory needs one
    /// sample.
    fn measure_traffic(&mut self, sizes: &[u64], sets: u32) -> Result<RateSamples, String> {
        let mut best = Err("no probe available".to_owned());
        for (kind, &bytes) in
            [MemoryAccess::Read, MemoryAccess::Copy].iter().flat_map(|kind| sizes.iter().map(move |b| (kind, b)))
        {
            let rates = self.memory_probe(*kind, bytes, sets).and_then(|(mut mover, moved)| {
                let times = if self.shares_memory() {
                    self.sample_times(&mut mover)?
                } else {
                    vec![self.fastest_window(&mut mover)?]
                };
                Ok(times.into_iter().map(|nanos| moved / nanos).collect::<Vec<f64>>())
            });
            best = match (best, rates) {
                (Ok(known), Ok(new)) => Ok(elementwise_max(known, &new)),
                (Err(_), new) => new.map_err(|error| error.to_string()),
                (known, Err(_)) => known,
            };
        }
        Ok(best?.into_iter().collect())
    }

    /// Opens a memory probe; returns it with the bytes per launch.
    fn memory_probe(&mut self, kind: MemoryAccess, bytes: u64, sets: u32) -> Result<(ProbeWork, f64), Failure> {
        let mut probes = self.probing()?.probes(self.device, self.machines)?;
        let mut probe = match kind {
            MemoryAccess::Read => probes.read(bytes, sets)?,
            MemoryAccess::Copy => probes.copy(bytes, sets)?,
        };
        probe.check()?;
        let moved = probe.bytes() as f64;
        Ok((ProbeWork(probe), moved))
    }

    /// Peak of square matmuls in TFLOP/s, the fastest of several sizes.
    pub fn measure_matmul(&mut self, kind: MatmulPrecision) -> Result<GemmPeak, String> {
        self.check_may_tune()?;
        let trials = self.platform().defaults(self.facts.software);
        let mut best = Err("no probe available".to_owned());
        let mut sizes = trials.peak_matmul_sizes.iter().copied().peekable();
        while let Some(size) = sizes.next() {
            let start = Instant::now();
            let rate = square(size).and_then(|form| {
                let nanos = self.fastest_time(kind, form, Self::fastest_window)?;
                Ok((rate(form, nanos), form))
            });
            let next_nanos = rate
                .as_ref()
                .ok()
                .zip(sizes.peek())
                .and_then(|((rate, _), &next)| Some(square(next).ok()?.flops() as f64 / rate / 1e3));
            best = faster(best, rate);
            let is_too_long = |nanos| !self.platform().is_synchronous() && nanos > MAX_LAUNCH_NANOS;
            if start.elapsed() > trials.max_matmul_time || next_nanos.is_none_or(is_too_long) {
                break;
            }
        }
        let (window_rate, form) = best?;
        let burst_rate = if self.platform().is_synchronous() {
            window_rate
        } else {
            rate(form, self.fastest_time(kind, form, Self::fastest_burst).map_err(|error| error.to_string())?)
        };
        let sustained = self.sustained_rate(kind, form)?;
        Ok(GemmPeak { burst: window_rate.max(burst_rate).max(sustained), sustained })
    }

    /// Precisions that the device supports.
    pub fn supported_precisions(&mut self) -> Vec<MatmulPrecision> {
        const SMALL: u64 = 256;
        let dtypes = self.platform().defaults(self.facts.software).dtypes;
        let has = |kind: &MatmulPrecision| match (kind.dtype(), square(SMALL)) {
            (Some(dtype), _) => dtypes.contains(&dtype),
            (None, Ok(form)) => self
                .probing()
                .is_ok_and(|probing| probing.extra_matmul(*kind, form, self.device, self.machines).is_some()),
            (None, Err(_)) => false,
        };
        MatmulPrecision::ALL.into_iter().filter(has).collect()
    }

    /// Minimum and maximum seconds to measure memory, cache and matmuls of these precisions, without autotuning.
    pub fn predicted_seconds(&self, kinds: &[MatmulPrecision]) -> (f64, f64) {
        let Ok(probing) = self.probing() else { return (0.0, 0.0) };
        let sizes = self.platform().defaults(self.facts.software).peak_matmul_sizes.len();
        let matmuls = (kinds.len() * probing.matmul_implementations().len()) as f64;
        let pauses = if self.platform().is_synchronous() { Duration::ZERO } else { BURST_COUNT * BURST_PAUSE };
        let (load, quick) = ((LOAD_LEAD_IN + LOAD_TIME).as_secs_f64(), quick_options());
        // Reads and copies of one or two sizes, in memory and in the cache.
        let traffic = if self.shares_memory() { 8 * SAMPLE_COUNT } else { 4 };
        let total = |sizes: usize, once: Duration| {
            let matmul = sizes as f64 * once.as_secs_f64() + pauses.as_secs_f64() + load;
            matmuls * matmul + f64::from(traffic) * once.as_secs_f64()
        };
        (total(1, quick.min_time), total(sizes, quick.max_warm_up + quick.max_time))
    }

    fn check_may_tune(&self) -> Result<(), String> {
        if !self.may_tune && self.platform().probing().is_some_and(Probing::autotunes_matmul) {
            Err(TUNING_FORBIDDEN.into())
        } else {
            Ok(())
        }
    }

    /// Rate of a matmul under continuous load, in TFLOP/s.
    pub fn sustained_rate(&mut self, kind: MatmulPrecision, form: Shape) -> Result<f64, String> {
        let nanos = self.fastest_time(kind, form, Self::sustained_time);
        Ok(rate(form, nanos.map_err(|error| error.to_string())?))
    }

    /// Time of the fastest implementation of a matmul in nanoseconds.
    fn fastest_time(
        &mut self,
        kind: MatmulPrecision,
        form: Shape,
        time: fn(&mut Self, &mut dyn Work) -> Result<f64, Failure>,
    ) -> Result<f64, Failure> {
        let mut fastest = f64::INFINITY;
        for mut product in self.open_matmuls(kind, form)? {
            fastest = fastest.min(time(self, product.as_mut())?);
        }
        Ok(fastest)
    }

    /// Opens a matmul in every implementation that serves as probe and supports it.
    fn open_matmuls(&mut self, kind: MatmulPrecision, form: Shape) -> Result<Vec<Box<dyn Work>>, Failure> {
        let probing = self.probing()?;
        if let Some(product) = probing.extra_matmul(kind, form, self.device, self.machines) {
            return Ok(vec![product?]);
        }
        let dtype = kind.dtype().ok_or_else(|| format!("no {kind} matmul on this device"))?;
        let (mut products, mut failed): (Vec<Box<dyn Work>>, _) = (Vec::new(), None);
        let problem = Problem { model: "linear".parse()?, shape: form, dtype, seed: 1 };
        let tensors = problem.tensors();
        for implementation in probing.matmul_implementations() {
            let setup = Setup { implementation, device: self.device, sets: 1 };
            match open(&problem, &tensors, &QuantConfig::unquantized(dtype), setup, self.machines) {
                Ok(workload) => products.push(Box::new(TimedWorkload(workload))),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if products.is_empty() => Err(error.into()),
            _ => Ok(products),
        }
    }

    /// Bytes of a buffer and number of buffers that exceed the cache of the device.
    fn cache_exceeding_buffers(&self) -> Result<(u64, u32), Failure> {
        let limit = self.platform().defaults(self.facts.software).max_buffer_bytes;
        Ok(self.probing()?.cache_exceeding_buffers(self.facts.cache_bytes, limit))
    }

    /// True if other processes may use the same memory.
    pub fn shares_memory(&self) -> bool {
        self.platform().shares_memory(self.facts.software)
    }

    /// Opens matmuls with about the FLOPs of a case.
    fn open_matmul_probes(
        &mut self,
        kinds: &[MatmulPrecision],
        own: Option<Shape>,
        operations: f64,
    ) -> Result<Vec<OpenProbe>, String> {
        self.check_may_tune()?;
        let forms = probe_shapes(own, operations, self.platform().defaults(self.facts.software).max_matmul_size);
        let (mut rivals, mut failed) = (Vec::new(), None);
        for (kind, form) in kinds.iter().flat_map(|kind| forms.iter().map(move |form| (*kind, *form))) {
            // Not every library supports every shape.
            match self.open_matmuls(kind, form) {
                Ok(products) => rivals.extend(products.into_iter().map(|work| OpenProbe {
                    limit: Limit::Matmul(kind),
                    shape: Some(form),
                    work,
                    amount: form.flops() as f64,
                })),
                Err(error) => failed = Some(error.to_string()),
            }
        }
        if rivals.is_empty() { Err(failed.unwrap_or_default()) } else { Ok(rivals) }
    }

    /// Opens reads and copies far larger than the cache.
    fn open_memory_probes(&mut self) -> Result<Vec<OpenProbe>, String> {
        let (bytes, sets) = self.cache_exceeding_buffers().map_err(|error| error.to_string())?;
        let rival = |kind| {
            let (mover, amount) = self.memory_probe(kind, bytes, sets)?;
            Ok(OpenProbe { limit: Limit::Memory, shape: None, work: Box::new(mover), amount })
        };
        [MemoryAccess::Read, MemoryAccess::Copy]
            .into_iter()
            .map(rival)
            .collect::<Result<_, Failure>>()
            .map_err(|e| e.to_string())
    }

    /// Time per launch in the fastest window of each of several samples, in nanoseconds. Other load may vary between
    /// samples.
    fn sample_times(&mut self, work: &mut dyn Work) -> Result<Vec<f64>, Failure> {
        work.launch()?;
        work.synchronize()?;
        let setup = self.platform().probe_setup(self.device)?;
        let (mut stopwatch, _) = stopwatch(Regime::DeviceHot, setup, self.machines, work)?;
        let mut look = || {
            std::thread::sleep(BURST_PAUSE);
            if stopwatch.overhead() == Overhead::Included {
                return Ok(time_one(work, stopwatch.as_mut(), &quick_options())?.scatter.values.min);
            }
            // Memory probes take milliseconds per launch, so a sample contains few launches.
            let (start, mut shortest) = (Instant::now(), f64::INFINITY);
            while start.elapsed() < SAMPLE_TIME {
                let launches = stopwatch.launch_multiple();
                let nanos = stopwatch.window(work, launches)?.resolve()?;
                if nanos > 0 {
                    shortest = shortest.min(nanos as f64 / f64::from(launches));
                }
            }
            if shortest.is_finite() { Ok(shortest) } else { Err("the stopwatch measured no time".into()) }
        };
        (0..SAMPLE_COUNT).map(|_| look()).collect()
    }

    /// Median time per launch under continuous load, in nanoseconds, as limited by heat and power. With shared memory,
    /// the load is divided into samples, since other processes may disturb some of them.
    fn sustained_time(&mut self, work: &mut dyn Work) -> Result<f64, Failure> {
        work.launch()?;
        work.synchronize()?;
        let setup = self.platform().probe_setup(self.device)?;
        let (mut stopwatch, _) = stopwatch(Regime::DeviceHot, setup, self.machines, work)?;
        let (mut launches, mut windows, start) = (stopwatch.launch_multiple(), Vec::new(), Instant::now());
        while start.elapsed() < LOAD_LEAD_IN + LOAD_TIME || windows.is_empty() {
            let window_start = start.elapsed();
            let nanos = stopwatch.window(work, launches)?.resolve()? as f64 / f64::from(launches);
            if window_start >= LOAD_LEAD_IN {
                windows.push(nanos);
            } else if start.elapsed() - window_start < MIN_LOAD_WINDOW {
                // The overhead of the stopwatch is negligible for windows of this duration.
                launches = launches.saturating_mul(2);
            }
        }
        let parts = if self.shares_memory() { SAMPLE_COUNT as usize } else { 1 };
        let rates: RateSamples = windows
            .chunks(windows.len().div_ceil(parts))
            .filter_map(median)
            .filter(|nanos| *nanos > 0.0)
            .map(f64::recip)
            .collect();
        Ok(rates.peak().ok_or("the stopwatch measured no time")?.recip())
    }

    /// Time per launch in the fastest window, in nanoseconds.
    fn fastest_window(&mut self, work: &mut dyn Work) -> Result<f64, Failure> {
        let mut stopwatch = self.primed_stopwatch(work)?;
        Ok(time_one(work, stopwatch.as_mut(), &quick_options())?.scatter.values.min)
    }

    /// Time per launch in the fastest of several short bursts, in nanoseconds; infinite if the stopwatch has a fixed
    /// cost. Under load a GPU lowers its clock to stay within its power limit; a case with pauses may run at a higher
    /// clock.
    fn fastest_burst(&mut self, work: &mut dyn Work) -> Result<f64, Failure> {
        let mut shortest = f64::INFINITY;
        let mut stopwatch = self.primed_stopwatch(work)?;
        for _ in 0..BURST_COUNT {
            std::thread::sleep(BURST_PAUSE);
            let launches = BURST_LAUNCHES.next_multiple_of(stopwatch.launch_multiple());
            let nanos = stopwatch.window(work, launches)?.resolve()? as f64;
            if stopwatch.overhead() == Overhead::Excluded && nanos > 0.0 {
                shortest = shortest.min(nanos / f64::from(launches));
            }
        }
        Ok(shortest)
    }

    /// Runs the work a few times and returns a stopwatch for it.
    fn primed_stopwatch(&mut self, work: &mut dyn Work) -> Result<Box<dyn Stopwatch>, Failure> {
        for _ in 0..3 {
            work.launch()?;
        }
        work.synchronize()?;
        let setup = self.platform().probe_setup(self.device)?;
        Ok(stopwatch(Regime::DeviceHot, setup, self.machines, work)?.0)
    }
}

fn quick_options() -> Options {
    Options {
        min_windows: 15,
        min_time: Duration::from_millis(100),
        max_time: Duration::from_millis(400),
        warm_up: Duration::from_millis(50),
        max_warm_up: Duration::from_millis(400),
        ..Options::default()
    }
}

/// Options for a case interleaved with several probes, each possibly long; an interval needs at least six rounds.
fn interleaved_options() -> Options {
    Options { precision: 0.02, max_time: Duration::from_secs(1), ..quick_options() }
}

impl ProbeComparer for CaseRecheck<'_, '_> {
    fn compare(&mut self, over: &[Limit]) -> Result<Vec<ProbeComparison>, String> {
        let amount = if over.contains(&Limit::Memory) { self.bytes } else { self.operations };
        let mut rivals = match self.open_probes.take() {
            Some(rivals) if rivals.limits == over => rivals,
            _ => self.open(over)?,
        };
        if rivals.opened_at.elapsed() > RECHECK_TIMEOUT {
            return Err(format!("no two interleaved rounds agreed within {} s", RECHECK_TIMEOUT.as_secs()));
        }
        let shares = self.compare_with(&mut rivals.probes, amount);
        self.open_probes = Some(rivals);
        shares.map_err(|error| error.to_string())
    }

    fn sustained_rate(&mut self, kind: MatmulPrecision, form: Shape) -> Result<f64, String> {
        self.open_probes = None;
        self.probe.sustained_rate(kind, form)
    }

    fn shares_memory(&self) -> bool {
        self.probe.shares_memory()
    }
}

impl CaseRecheck<'_, '_> {
    fn open(&mut self, over: &[Limit]) -> Result<OpenProbes, String> {
        let all = if over.contains(&Limit::Memory) {
            self.probe.open_memory_probes()?
        } else {
            let kinds: Vec<MatmulPrecision> = over.iter().filter_map(|limit| limit.matmul_precision()).collect();
            self.probe.open_matmul_probes(&kinds, self.shape, self.operations)?
        };
        Ok(OpenProbes { limits: over.to_vec(), probes: all, opened_at: Instant::now() })
    }

    /// Compares the case with each probe by the work per launch.
    fn compare_with(&mut self, rivals: &mut [OpenProbe], case: f64) -> Result<Vec<ProbeComparison>, Failure> {
        let mut clocks = Vec::with_capacity(rivals.len());
        for rival in rivals.iter_mut() {
            rival.work.launch()?;
            rival.work.synchronize()?;
            let setup = self.probe.platform().probe_setup(self.probe.device)?;
            clocks.push(stopwatch(Regime::DeviceHot, setup, self.probe.machines, rival.work.as_mut())?.0);
        }
        let mut arms = vec![Arm::new(self.work, self.stopwatch)];
        let probes = rivals.iter_mut().zip(&mut clocks);
        arms.extend(probes.map(|(rival, clock)| Arm::new(rival.work.as_mut(), clock.as_mut()).against(0)));
        let mut measured = measure(&mut arms, &interleaved_options(), &mut NullObserver).into_iter();
        measured.next().ok_or("no interleaved measurement")??;
        rivals.iter().zip(measured).map(|(rival, measured)| rival.comparison(case, &measured?)).collect()
    }
}

impl OpenProbe {
    /// Comparison of a case, with `case` work per launch, with this probe.
    fn comparison(&self, case: f64, measured: &Measurement) -> Result<ProbeComparison, Failure> {
        let comparison = measured.comparison.ok_or("no interleaved measurement")?;
        let work_ratio = case / self.amount;
        // Converts to GB/s or TFLOP/s.
        let unit = if self.limit == Limit::Memory { 1.0 } else { 1e3 };
        Ok(ProbeComparison {
            limit: self.limit,
            shape: self.shape,
            ratio: work_ratio / comparison.ratio,
            lo: comparison.hi.filter(|_| comparison.sound).map(|hi| work_ratio / hi),
            rate: self.amount / measured.scatter.values.min / unit,
        })
    }
}

/// TFLOP/s of a matmul.
fn rate(form: Shape, nanos: f64) -> f64 {
    form.flops() as f64 / nanos / 1e3
}

fn square(size: u64) -> Result<Shape, Failure> {
    Ok(Shape::new(size, size, size)?)
}

/// The higher rate with its shape, or the last error.
fn faster(known: Result<(f64, Shape), String>, new: Result<(f64, Shape), Failure>) -> Result<(f64, Shape), String> {
    match (known, new) {
        (Ok(known), Ok(new)) => Ok(if new.0 > known.0 { new } else { known }),
        (Ok(known), Err(_)) => Ok(known),
        (Err(_), new) => new.map_err(|error| error.to_string()),
    }
}

/// Elementwise maximum.
fn elementwise_max(known: Vec<f64>, new: &[f64]) -> Vec<f64> {
    known.into_iter().zip(new).map(|(known, &new)| known.max(new)).collect()
}

#[derive(Clone, Copy)]
enum MemoryAccess {
    Read,
    Copy,
}
