//! Values of an axis: a single value, a list, or a range.

use crate::{MAX_SHAPES, ShapeError};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::successors;

/// Step of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RangeStep {
    /// Factor between successive values, at least 2.
    Multiply(u64),
    /// Difference between successive values, at least 1.
    Add(u64),
}

/// Values from `start` to `end`; `end` is included if it is reached: `{start: 1, end: 64, multiplier: 2}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ValueRange {
    start: u64,
    end: u64,
    step: RangeStep,
}

impl ValueRange {
    /// Checks that the range is finite and has at most [`MAX_SHAPES`] values.
    pub fn new(start: u64, end: u64, step: RangeStep) -> Result<Self, ShapeError> {
        if start > end {
            return Err(ShapeError::RangeReversed { start, end });
        }
        let stuck = |step, wayout| Err(ShapeError::ConstantRange { start, step, wayout });
        match step {
            RangeStep::Multiply(by @ (0 | 1)) => return stuck(format!("multiplier {by}"), "multiply by 2 or more"),
            RangeStep::Multiply(by) if start == 0 => {
                return stuck(format!("multiplier {by}"), "start at 1 or more, or use increment");
            }
            RangeStep::Add(0) => return stuck("increment 0".to_owned(), "add 1 or more"),
            _ => {}
        }
        let range = Self { start, end, step };
        if range.count() > MAX_SHAPES {
            return Err(ShapeError::TooMany {
                what: format!("a range from {start} to {end}"),
                count: range.wide_count(),
                narrow: "raise its step or lower its end".to_owned(),
            });
        }
        Ok(range)
    }

    /// Number of values; at least one.
    pub fn count(self) -> u64 {
        u64::try_from(self.wide_count()).unwrap_or(u64::MAX)
    }

    /// Number of values as `u128`: 0 to `u64::MAX` in steps of one has 2^64 values.
    fn wide_count(self) -> u128 {
        match self.step {
            RangeStep::Multiply(_) => self.iter().count() as u128,
            RangeStep::Add(by) => u128::from((self.end - self.start) / by) + 1,
        }
    }

    /// Iterates over the values in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u64> {
        successors(Some(self.start), move |value| match self.step {
            RangeStep::Multiply(by) => value.checked_mul(by),
            RangeStep::Add(by) => value.checked_add(by),
        })
        .take_while(move |value| *value <= self.end)
    }
}

/// Values of an axis in a configuration file: a single value, a list, or a range.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum SizeValues {
    /// Single value.
    One(u64),
    /// List, in the given order.
    List(Vec<u64>),
    /// Range.
    Range(ValueRange),
}

impl From<ValueRange> for Vec<u64> {
    fn from(range: ValueRange) -> Self {
        range.iter().collect()
    }
}

impl From<SizeValues> for Vec<u64> {
    fn from(values: SizeValues) -> Self {
        match values {
            SizeValues::One(value) => vec![value],
            SizeValues::List(values) => values,
            SizeValues::Range(range) => range.into(),
        }
    }
}

impl Serialize for ValueRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("start", &self.start)?;
        map.serialize_entry("end", &self.end)?;
        match self.step {
            RangeStep::Multiply(by) => map.serialize_entry("multiplier", &by)?,
            RangeStep::Add(by) => map.serialize_entry("increment", &by)?,
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ValueRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RangeVisitor)
    }
}

impl<'de> Deserialize<'de> for SizeValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValuesVisitor)
    }
}

/// Fields of a range as written, before they are checked against each other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeFields {
    start: u64,
    end: u64,
    multiplier: Option<u64>,
    #[serde(alias = "increase_by")]
    increment: Option<u64>,
}

struct RangeVisitor;

impl<'de> Visitor<'de> for RangeVisitor {
    type Value = ValueRange;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a range such as {start: 1, end: 64, multiplier: 2}")
    }

    // Errors raised inside the visitor have a line and column.
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ValueRange, A::Error> {
        let fields = RangeFields::deserialize(MapAccessDeserializer::new(map))?;
        let step = match (fields.multiplier, fields.increment) {
            (Some(by), None) => Ok(RangeStep::Multiply(by)),
            (None, Some(by)) => Ok(RangeStep::Add(by)),
            (Some(_), Some(_)) => Err(ShapeError::RangeStep { found: "both" }),
            (None, None) => Err(ShapeError::RangeStep { found: "neither" }),
        };
        step.and_then(|step| ValueRange::new(fields.start, fields.end, step)).map_err(Error::custom)
    }
}

struct ValuesVisitor;

impl<'de> Visitor<'de> for ValuesVisitor {
    type Value = SizeValues;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, a list of them, or a range such as {start: 1, end: 64, multiplier: 2}")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<SizeValues, E> {
        Ok(SizeValues::One(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<SizeValues, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element()? {
            values.push(value);
        }
        if values.is_empty() {
            return Err(Error::custom(ShapeError::EmptyList { name: "an axis".to_owned() }));
        }
        Ok(SizeValues::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SizeValues, A::Error> {
        RangeVisitor.visit_map(map).map(SizeValues::Range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn read(yaml: &str) -> Result<Vec<u64>, String> {
        let mut axes: BTreeMap<String, SizeValues> = serde_yaml::from_str(yaml).map_err(|error| error.to_string())?;
        Ok(axes.remove("m").unwrap().into())
    }

    #[test]
    fn ranges_include_a_reached_end() {
        for (yaml, expected) in [
            ("m: 128", &[128][..]),
            ("m: [4, 2, 4]", &[4, 2, 4]),
            ("m: {start: 1, end: 8, multiplier: 2}", &[1, 2, 4, 8]),
            ("m: {start: 3, end: 8, multiplier: 2}", &[3, 6]),
            ("m: {start: 0, end: 6, increment: 3}", &[0, 3, 6]),
            ("m: {start: 5, end: 10, increase_by: 4}", &[5, 9]),
            ("m: {start: 7, end: 7, multiplier: 9}", &[7]),
            ("m: {start: 9223372036854775808, end: 18446744073709551615, multiplier: 2}", &[1 << 63]),
        ] {
            assert_eq!(read(yaml).unwrap(), expected, "{yaml}");
        }
    }

    #[test]
    fn invalid_ranges_are_rejected_with_position() {
        use RangeStep::{Add, Multiply};
        type Check = fn(&ShapeError) -> bool;
        let ranges: [(u64, u64, RangeStep, Check); 5] = [
            (8, 1, Multiply(2), |error| matches!(error, ShapeError::RangeReversed { start: 8, end: 1 })),
            (1, 8, Multiply(1), |error| matches!(error, ShapeError::ConstantRange { start: 1, .. })),
            (0, 8, Multiply(2), |error| matches!(error, ShapeError::ConstantRange { start: 0, .. })),
            (1, 8, Add(0), |error| matches!(error, ShapeError::ConstantRange { start: 1, .. })),
            (0, u64::MAX, Add(1), |error| {
                matches!(error, ShapeError::TooMany { count: 18_446_744_073_709_551_616, .. })
            }),
        ];
        for (start, end, step, check) in ranges {
            let cause = ValueRange::new(start, end, step).unwrap_err();
            assert!(check(&cause), "{cause:?}");
            let yaml = serde_yaml::to_string(&BTreeMap::from([("m", ValueRange { start, end, step })])).unwrap();
            assert_eq!(read(&yaml).unwrap_err(), format!("m: {cause} at line 2 column 3"));
        }
        for (yaml, cause) in [
            ("m: {start: 1, end: 8}", ShapeError::RangeStep { found: "neither" }),
            ("m: {start: 1, end: 8, multiplier: 2, increment: 1}", ShapeError::RangeStep { found: "both" }),
            ("m: []", ShapeError::EmptyList { name: "an axis".into() }),
        ] {
            assert_eq!(read(yaml).unwrap_err(), format!("m: {cause} at line 1 column 4"), "{yaml}");
        }
        for (yaml, place, position) in [
            ("m:\n  start: 1\n  end: 8\n  multipler: 2", "m: ", "line 4 column 3"),
            ("m: {start: 1, end: 8, multiplier: 1.5}", "m.multiplier: ", "line 1 column 35"),
            ("m: many", "m: ", "line 1 column 4"),
        ] {
            let error = read(yaml).unwrap_err();
            assert!(error.starts_with(place) && error.ends_with(position), "{error}");
        }
    }

    fn ranges() -> impl Strategy<Value = ValueRange> {
        let step = prop_oneof![
            (2..u64::MAX).prop_map(RangeStep::Multiply),
            (2..9u64).prop_map(RangeStep::Multiply),
            (1..u64::MAX).prop_map(RangeStep::Add)
        ];
        (1..u64::MAX, 1..u64::MAX, step)
            .prop_filter_map("too many values", |(a, b, step)| ValueRange::new(a.min(b), a.max(b), step).ok())
    }

    proptest! {
        #[test]
        fn a_range_ascends_within_its_ends_and_is_counted(range in ranges()) {
            let values: Vec<u64> = range.iter().collect();
            prop_assert_eq!(values.len() as u64, range.count());
            prop_assert_eq!(values[0], range.start);
            prop_assert!(values.is_sorted_by(|a, b| a < b));
            prop_assert!(values.iter().all(|value| *value <= range.end));
            let next = match range.step {
                RangeStep::Multiply(by) => values[values.len() - 1].checked_mul(by),
                RangeStep::Add(by) => values[values.len() - 1].checked_add(by),
            };
            prop_assert!(next.is_none_or(|next| next > range.end));
        }

        #[test]
        fn values_are_written_as_they_are_read(range in ranges(), list in prop::collection::vec(any::<u64>(), 1..5)) {
            for values in [SizeValues::Range(range), SizeValues::One(list[0]), SizeValues::List(list)] {
                let yaml = serde_yaml::to_string(&values).unwrap();
                prop_assert_eq!(serde_yaml::from_str::<SizeValues>(&yaml).unwrap(), values);
            }
        }
    }
}
