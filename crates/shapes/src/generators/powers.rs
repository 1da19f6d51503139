//! `pow2` and `pow2_extended`: cubes whose side is a power of two, without and with 1.5 times that side.
//!
//! The exponents are shared with the sweeps; see [`exponents`].

use crate::parameter::{GeneratorSettings, Parameter, ParameterKind};
use crate::{Generator, NamedShape, ShapeError};

const MIN: Parameter = min_power(10);
const MAX: Parameter = max_power(14);

pub(super) static POW2: Generator = Generator {
    name: "pow2",
    about: "cubes with a side of 2^p",
    parameters: &[MIN, MAX],
    count: |settings| Ok(Some(exponents("pow2", settings, &MIN, &MAX)?.count() as u64)),
    shapes: |settings, _| {
        let sides = exponents("pow2", settings, &MIN, &MAX)?.map(|power| 1 << power);
        cubes("pow2", sides)
    },
};

pub(super) static POW2_EXTENDED: Generator = Generator {
    name: "pow2_extended",
    about: "cubes with a side of 2^p and of 1.5 x 2^p",
    parameters: &[MIN, MAX],
    count: |settings| Ok(Some(2 * exponents("pow2_extended", settings, &MIN, &MAX)?.count() as u64)),
    shapes: |settings, _| {
        let sides = exponents("pow2_extended", settings, &MIN, &MAX)?.flat_map(|power| {
            let side = 1u64 << power;
            // At 2^0 the side of 1.5 is rounded down to 1.
            [side, side + side / 2]
        });
        cubes("pow2_extended", sides)
    },
};

/// The parameter `min_power`.
pub(super) const fn min_power(default: u64) -> Parameter {
    Parameter { name: "min_power", about: "the exponent of the smallest side", kind: ParameterKind::Power { default } }
}

/// The parameter `max_power`.
pub(super) const fn max_power(default: u64) -> Parameter {
    Parameter {
        name: "max_power",
        about: "the exponent of the largest side, included",
        kind: ParameterKind::Power { default },
    }
}

/// Exponents from `min_power` to `max_power`, inclusive.
pub(super) fn exponents(
    generator: &'static str,
    settings: &GeneratorSettings,
    min: &Parameter,
    max: &Parameter,
) -> Result<std::ops::RangeInclusive<u64>, ShapeError> {
    let (min, max) = (settings.power(min), settings.power(max));
    if min > max { Err(ShapeError::PowersReversed { generator, min, max }) } else { Ok(min..=max) }
}

fn cubes(name: &str, sides: impl Iterator<Item = u64>) -> Result<Vec<NamedShape>, ShapeError> {
    sides.enumerate().map(|(index, side)| NamedShape::new(format!("{name}_{index}"), [side; 3])).collect()
}

#[cfg(test)]
mod tests {
    use super::super::listing;
    use crate::MAX_POWER;

    #[test]
    fn pow2_doubles_from_1024_to_16384() {
        assert_eq!(
            listing("name: pow2"),
            [
                "pow2_0 1024 1024 1024",
                "pow2_1 2048 2048 2048",
                "pow2_2 4096 4096 4096",
                "pow2_3 8192 8192 8192",
                "pow2_4 16384 16384 16384",
            ]
        );
    }

    #[test]
    fn pow2_extended_adds_intermediate_cubes() {
        let made = listing("name: pow2_extended");
        let sides = [1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576];
        let expected: Vec<String> =
            sides.iter().enumerate().map(|(i, s)| format!("pow2_extended_{i} {s} {s} {s}")).collect();
        assert_eq!(made, expected);
    }

    #[test]
    fn exponents_are_configurable() {
        assert_eq!(listing("{name: pow2, min_power: 0, max_power: 1}"), ["pow2_0 1 1 1", "pow2_1 2 2 2"]);
        assert_eq!(listing("{name: pow2, min_power: 12, max_power: 12}"), ["pow2_0 4096 4096 4096"]);
        assert_eq!(listing(&format!("{{name: pow2_extended, max_power: {MAX_POWER}}}")).len(), 22);
    }
}
