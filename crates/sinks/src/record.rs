//! The schema: one [`Case`] is a line of the plan, one [`Record`] is what became of it.
//!
//! Three rules hold for every field. Absent means *not measured*: an `Option` that is `None` is left out of the JSON, and
//! zero is never put in its place. JSON has no infinities and no NaN, so a float that is not finite is left out as well
//! (see [`finite`]); the SQNR of an exact result is infinite, which reads as no `sqnr_db` beside a `rel_l2` of 0.
//! Unknown fields are ignored on reading, so that a newer writer does not lock an older reader out.

use std::fmt;

pub use calorimeter_case::{Axes, Counts, FusionModel};
use serde::{Deserialize, Serialize};

use crate::memory_page::Bound;

/// What is to be measured: the identity of a case and the facts known before it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Case {
    /// Readable and unique within a run, e.g. `inference/linear/int8wo/fused/cuda:0/bf16/m1024-k1024-n1024`.
    pub id: String,
    /// `inference`, `training`, …
    pub mode: String,
    /// The name of the config entry that asked for the case; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Which computation: `linear`, `ln_linear_relu`, …
    pub workload: String,
    /// Which arithmetic: `baseline`, `int8wo`, …
    pub recipe: String,
    /// The sparsity laid over the recipe, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparsity: Option<String>,
    /// Which kernels: `eager`, `fused`, `cube`, `native`.
    pub implementation: String,
    /// The device with its index, e.g. `cuda:0`.
    pub device: String,
    /// The high-precision type, in short: `bf16`, `f16`, `f32`.
    pub dtype: String,
    /// The number type of the outputs, where that was a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_dtype: Option<String>,
    /// The name that the shape generator gave the shape, e.g. `llama_ffn.w2`.
    pub shape_name: String,
    /// The named axes, e.g. m, k and n.
    pub shape: Axes,
    /// What the time means: `device-cold`, `device-hot`, `graph`, `host-e2e`, `host-enqueue`.
    pub regime: String,
    /// Floating-point operations of one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<u64>,
    /// Bytes that one run must move at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What another program that publishes figures for this computation counts, where it counts otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Counts>,
    /// What fusing the computation should save, for patterns that are worth fusing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fusion: Option<FusionModel>,
    /// Estimate of the device memory that the case needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// A baseline that nobody listed, added because the other cases are compared with it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub implied: bool,
    /// The `torch.compile` mode of the config entry, kept for the torchao-compatible CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_mode: Option<String>,
    /// The config entry asks for a trace.
    #[serde(default, skip_serializing_if = "is_false")]
    pub profiler: bool,
    /// The config entry asks for a memory profile.
    #[serde(default, skip_serializing_if = "is_false")]
    pub memory_profiler: bool,
    /// The config entry asks for the peaks of memory alone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub peak_memory: bool,
    /// Where the program that the file was written for wants its own formats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export: Option<Export>,
}

/// What a file of accelerator-microbenchmarks says of its results, or the command line of a suite.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// The position of the case's entry among those of the run: each has files of its own.
    pub entry: u32,
    /// The folder of its table, as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csv_path: Option<String>,
    /// The folder of its `metrics_report.jsonl`, as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics_dir: Option<String>,
}

/// What became of a case: measured, or the reason why not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Record {
    /// The case, whose fields stand beside the others in the JSON object.
    #[serde(flatten)]
    pub case: Case,
    /// How it ended.
    pub status: Status,
    /// Why it is not `ok`, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the turn of the case and of those measured beside it came, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// When it was recorded, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The clock that the times were read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopwatch: Option<String>,
    /// The kernel that ran, where it can be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Kernels that ran in one run, where the clock sees them.
    #[serde(default, skip_serializing_if = "no_number")]
    pub kernel_launches: Option<f64>,
    /// Of a pattern that is worth fusing: `fused` where fewer kernels ran than unfused, else `not-fused`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fusion_state: Option<String>,
    /// What the autotuner decided for the case: the problem and the candidate that was fastest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub autotune: Vec<String>,
    /// The buffer sets that the launches go through in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
    /// The time of one run in nanoseconds.
    #[serde(default, skip_serializing_if = "Estimate::is_absent")]
    pub time_ns: Option<Estimate>,
    /// The raw measurements that `time_ns` was computed from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// Times of single launches in nanoseconds, where another program's table wants their percentiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iterations_ns: Vec<u64>,
    /// Whether the interval became as narrow as asked before the time was up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub converged: Option<bool>,
    /// The comparison with the baseline.
    #[serde(default, skip_serializing_if = "Speedup::is_absent")]
    pub speedup: Option<Speedup>,
    /// Arithmetic rate in 10¹² operations per second.
    #[serde(default, skip_serializing_if = "no_number")]
    pub tflops: Option<f64>,
    /// Memory rate in 10⁹ bytes per second.
    #[serde(default, skip_serializing_if = "no_number")]
    pub gbps: Option<f64>,
    /// Where the case stands against the machine's measured peaks.
    #[serde(default, skip_serializing_if = "Roofline::is_absent")]
    pub roofline: Option<Roofline>,
    /// How far the output is from the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Accuracy>,
    /// Bytes of the weights with their scales, as stored by the recipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_bytes: Option<u64>,
    /// Bytes of the same weights in the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_weight_bytes: Option<u64>,
    /// Time in which the host pruned and quantised the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantise_ns: Option<u64>,
    /// Peak of the device memory in use during the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// Time of the first passes, in which kernels are compiled and tuned; the warm-up comes after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prime_ns: Option<u64>,
    /// Autotuning seen while priming.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
    /// The smallest step of the stopwatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granularity_ns: Option<u64>,
    /// What the stopwatch reads for a window without launches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_window_ns: Option<u64>,
    /// Host time of enqueuing one run, the queue not being full.
    #[serde(default, skip_serializing_if = "no_number")]
    pub enqueue_ns: Option<f64>,
    /// Whether the host enqueues runs about as slowly as the device works, or more slowly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_bound: Option<bool>,
    /// How the windows scatter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scatter: Option<Scatter>,
    /// What the device reported while the case was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
    /// What went to and from the device's memory, where its counters can be read and were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// Memory in use, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// The folder of its memory profile, below the run's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_profile: Option<String>,
    /// What ran on the device, the longest first, where a trace was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelShare>,
    /// The trace of the case, below the run's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The last lines that the worker wrote to stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_tail: Option<String>,
    /// What a reader of the figure should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Record {
    /// A record of `case` with nothing measured yet; fill in the rest with struct update syntax.
    pub fn new(case: Case, status: Status) -> Record {
        Record {
            case,
            status,
            reason: None,
            started: None,
            ended: None,
            stopwatch: None,
            kernel: None,
            kernel_launches: None,
            fusion_state: None,
            autotune: Vec::new(),
            rotation: None,
            time_ns: None,
            windows: Vec::new(),
            iterations_ns: Vec::new(),
            converged: None,
            speedup: None,
            tflops: None,
            gbps: None,
            roofline: None,
            accuracy: None,
            weight_bytes: None,
            baseline_weight_bytes: None,
            quantise_ns: None,
            peak_bytes: None,
            prime_ns: None,
            tuning: None,
            granularity_ns: None,
            empty_window_ns: None,
            enqueue_ns: None,
            launch_bound: None,
            scatter: None,
            telemetry: None,
            traffic: None,
            memory: None,
            memory_profile: None,
            kernels: Vec::new(),
            trace: None,
            stderr_tail: None,
            warnings: Vec::new(),
        }
    }
}

/// How a case ended. Only `ok` has a time that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Measured, and the output was right.
    Ok,
    /// The output was wrong, so it was not timed.
    Mismatch,
    /// The recipe or workload does not exist for this implementation or device.
    Unsupported,
    /// Not run, for a reason that lies outside the case.
    Skipped,
    /// Ended with an error.
    Failed,
    /// Took longer than allowed.
    Timeout,
    /// Took its worker process with it.
    Crashed,
}

impl Status {
    /// Every status, in the order in which summaries count them.
    pub const ALL: [Status; 7] = [
        Status::Ok,
        Status::Mismatch,
        Status::Failed,
        Status::Timeout,
        Status::Crashed,
        Status::Unsupported,
        Status::Skipped,
    ];

    /// The word used in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Mismatch => "mismatch",
            Status::Unsupported => "unsupported",
            Status::Skipped => "skipped",
            Status::Failed => "failed",
            Status::Timeout => "timeout",
            Status::Crashed => "crashed",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The middle value.
    pub median: f64,
    /// Lower end of the 95 % interval.
    #[serde(default, skip_serializing_if = "no_number")]
    pub lo: Option<f64>,
    /// Upper end of the 95 % interval.
    #[serde(default, skip_serializing_if = "no_number")]
    pub hi: Option<f64>,
}

impl Estimate {
    fn is_absent(this: &Option<Estimate>) -> bool {
        no_number(&this.map(|estimate| estimate.median))
    }
}

/// One raw measurement: `launches` runs took `nanos` together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Runs inside the window.
    pub launches: u32,
    /// Nanoseconds from its opening to its closing.
    pub nanos: u64,
}

/// The comparison with another case, measured in alternation with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Speedup {
    /// The id of the case compared with.
    pub vs: String,
    /// How many times faster than that case; below 1 is slower.
    pub ratio: f64,
    /// Lower end of the interval of the ratio.
    #[serde(default, skip_serializing_if = "no_number")]
    pub lo: Option<f64>,
    /// Upper end of the interval of the ratio.
    #[serde(default, skip_serializing_if = "no_number")]
    pub hi: Option<f64>,
    /// `FASTER`, `SLOWER`, `SAME` or `INCONCLUSIVE`.
    pub verdict: String,
    /// A difference within this share of 1 is none.
    #[serde(default, skip_serializing_if = "no_number")]
    pub margin: Option<f64>,
    /// How many rounds would likely decide, where it is inconclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds_needed: Option<u32>,
}

impl Speedup {
    fn is_absent(this: &Option<Speedup>) -> bool {
        no_number(&this.as_ref().map(|speedup| speedup.ratio))
    }
}

/// The speed-ups of one recipe in one implementation over all shapes, together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteSpeedup {
    /// The recipe with its sparsity.
    pub recipe: String,
    /// Whose kernels ran.
    pub implementation: String,
    /// Where, in which type and in which regime.
    pub device: String,
    /// The type.
    pub dtype: String,
    /// What the times mean.
    pub regime: String,
    /// How many speed-ups these are.
    pub cases: u64,
    /// Their geometric mean.
    pub ratio: f64,
    /// Lower end of its 95 % interval, absent where the cases are too few for one.
    #[serde(default, skip_serializing_if = "no_number")]
    pub lo: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "no_number")]
    pub hi: Option<f64>,
}

/// Where a case stands against the machine's measured peaks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Roofline {
    /// What limits the case: `compute` or `memory`.
    pub bound: String,
    /// Percent of that limit reached.
    pub percent: f64,
    /// Percent of the compute peak.
    #[serde(default, skip_serializing_if = "no_number")]
    pub compute_percent: Option<f64>,
    /// Percent of the bandwidth peak.
    #[serde(default, skip_serializing_if = "no_number")]
    pub memory_percent: Option<f64>,
    /// The compute peak in 10¹² operations per second.
    #[serde(default, skip_serializing_if = "no_number")]
    pub peak_tflops: Option<f64>,
    /// The bandwidth peak in 10⁹ bytes per second.
    #[serde(default, skip_serializing_if = "no_number")]
    pub peak_gbps: Option<f64>,
}

impl Roofline {
    fn is_absent(this: &Option<Roofline>) -> bool {
        no_number(&this.as_ref().map(|roofline| roofline.percent))
    }
}

/// A kernel's part of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelShare {
    /// Its name.
    pub name: String,
    /// How often it ran.
    pub calls: f64,
    /// How long it ran in total, in nanoseconds.
    pub nanos: f64,
    /// Its share of the time of all kernels.
    pub share: f64,
}

/// The buffer sets of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    /// How many sets there are.
    pub sets: u32,
    /// Bytes that one run touches at least.
    pub bytes: u64,
    /// The cache that the sets together should exceed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
}

/// How the windows of a case scatter, as times per run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scatter {
    /// The shortest.
    pub min: f64,
    /// Below it are 5 % of the windows.
    pub p05: f64,
    /// Below it are 95 % of the windows.
    pub p95: f64,
    /// Median absolute deviation from the median.
    pub mad: f64,
    /// Windows more than five scaled deviations from the median.
    pub outliers: u32,
    /// Correlation of each window with the one before.
    #[serde(default, skip_serializing_if = "no_number")]
    pub autocorrelation: Option<f64>,
}

/// What the device reported while a case was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Telemetry {
    /// Where the figures come from: `nvml`, `sysfs`, …
    pub source: String,
    /// Each sample, in order.
    pub samples: Vec<TelemetrySample>,
    /// Energy of one run in joules.
    #[serde(default, skip_serializing_if = "no_number")]
    pub joules: Option<f64>,
    /// Cycles of the processor's cores in one run.
    #[serde(default, skip_serializing_if = "no_number")]
    pub cycles: Option<f64>,
    /// Instructions of one run.
    #[serde(default, skip_serializing_if = "no_number")]
    pub instructions: Option<f64>,
    /// Misses of the processor's last cache in one run.
    #[serde(default, skip_serializing_if = "no_number")]
    pub cache_misses: Option<f64>,
    /// Rounds that were measured again because the device throttled in them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated_rounds: u32,
}

/// One look at a device's sensors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TelemetrySample {
    /// The round after which it was taken, counted from 1.
    pub round: u32,
    /// Clock of the multiprocessors, or of the processor's cores, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<u32>,
    /// Clock of the memory in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_clock_mhz: Option<u32>,
    /// Power in watts.
    #[serde(default, skip_serializing_if = "no_number")]
    pub power_w: Option<f64>,
    /// Temperature in degrees Celsius.
    #[serde(default, skip_serializing_if = "no_number")]
    pub temperature_c: Option<f64>,
    /// Why the clock was held back: `power-cap`, `thermal`, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttle: Vec<String>,
}

/// Bytes of one run by the hardware counters of the device's memory: what caches served is not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Read from the memory.
    pub read_bytes: f64,
    /// Written to it.
    pub written_bytes: f64,
}

impl Traffic {
    /// Both directions together.
    pub fn bytes(&self) -> f64 {
        self.read_bytes + self.written_bytes
    }
}

/// Device memory of a case: what tensors use, what the pool has handed out, and what it holds of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Peak of the bytes asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_allocated: Option<u64>,
    /// Peak of the bytes handed out, padding included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_active: Option<u64>,
    /// Peak of the bytes held from the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_reserved: Option<u64>,
    /// Peak of the bytes asked for, those of the inputs and weights left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_above_inputs: Option<u64>,
    /// How far the peaks can be trusted.
    #[serde(default)]
    pub bound: Bound,
    /// The most that the peak in use can be, where it is a lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_at_most: Option<u64>,
    /// The baseline's peak over this one.
    #[serde(default, skip_serializing_if = "no_number")]
    pub saving: Option<f64>,
    /// How far that can be trusted: of peaks that are bounds it is a bound itself.
    #[serde(default)]
    pub saving_bound: Bound,
}

/// How far the output is from the unquantised model, and the kernel from its own reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Accuracy {
    /// Signal to quantisation noise in dB. Infinite, so left out, when the output is exact.
    #[serde(default, skip_serializing_if = "no_number")]
    pub sqnr_db: Option<f64>,
    /// L2 norm of the error over that of the reference.
    #[serde(default, skip_serializing_if = "no_number")]
    pub rel_l2: Option<f64>,
    /// The largest absolute error of one element.
    #[serde(default, skip_serializing_if = "no_number")]
    pub max_abs: Option<f64>,
    /// Cosine of the angle between output and reference.
    #[serde(default, skip_serializing_if = "no_number")]
    pub cosine: Option<f64>,
    /// Relative L2 error against the same quantised operands: the error of the kernel alone.
    #[serde(default, skip_serializing_if = "no_number")]
    pub kernel_rel_l2: Option<f64>,
}

impl Accuracy {
    /// The output equals the reference, which makes the SQNR infinite and hence absent.
    pub fn is_exact(&self) -> bool {
        self.rel_l2 == Some(0.0)
    }
}

/// Autotuning that took place while priming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuning {
    /// Nanoseconds of the priming that it was part of: almost all of them are its own.
    pub nanos: u64,
    /// How many times something was tuned.
    pub events: u64,
}

/// The one place where infinities and NaN become absent.
pub fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn no_number(value: &Option<f64>) -> bool {
    value.and_then(finite).is_none()
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn is_false(value: &bool) -> bool {
    !value
}
