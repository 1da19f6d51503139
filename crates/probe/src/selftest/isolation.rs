//! Check that a time does not depend on the interleaved work.

use super::measurement::{CheckResult, compare_pair, measure_observed, samples_equal_one, spin_steps};
use super::rig::Rig;

/// Repetitions of each ratio; their scatter covers the drift of the machine.
const REPETITIONS: u32 = 5;
/// Arms that the checks of this file measure: per repetition one in isolation and three interleaved, and two pairs.
pub(super) const COMPARED_ARMS: u32 = REPETITIONS * (1 + 3 + 2 * 2);

/// A chain in isolation, and interleaved with heavier and lighter work.
pub(super) fn isolation(rig: &mut dyn Rig) -> CheckResult {
    let steps = spin_steps(rig)?;
    let mut heavy = rig.heavy_work()?;
    let mut light = rig.spin(steps / 8)?;
    let mut ratios = Vec::new();
    for seed in 0..u64::from(REPETITIONS) {
        let mut chain = rig.spin(steps)?;
        let isolated = measure_observed(vec![&mut chain], seed, rig.observer().as_mut())?.remove(0).time.median;
        let arms = vec![&mut chain, &mut heavy, &mut light];
        let interleaved = measure_observed(arms, seed, rig.observer().as_mut())?.remove(0).time.median;
        ratios.push(interleaved / isolated);
    }
    Ok(samples_equal_one(&ratios, 0.02))
}

/// Two chains compared in both orders: the product of the two ratios is 1.
pub(super) fn order(rig: &mut dyn Rig) -> CheckResult {
    let steps = spin_steps(rig)?;
    let longer = steps + steps / 10;
    let mut products = Vec::new();
    for seed in 0..u64::from(REPETITIONS) {
        let mut ratio = |first: u64, second: u64| {
            let mut first = rig.spin(first)?;
            compare_pair(&mut first, &mut rig.spin(second)?, seed).map(|compared| compared.ratio)
        };
        products.push(ratio(steps, longer)? * ratio(longer, steps)?);
    }
    Ok(samples_equal_one(&products, 0.01))
}
