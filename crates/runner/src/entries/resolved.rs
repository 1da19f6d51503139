//! Entry with all defaults filled in.

use super::{CompileMode, Fraction, HumanDuration, Timing};
use crate::mock::MockRule;
use calorimeter_case::{Device, Export, Implementation, Mode, Name, Regime};
use calorimeter_recipes::{Element, RecipeVariant};
use calorimeter_timing::Options;
use calorimeter_zoo::{Subject, Task};
use std::time::Duration;

/// Entry with all defaults filled in.
#[derive(Debug, Clone)]
pub struct ResolvedEntry {
    /// Name of its cases, if any.
    pub name: Option<String>,
    /// Mode of the model, or suite of the operator.
    pub mode: Mode,
    /// Model, operator or external program.
    pub subject: Subject,
    /// Task at each size, with the name of the size, such as `llama_ffn.w2` or `custom`.
    pub tasks: Vec<(Name, Task)>,
    /// Dtype.
    pub element: Element,
    /// Device; for a fleet, the one that determines the sizes.
    pub device: Device,
    /// Devices that work concurrently and share the sizes; empty for a single device.
    pub fleet: Vec<Device>,
    /// Recipes with their sparsities, in file order.
    pub variants: Vec<RecipeVariant>,
    /// True if the baseline was added only as the reference of the others.
    pub implied_baseline: bool,
    /// Implementations.
    pub implementations: Vec<Implementation>,
    /// Timing modes.
    pub regimes: Vec<Regime>,
    /// Compile mode of torch, for the compatible CSV.
    pub compile_mode: Option<CompileMode>,
    /// Write traces.
    pub profiler: bool,
    /// Write memory snapshots.
    pub memory_profiler: bool,
    /// Measure percentiles of single launches.
    pub percentiles: bool,
    /// Measure peak memory.
    pub peak_memory: bool,
    /// Measurement options.
    pub timing: Options,
    /// Time limit of a case.
    pub timeout: Duration,
    /// Seed of inputs and weights.
    pub seed: u64,
    /// Rules of the mock device.
    pub mock: Vec<MockRule>,
    /// Output folders for the formats of accelerator-microbenchmarks.
    pub export: Option<Export>,
}

impl ResolvedEntry {
    /// Number of cases, computed without expanding them.
    pub fn case_count(&self) -> u64 {
        let lengths = [self.tasks.len(), self.regimes.len(), self.variants.len(), self.implementations.len()];
        lengths.into_iter().fold(1, |cases, length| cases.saturating_mul(length as u64))
    }

    /// Resolved options in the syntax of a file, with the number of shapes in place of the shapes.
    pub fn describe(&self) -> serde_json::Value {
        let Options {
            precision,
            min_windows,
            max_windows,
            min_time,
            max_time,
            window,
            warm_up,
            max_warm_up,
            margin,
            ..
        } = self.timing;
        let timing = Timing {
            precision: Some(Fraction(precision)),
            min_windows: Some(min_windows),
            max_windows: Some(max_windows),
            min_time: Some(HumanDuration(min_time)),
            max_time: Some(HumanDuration(max_time)),
            window: Some(HumanDuration(window)),
            warm_up: Some(HumanDuration(warm_up)),
            max_warm_up: Some(HumanDuration(max_warm_up)),
            margin: Some(Fraction(margin)),
        };
        serde_json::json!({
            "name": self.name,
            "mode": self.mode,
            "model": self.subject.to_string(),
            "shapes": self.tasks.len(),
            "dtype": self.element,
            "device": self.device.to_string(),
            "recipes": self.variants.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "implementations": self.implementations.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "regimes": self.regimes,
            "timing": timing,
            "timeout": HumanDuration(self.timeout),
            "seed": self.seed,
        })
    }
}
