//! How the checks measure, and what an interval lets them say.

use super::rig::{Pair, Rig};
use calorimeter_timing::{Across, Arm, Comparison, Estimate, Failure, Measurement, Observer, Options, Quiet, measure};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Whether a check holds, absent where nobody can say, and the figure or the reason.
pub type CheckResult = Result<(Option<bool>, String), Failure>;

pub fn options() -> Options {
    Options {
        precision: 0.003,
        warm_up: Duration::from_millis(50),
        max_warm_up: Duration::from_millis(500),
        min_time: Duration::from_millis(100),
        max_time: Duration::from_millis(1000),
        window: Duration::from_millis(2),
        ..Options::default()
    }
}

pub fn alone(pair: &mut Pair) -> Result<Estimate, Failure> {
    Ok(watched(vec![pair], 0, &mut Quiet)?.remove(0).time)
}

/// The first compared with each of the others, all in alternation: what drifts hits them alike.
pub fn together(pairs: Vec<&mut Pair>, seed: u64) -> Result<Vec<Comparison>, Failure> {
    let measured = watched(pairs, seed, &mut Quiet)?.into_iter().skip(1);
    measured.map(|one| one.comparison.ok_or_else(|| "the two were not compared".into())).collect()
}

pub fn beside(base: &mut Pair, other: &mut Pair, seed: u64) -> Result<Comparison, Failure> {
    Ok(together(vec![base, other], seed)?.remove(0))
}

/// All in alternation, the first one everybody's baseline, with somebody who looks at the device's sensors.
pub fn watched(pairs: Vec<&mut Pair>, seed: u64, observer: &mut dyn Observer) -> Result<Vec<Measurement>, Failure> {
    let mut arms: Vec<Arm<'_>> = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let arm = Arm::new(pair.work.as_mut(), pair.stopwatch.as_mut());
        arms.push(if arms.is_empty() { arm } else { arm.against(0) });
    }
    let options = Options { seed, ..options() };
    measure(&mut arms, &options, observer).into_iter().map(|one| one.map_err(Failure::from)).collect()
}

/// How many steps take about as long as wanted.
pub fn steps(rig: &mut dyn Rig) -> Result<u64, Failure> {
    const GUESS: u64 = 20_000;
    let took = alone(&mut rig.spin(GUESS)?)?.median;
    Ok(((GUESS as f64 * rig.spin_nanos() / took.max(1.0)) as u64).max(1_000))
}

/// Whether a figure that should be 1 is, within a tolerance; nobody can say where its interval reaches beyond both.
pub fn is_one(lo: f64, hi: f64, tolerance: f64) -> Option<bool> {
    lies_within(lo, hi, 1.0 / (1.0 + tolerance)..=1.0 + tolerance)
}

/// Whether a figure lies within a range; nobody can say where its interval lies partly there.
pub fn lies_within(lo: f64, hi: f64, range: RangeInclusive<f64>) -> Option<bool> {
    if range.contains(&lo) && range.contains(&hi) {
        Some(true)
    } else if lo > *range.end() || hi < *range.start() {
        Some(false)
    } else {
        None
    }
}

/// An answer with its figure, which says so if the machine scatters too much for one.
pub fn answer(holds: Option<bool>, found: String) -> (Option<bool>, String) {
    (holds, if holds.is_none() { format!("{found}: too noisy to tell") } else { found })
}

/// The ends of a comparison's interval; a point where there is none.
pub fn ends(compared: &Comparison) -> (f64, f64) {
    (compared.lo.unwrap_or(compared.ratio), compared.hi.unwrap_or(compared.ratio))
}

/// Whether several looks at a figure that should be 1 agree on that, and how to tell of it.
pub fn looks_are_one(looks: &[f64], tolerance: f64) -> (Option<bool>, String) {
    let Some(Across { mean, lo, hi, .. }) = Across::of(looks) else { return (None, "there are no figures".into()) };
    answer(is_one(lo, hi, tolerance), format!("{mean:.4}, 95 % within {lo:.4} and {hi:.4}"))
}

/// All of several answers: one that is wrong decides, and one that is open leaves the whole open.
pub fn all(answers: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let answers: Vec<Option<bool>> = answers.into_iter().collect();
    if answers.contains(&Some(false)) {
        return Some(false);
    }
    (!answers.contains(&None)).then_some(true)
}
