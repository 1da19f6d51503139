//! Launching until clocks, caches and allocators have settled.

use crate::calibrate::timed;
use crate::{Arm, Failure, Options, median};
use std::time::Duration;

/// Windows whose medians are compared.
const GROUP: usize = 5;
/// Successive groups that must agree.
const AGREEING: usize = 3;
/// How closely they must agree.
const WITHIN: f64 = 0.03;

/// Runs windows until three successive groups agree, within the options' bounds; whether they agreed in the end. No other arm
/// runs meanwhile.
pub fn warm_up(arm: &mut Arm<'_>, launches: u32, options: &Options) -> Result<bool, Failure> {
    let start = arm.stopwatch.now();
    let elapsed = |arm: &Arm<'_>| arm.stopwatch.now().saturating_sub(start);
    let mut medians: Vec<f64> = Vec::new();
    if options.max_warm_up == Duration::ZERO || options.warm_up == Duration::ZERO {
        return Ok(true);
    }
    loop {
        let mut group = [0.0; GROUP];
        for time in &mut group {
            *time = timed(arm.stopwatch, arm.work, launches)? as f64;
            if elapsed(arm) >= options.max_warm_up {
                return Ok(false);
            }
        }
        medians.extend(median(&group));
        if elapsed(arm) >= options.warm_up && settled(&medians) {
            return Ok(true);
        }
    }
}

fn settled(medians: &[f64]) -> bool {
    let Some(last) = medians.len().checked_sub(AGREEING).map(|from| &medians[from..]) else { return false };
    let (min, max) = last.iter().fold((f64::INFINITY, 0.0f64), |(min, max), &m| (min.min(m), max.max(m)));
    max <= min * (1.0 + WITHIN)
}
