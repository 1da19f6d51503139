//! An entry with everything decided.

use super::{CompileMode, Share, Span, Timing};
use crate::mock::Rule;
use calorimeter_case::{Device, Export, Implementation, Mode, Name, Regime};
use calorimeter_recipes::{Element, Variant};
use calorimeter_timing::Options;
use calorimeter_zoo::{Subject, Task};
use std::time::Duration;

/// An entry with every default filled in.
#[derive(Debug, Clone)]
pub struct ResolvedEntry {
    /// The name that its cases carry, if one was given.
    pub name: Option<String>,
    /// What is done with the model, or the suite of the operator.
    pub mode: Mode,
    /// The model or operator.
    pub subject: Subject,
    /// It, at each of its sizes, beside the name that the size was given, such as `llama_ffn.w2` or `custom`.
    pub tasks: Vec<(Name, Task)>,
    /// The type of its numbers.
    pub element: Element,
    /// Where it runs; of a fleet, the one whose sizes these are.
    pub device: Device,
    /// The devices that work at the same time and share the sizes of the entry; empty where one was asked for.
    pub fleet: Vec<Device>,
    /// Recipes with their sparsities, in the order of the file.
    pub variants: Vec<Variant>,
    /// Whether the baseline is among them only because the others are compared with it.
    pub implied_baseline: bool,
    /// Whose kernels run.
    pub implementations: Vec<Implementation>,
    /// What its times mean.
    pub regimes: Vec<Regime>,
    /// torch's word, for the compatible CSV.
    pub compile_mode: Option<CompileMode>,
    /// Whether a trace was asked for.
    pub profiler: bool,
    /// Whether memory snapshots were asked for.
    pub memory_profiler: bool,
    /// Whether percentiles of single launches were asked for.
    pub percentiles: bool,
    /// Whether the peaks of memory were asked for.
    pub peak_memory: bool,
    /// How to measure.
    pub timing: Options,
    /// When to give up on a case.
    pub timeout: Duration,
    /// Seed of its tensors.
    pub seed: u64,
    /// What the mock device does.
    pub mock: Vec<Rule>,
    /// Where the program that the file was written for wants its results.
    pub export: Option<Export>,
}

impl ResolvedEntry {
    /// How many cases it makes, without making them.
    pub fn cases(&self) -> u64 {
        let lengths = [self.tasks.len(), self.regimes.len(), self.variants.len(), self.implementations.len()];
        lengths.into_iter().fold(1, |cases, length| cases.saturating_mul(length as u64))
    }

    /// Everything that was decided, as it would be written in a file; of the shapes only how many there are.
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
            precision: Some(Share(precision)),
            min_windows: Some(min_windows),
            max_windows: Some(max_windows),
            min_time: Some(Span(min_time)),
            max_time: Some(Span(max_time)),
            window: Some(Span(window)),
            warm_up: Some(Span(warm_up)),
            max_warm_up: Some(Span(max_warm_up)),
            margin: Some(Share(margin)),
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
            "timeout": Span(self.timeout),
            "seed": self.seed,
        })
    }
}
