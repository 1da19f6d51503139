//! How much two measurements of the same thing differ here: A/A comparisons, and the margin that follows from them.

use crate::cache;
use crate::devices::{self, DiscoveredDevice};
use crate::entries::{Entry, Origin, Size, Wanted};
use crate::mock::Rule;
use crate::noise_floor::{Noise, path};
use crate::platforms;
use crate::run::{Request, RunError};
use crate::worker::{AssignedCase, Assignment, Event, Executor, Listener};
use calorimeter_case::record::Speedup;
use calorimeter_recipes::{Dtype, Element, Recipe};
use calorimeter_shapes::Shape;
use calorimeter_sinks::{Case, Record, Status};
use calorimeter_timing::{Options, Verdict};
use calorimeter_zoo::Implementation;
use std::time::Duration;

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum NoiseError {
    /// It could not be planned or run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The computation failed.
    #[error("{0}")]
    Failed(String),
    /// It was interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// The margin below which no difference is told apart.
const LEAST_MARGIN: f64 = 0.02;

/// Compares a matrix product with itself so many times; `show` hears of each comparison.
pub fn measure(
    wanted: Wanted,
    comparisons: u32,
    executor: &mut dyn Executor,
    interrupted: &dyn Fn() -> bool,
    show: &mut dyn FnMut(&Speedup),
) -> Result<Noise, NoiseError> {
    let found = devices::present(devices::here().choose(wanted).map_err(RunError::from)?).map_err(RunError::from)?;
    let prepared = Request { entries: vec![entry(&found)?], ..Request::default() }.prepare()?;
    let case = prepared.plan().groups()[0].arms()[0].case().clone();
    let (mut speedups, mut stopwatch) = (Vec::new(), String::new());
    for index in 0..comparisons {
        let mut comparison = Comparison { records: Vec::new(), interrupted };
        let ran = executor.run(&twice(&case, index, &found), &found, TIMEOUT, &mut comparison);
        ran.map_err(RunError::from)?;
        if interrupted() {
            return Err(NoiseError::Interrupted);
        }
        let wrong = comparison.records.iter().find(|record| record.outcome.status != Status::Ok);
        let speedup = comparison.records.iter().find_map(|record| record.speedup.clone());
        let Some(speedup) = speedup.filter(|_| wrong.is_none()) else {
            let reason = wrong.and_then(|record| record.outcome.reason.clone());
            return Err(NoiseError::Failed(reason.unwrap_or_else(|| "the two were not compared".into())));
        };
        stopwatch =
            comparison.records.iter().find_map(|record| record.execution.stopwatch.clone()).unwrap_or(stopwatch);
        show(&speedup);
        speedups.push(speedup);
    }
    let noise = Noise {
        device: found.device.to_string(),
        identity: found.identity,
        driver: found.driver,
        case: case.id.to_string(),
        stopwatch,
        measured: crate::run::now().to_rfc3339(),
        ..summary(&speedups)
    };
    if let Some(path) = path(&noise.identity) {
        cache::keep(&path, &noise);
    }
    Ok(noise)
}

const TIMEOUT: Duration = Duration::from_secs(300);

/// The figures of comparisons of a thing with itself.
fn summary(speedups: &[Speedup]) -> Noise {
    let share = |wanted: &dyn Fn(&Speedup) -> bool| {
        speedups.iter().filter(|speedup| wanted(speedup)).count() as f64 / speedups.len().max(1) as f64
    };
    let mut off: Vec<f64> = speedups.iter().map(|speedup| speedup.ratio.ln().abs().exp() - 1.0).collect();
    off.sort_unstable_by(f64::total_cmp);
    let floor = off.get((off.len() * 95).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0.0);
    let is = |verdict: Verdict| move |speedup: &Speedup| speedup.verdict == verdict.to_string();
    Noise {
        comparisons: speedups.len() as u32,
        false_verdict_rate: share(&is(Verdict::Faster)) + share(&is(Verdict::Slower)),
        interval_miss_rate: share(&|speedup| {
            speedup.lo.is_some_and(|lo| lo > 1.0) || speedup.hi.is_some_and(|hi| hi < 1.0)
        }),
        same_rate: share(&is(Verdict::Same)),
        floor,
        margin: LEAST_MARGIN.max(2.0 * floor),
        ..Noise::default()
    }
}

/// The product that is compared with itself: large enough to be measured well, small enough for any device.
fn entry(found: &DiscoveredDevice) -> Result<Entry, NoiseError> {
    let size = platforms::of(found.device).trials(found.software).noise_product;
    let failed = |error: &dyn std::fmt::Display| NoiseError::Failed(error.to_string());
    let origin = Origin::command("noise");
    let shape = Shape::new(size, size, size).map_err(|error| failed(&error))?;
    let model = "linear".parse().map_err(|error| failed(&error))?;
    Ok(Entry {
        element: Element::Float(Dtype::F32),
        recipes: vec![Recipe::BASELINE],
        device: Some(Wanted::This(found.device)),
        implementations: Some(vec![Implementation::Eager]),
        ..Entry::new(origin, model, vec![Size::custom(shape.into())])
    })
}

/// The case and its twin, compared.
fn twice(case: &Case, index: u32, found: &DiscoveredDevice) -> Assignment {
    let named = |name: char| Case { id: format!("{}#{name}{index}", case.id).into(), ..case.clone() };
    let sets = found.sets(case.regime, case.bytes.unwrap_or(0));
    let (first, second) = (named('a'), named('b'));
    let against = Some(first.id.clone());
    let cases = vec![
        AssignedCase { case: first, against: None, sets, kernels: None },
        AssignedCase { case: second, against, sets, kernels: None },
    ];
    // Neither an earlier look at the noise nor a long warm-up: what counts is how two arms in one process differ.
    let timing = Options {
        margin: LEAST_MARGIN,
        warm_up: Duration::from_millis(50),
        min_time: Duration::from_millis(100),
        max_time: Duration::from_secs(1),
        max_warm_up: Duration::from_millis(500),
        seed: u64::from(index),
        ..Options::default()
    };
    // What the mock device does here: noise of a percent.
    let mock = vec![Rule { noise: 0.01, ..Rule::default() }];
    let (device, seed) = (found.facts(), u64::from(index));
    Assignment { cases, device, folder: None, timing: Some(timing), seed, mock }
}

/// Keeps the records of one comparison.
struct Comparison<'a> {
    records: Vec<Record>,
    interrupted: &'a dyn Fn() -> bool,
}

impl Listener for Comparison<'_> {
    fn hear(&mut self, event: Event) {
        if let Event::Ended(record) = event {
            self.records.push(*record);
        }
    }

    fn interrupted(&self) -> bool {
        (self.interrupted)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_the_floor_are_counted_from_the_comparisons() {
        let one = |ratio: f64, verdict: &str| {
            let (lo, hi) = (Some(ratio - 0.005), Some(ratio + 0.005));
            Speedup { ratio, lo, hi, verdict: verdict.into(), ..Speedup::default() }
        };
        let mut speedups = vec![one(1.001, "SAME"); 16];
        speedups.extend([one(1.03, "FASTER"), one(1.0 / 1.02, "UNCLEAR"), one(0.9, "SLOWER"), one(1.0, "SAME")]);
        let noise = summary(&speedups);
        assert_eq!((noise.comparisons, noise.false_verdict_rate, noise.same_rate), (20, 0.1, 0.85));
        assert_eq!(noise.interval_miss_rate, 0.15);
        assert!((noise.floor - 0.03).abs() < 1e-12 && (noise.margin - 0.06).abs() < 1e-12, "{noise:?}");
        assert_eq!(summary(&speedups[..3]).margin, LEAST_MARGIN);
    }
}
