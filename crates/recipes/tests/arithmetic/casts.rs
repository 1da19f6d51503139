//! Casts to small floats, compared with ml_dtypes. `tools/float8_casts.py` wrote the expected values for the same
//! inputs.

use calorimeter_recipes::Element;
use calorimeter_recipes::ElementCodec;
use std::path::Path;

/// Returns output `i` of splitmix64 with seed zero.
fn splitmix64(i: u64) -> u64 {
    let z = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Mantissa bits of a format, and the exponents of its smallest and largest values.
struct FloatLayout {
    mantissa: u32,
    min_exponent: i32,
    max_exponent: i32,
}

impl FloatLayout {
    /// Input `i`: any float, a float within the range of the format, or one that is representable or halfway between
    /// two representable values.
    fn test_value(&self, i: u64) -> f32 {
        let random = splitmix64(i);
        let bits = (random >> 32) as u32;
        let (lowest, span) = ((125 + self.min_exponent) as u32, (self.max_exponent - self.min_exponent + 4) as u32);
        let exponent = (random >> 8 & 0xFF) as u32 % span + lowest;
        let inside = (bits & 0x807F_FFFF) | exponent << 23;
        f32::from_bits(match random & 3 {
            0 if bits & 0x7F80_0000 == 0x7F80_0000 => bits & 0xBFFF_FFFF,
            0 => bits,
            3 => inside & (u32::MAX << (22 - self.mantissa)),
            _ => inside,
        })
    }
}

#[test]
fn casts_match_ml_dtypes() {
    for (name, element, mantissa, least, largest) in [
        ("e4m3", Element::E4m3, 3, -9, 8),
        ("e5m2", Element::E5m2, 2, -16, 15),
        ("e3m2", Element::E3m2, 2, -4, 4),
        ("e2m1", Element::E2m1, 1, -1, 2),
    ] {
        let format = FloatLayout { mantissa, min_exponent: least, max_exponent: largest };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/casts").join(name).with_extension("codes");
        let codes = std::fs::read(path).unwrap();
        assert!(codes.len() >= 1 << 17);
        for (i, &code) in codes.iter().enumerate() {
            let x = format.test_value(i as u64);
            let theirs = element.decode(code.into());
            // ml_dtypes does not saturate.
            let expected = if theirs.is_finite() { theirs } else { element.max_value().copysign(x) };
            let ours = element.decode(element.encode(x));
            assert_eq!(ours.to_bits(), expected.to_bits(), "{name} of {x:e}: {ours}, ml_dtypes {theirs}");
        }
    }
}
