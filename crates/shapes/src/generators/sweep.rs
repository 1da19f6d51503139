//! `small_sweep` and `sweep`: combinations of powers of two, N fastest.

use super::powers::{exponents, max_power, min_power};
use crate::parameter::{GeneratorSettings, Parameter};
use crate::{Generator, NamedShape, ShapeError};

const SMALL_MIN: Parameter = min_power(10);
const SMALL_MAX: Parameter = max_power(14);
const MIN: Parameter = min_power(8);
const MAX: Parameter = max_power(15);

pub(super) static SMALL_SWEEP: Generator = Generator {
    name: "small_sweep",
    about: "powers of two with M <= K <= N",
    parameters: &[SMALL_MIN, SMALL_MAX],
    count: |settings| {
        // Number of multisets of three exponents.
        exponents("small_sweep", settings, &SMALL_MIN, &SMALL_MAX)
            .map(|powers| powers.count() as u64)
            .map(|n| Some(n * (n + 1) * (n + 2) / 6))
    },
    shapes: |settings, _| combinations("small_sweep", settings, &SMALL_MIN, &SMALL_MAX, |[m, k, n]| m <= k && k <= n),
};

pub(super) static SWEEP: Generator = Generator {
    name: "sweep",
    about: "every combination of powers of two",
    parameters: &[MIN, MAX],
    count: |settings| Ok(Some((exponents("sweep", settings, &MIN, &MAX)?.count() as u64).pow(3))),
    shapes: |settings, _| combinations("sweep", settings, &MIN, &MAX, |_| true),
};

/// Combinations accepted by `keep`, M outermost, numbered from zero.
fn combinations(
    name: &'static str,
    settings: &GeneratorSettings,
    min: &Parameter,
    max: &Parameter,
    keep: fn([u64; 3]) -> bool,
) -> Result<Vec<NamedShape>, ShapeError> {
    let sides = || exponents(name, settings, min, max).map(|powers| powers.map(|power| 1u64 << power));
    let mut made = Vec::new();
    for m in sides()? {
        for k in sides()? {
            for n in sides()?.filter(|n| keep([m, k, *n])) {
                made.push(NamedShape::new(format!("{name}_{}", made.len()), [m, k, n])?);
            }
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::super::listing;
    use crate::MAX_POWER;
    use proptest::prelude::*;

    #[test]
    fn small_sweep_has_ascending_axes() {
        let made = listing("name: small_sweep");
        assert_eq!(made.len(), 35);
        assert_eq!(
            made[..3],
            ["small_sweep_0 1024 1024 1024", "small_sweep_1 1024 1024 2048", "small_sweep_2 1024 1024 4096"]
        );
        assert_eq!(made[5], "small_sweep_5 1024 2048 2048");
        assert_eq!(made[34], "small_sweep_34 16384 16384 16384");
        assert_eq!(listing("{name: small_sweep, max_power: 15}").len(), 56);
        assert_eq!(listing("{name: small_sweep, min_power: 14, max_power: 16}").len(), 10);
    }

    #[test]
    fn sweep_varies_n_fastest() {
        let made = listing("name: sweep");
        assert_eq!(made.len(), 512);
        assert_eq!(made[..2], ["sweep_0 256 256 256", "sweep_1 256 256 512"]);
        assert_eq!(made[8], "sweep_8 256 512 256");
        assert_eq!(made[64], "sweep_64 512 256 256");
        assert_eq!(made[511], "sweep_511 32768 32768 32768");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_sweep_is_bounded_and_counted(a in 0..=MAX_POWER, b in 0..=MAX_POWER) {
            let (min, max) = (a.min(b), a.max(b));
            let side = (max - min + 1) as usize;
            // `listing` compares the count with the shapes.
            let all = listing(&format!("{{name: sweep, min_power: {min}, max_power: {max}}}"));
            let small = listing(&format!("{{name: small_sweep, min_power: {min}, max_power: {max}}}"));
            prop_assert_eq!(all.len(), side.pow(3));
            prop_assert!(small.len() <= all.len());
        }
    }
}
