//! Whether a time depends on what is measured beside it.

use super::rig::Rig;
use super::together::{CheckResult, beside, looks_are_one, steps, watched};

/// Looks at each figure: a machine changes between two of them, and their spread tells by how much.
const LOOKS: u64 = 5;

/// A chain alone, and in turns with a heavier and a lighter work.
pub fn company(rig: &mut dyn Rig) -> CheckResult {
    let steps = steps(rig)?;
    let mut heavy = rig.heavy()?;
    let mut light = rig.spin(steps / 8)?;
    let mut ratios = Vec::new();
    for seed in 0..LOOKS {
        let mut chain = rig.spin(steps)?;
        let alone = watched(vec![&mut chain], seed, rig.observer().as_mut())?.remove(0).time.median;
        let arms = vec![&mut chain, &mut heavy, &mut light];
        let in_company = watched(arms, seed, rig.observer().as_mut())?.remove(0).time.median;
        ratios.push(in_company / alone);
    }
    Ok(looks_are_one(&ratios, 0.02))
}

/// Two chains compared, and opened and compared the other way round: the product of the two ratios is 1.
pub fn order(rig: &mut dyn Rig) -> CheckResult {
    let steps = steps(rig)?;
    let longer = steps + steps / 10;
    let mut products = Vec::new();
    for seed in 0..LOOKS {
        let mut ratio = |first: u64, second: u64| {
            let mut first = rig.spin(first)?;
            beside(&mut first, &mut rig.spin(second)?, seed).map(|compared| compared.ratio)
        };
        products.push(ratio(steps, longer)? * ratio(longer, steps)?);
    }
    Ok(looks_are_one(&products, 0.01))
}
