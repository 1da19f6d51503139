//! Human-readable durations and fractions.

use std::time::Duration;
use std::{fmt, str::FromStr};

/// Duration such as `300ms`, `5s`, `2m`, or a number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HumanDuration(pub Duration);

/// Fraction such as `1%` or `0.01`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fraction(pub f64);

const UNITS: [(&str, f64); 6] = [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0)];

/// Maximum duration in seconds; sums of a few such durations do not overflow.
const MAX_SECONDS: f64 = 1e9;

impl FromStr for HumanDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) =
            text.trim().split_at(text.trim().find(|c: char| c.is_alphabetic()).unwrap_or(text.trim().len()));
        let scale =
            if unit.is_empty() { Some(1.0) } else { UNITS.iter().find(|(name, _)| *name == unit).map(|(_, s)| *s) };
        let seconds = number.trim().parse::<f64>().ok().zip(scale).map(|(number, scale)| number * scale);
        if seconds.is_some_and(|seconds| seconds.is_finite() && seconds > MAX_SECONDS) {
            return Err(format!("invalid duration {text:?}: expected at most {MAX_SECONDS}s"));
        }
        seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .map(Self)
            .ok_or_else(|| format!("invalid duration {text:?}: expected e.g. 300ms, 5s or 2m"))
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl FromStr for Fraction {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, scale) = text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |number| (number, 0.01));
        let share = number.trim().parse::<f64>().map(|number| number * scale);
        share
            .ok()
            .filter(|share| *share > 0.0 && *share < 1.0)
            .map(Self)
            .ok_or_else(|| format!("invalid fraction {text:?}: expected a value above 0 and below 1, e.g. 1% or 0.01"))
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not as a percentage, so that parsing it restores the exact number.
        self.0.fmt(f)
    }
}

/// Implements serde and JSON Schema for a quantity written as text or as a number.
macro_rules! quantity {
    ($type:ident, $expecting:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Quantity;
                impl serde::de::Visitor<'_> for Quantity {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }

                    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<$type, E> {
                        self.visit_str(&number.to_string())
                    }

                    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<$type, E> {
                        self.visit_str(&number.to_string())
                    }

                    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<$type, E> {
                        self.visit_str(&number.to_string())
                    }
                }
                deserializer.deserialize_any(Quantity)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": ["string", "number"], "description": $expecting })
            }
        }
    };
}

pub(super) use quantity;

quantity!(HumanDuration, "a duration such as 300ms, 5s or 2m; a bare number is seconds");
quantity!(Fraction, "a fraction such as 1% or 0.01");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_fractions_parse() {
        for (text, nanos) in [
            ("5s", 5_000_000_000),
            ("300ms", 300_000_000),
            ("2m", 120_000_000_000),
            ("0.5", 500_000_000),
            ("7us", 7_000),
        ] {
            assert_eq!(text.parse::<HumanDuration>().unwrap().0.as_nanos(), nanos, "{text}");
        }
        for (text, share) in [("1%", 0.01), ("0.02", 0.02), ("2.5 %", 0.025)] {
            assert!((text.parse::<Fraction>().unwrap().0 - share).abs() < 1e-12, "{text}");
        }
        for text in ["", "s", "-1s", "5 parsecs", "1e400s", "nan"] {
            assert!(text.parse::<HumanDuration>().is_err(), "{text}");
        }
        for text in ["1000000001", "10000000000000000000", "20000000m"] {
            let error = text.parse::<HumanDuration>().unwrap_err();
            assert_eq!(error, format!("invalid duration {text:?}: expected at most 1000000000s"));
        }
        assert_eq!("1000000000".parse::<HumanDuration>().unwrap().0.as_secs(), 1_000_000_000);
        for text in ["", "0", "100%", "-1%", "x"] {
            assert!(text.parse::<Fraction>().is_err(), "{text}");
        }
    }

    #[test]
    fn fractions_round_trip_exactly() {
        for share in (1..10_000).map(|hundredths| format!("{}%", f64::from(hundredths) / 100.0)) {
            let share: Fraction = share.parse().unwrap();
            assert_eq!(share.to_string().parse(), Ok(share));
        }
    }
}
