//! ParameterValue sets: written out, or the Cartesian product of ranges and lists.

use calorimeter_recipes::Element;
use calorimeter_shapes::{MAX_SHAPES, RangeStep, ValueRange};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Parameters of one case, classified.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ParameterSet {
    /// Integers in file order; include the axes of the operator.
    pub integers: Vec<(String, u64)>,
    /// Dtype of the inputs.
    pub element: Option<Element>,
    /// Dtype of the outputs.
    pub output: Option<Element>,
    /// Number of runs in the other program.
    pub num_runs: Option<u64>,
    /// Other values as text.
    pub texts: Vec<(String, String)>,
}

/// ParameterValue set of `benchmark_params`.
pub(super) struct LiteralSet(pub ParameterSet);

/// Sweep of `benchmark_sweep_params`, each key possibly with a suffix.
pub(super) struct Sweep(Combinations);

/// Parameters with their values, in file order.
pub(super) type ParameterPairs = Vec<(String, ParameterValue)>;

/// Cartesian product of the values of several parameters, last key fastest.
#[derive(Debug)]
pub(super) struct Combinations {
    axes: Vec<(String, Vec<ParameterValue>)>,
    count: u64,
}

/// Value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ParameterValue {
    Integer(u64),
    Text(String),
}

impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// Prefix of a reference to another parameter of the set.
const SAME_AS: &str = "SAME_AS_";

impl ParameterSet {
    fn from_pairs(mut pairs: ParameterPairs) -> Result<Self, String> {
        // Resolved in order: a reference to an earlier reference yields the resolved value.
        for index in 0..pairs.len() {
            let ParameterValue::Text(text) = &pairs[index].1 else { continue };
            let Some(other) = text.strip_prefix(SAME_AS) else { continue };
            let Some((_, value)) = pairs.iter().find(|(name, _)| name == other) else {
                let (name, names) = (&pairs[index].0, name_list(&pairs));
                return Err(format!("{name}: {text} refers to an unknown parameter {other:?}; known: {names}"));
            };
            pairs[index].1 = value.clone();
        }
        let mut set = Self::default();
        for (name, value) in pairs {
            let element = || {
                let parsed = value.to_string().parse::<Element>();
                parsed.map(Some).map_err(|error| format!("{name}: {error}"))
            };
            match (name.as_str(), &value) {
                ("dtype" | "in_dtype_str", _) => set.element = element()?,
                ("quant_dtype" | "out_dtype_str", _) => set.output = element()?,
                ("num_runs", ParameterValue::Integer(number)) => set.num_runs = Some(*number),
                (_, ParameterValue::Integer(number)) => set.integers.push((name, *number)),
                (_, ParameterValue::Text(text)) => set.texts.push((name, text.clone())),
            }
        }
        Ok(set)
    }
}

fn name_list(pairs: &[(String, ParameterValue)]) -> String {
    pairs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

impl Sweep {
    /// Creates a sweep; fails for invalid values.
    fn new(combinations: Combinations) -> Result<Self, String> {
        // Checks each value in one combination, where the deserializer can still report its position.
        let longest = combinations.axes.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
        for index in 0..longest {
            ParameterSet::from_pairs(combinations.pairs(|values| index.min(values.len() - 1)))?;
        }
        Ok(Self(combinations))
    }

    /// Number of combinations, computed without expanding them.
    pub(super) fn count(&self) -> u64 {
        self.0.count
    }

    /// All combinations, last key fastest.
    pub(super) fn sets(&self) -> impl Iterator<Item = Result<ParameterSet, String>> {
        self.0.iter().map(ParameterSet::from_pairs)
    }
}

impl Combinations {
    /// Creates a product; fails for too many combinations.
    pub(super) fn new(axes: Vec<(String, Vec<ParameterValue>)>) -> Result<Self, String> {
        // Saturation is harmless, since such a count exceeds the limit anyway.
        let count = axes.iter().fold(1u64, |count, (_, values)| count.saturating_mul(values.len() as u64));
        if count > MAX_SHAPES {
            let sizes: Vec<String> = axes.iter().map(|(name, values)| format!("{name} has {}", values.len())).collect();
            return Err(format!(
                "{count} combinations, more than {MAX_SHAPES}; use fewer values ({})",
                sizes.join(", ")
            ));
        }
        Ok(Self { axes, count })
    }

    /// Number of combinations, computed without expanding them.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Names of the parameters.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.axes.iter().map(|(name, _)| name)
    }

    /// All combinations, last key fastest.
    pub(super) fn iter(&self) -> impl Iterator<Item = ParameterPairs> {
        (0..self.count as usize).map(|index| {
            let mut rest = index;
            self.pairs(|values| {
                let index = rest % values.len();
                rest /= values.len();
                index
            })
        })
    }

    /// Builds one combination. `place` selects an index into the values of each parameter, starting with the last one.
    fn pairs(&self, mut place: impl FnMut(&[ParameterValue]) -> usize) -> ParameterPairs {
        let value = |(name, values): &(String, Vec<ParameterValue>)| (name.clone(), values[place(values)].clone());
        let mut pairs: ParameterPairs = self.axes.iter().rev().map(value).collect();
        pairs.reverse();
        pairs
    }
}

impl<'de> Deserialize<'de> for Sweep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Sweep;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("parameters with their values, such as {m_range: {start: 1, end: 64, multiplier: 2}, n: 8}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sweep, A::Error> {
                let mut axes: Vec<(String, Vec<ParameterValue>)> = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    // Suffixes are removed in this order, each once, as in the other program.
                    let name = key.strip_suffix("_range").unwrap_or(&key);
                    let name = name.strip_suffix("_list").unwrap_or(name);
                    let values = map.next_value::<SweepValues<false>>()?.0;
                    check_not_repeated(axes.iter().map(|(name, _)| name), name)?;
                    axes.push((name.to_owned(), values));
                }
                Combinations::new(axes).and_then(Sweep::new).map_err(Error::custom)
            }
        }
        deserializer.deserialize_map(Map)
    }
}

impl<'de> Deserialize<'de> for LiteralSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = LiteralSet;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("parameters with one value each, such as {m: 64, n: 8}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LiteralSet, A::Error> {
                let mut pairs = ParameterPairs::new();
                while let Some((name, value)) = map.next_entry::<String, ParameterValue>()? {
                    check_not_repeated(pairs.iter().map(|(name, _)| name), &name)?;
                    pairs.push((name, value));
                }
                ParameterSet::from_pairs(pairs).map(LiteralSet).map_err(Error::custom)
            }
        }
        deserializer.deserialize_map(Map)
    }
}

pub(super) fn check_not_repeated<'a, E: Error>(
    mut before: impl Iterator<Item = &'a String>,
    name: &str,
) -> Result<(), E> {
    match before.any(|one| one == name) {
        true => Err(E::custom(format!("duplicate parameter {name}, possibly with different suffixes; keep one"))),
        false => Ok(()),
    }
}

/// Values of a swept parameter: a single value, a list, or a range whose end is included if it is reached. With
/// `UNIT_STEP`, a range without a step has the step 1, and the multiplier 1 counts as absent.
pub(super) struct SweepValues<const UNIT_STEP: bool>(pub Vec<ParameterValue>);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    start: u64,
    end: u64,
    multiplier: Option<u64>,
    increase_by: Option<u64>,
}

impl Bounds {
    fn values(self, unit_step: bool) -> Result<Vec<ParameterValue>, String> {
        // As in the other program, 0 and null count as absent, and `multiplier` takes precedence.
        let nonzero = |by: Option<u64>| by.filter(|&by| by != 0);
        let multiplier = nonzero(self.multiplier).filter(|&by| !unit_step || by != 1);
        let step = match (multiplier, nonzero(self.increase_by)) {
            (Some(by), _) => RangeStep::Multiply(by),
            (None, Some(by)) => RangeStep::Add(by),
            (None, None) if unit_step => RangeStep::Add(1),
            (None, None) => return Err("a range requires multiplier or increase_by".into()),
        };
        let range = ValueRange::new(self.start, self.end, step);
        // Name of the key in these files.
        let range = range.map_err(|error| error.to_string().replace("increment", "increase_by"))?;
        Ok(range.iter().map(ParameterValue::Integer).collect())
    }
}

macro_rules! scalars {
    ($value:ty, $expecting:literal, $wrap:expr) => {
        type Value = $value;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str($expecting)
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<$value, E> {
            Ok($wrap(ParameterValue::Integer(number)))
        }

        fn visit_bool<E: Error>(self, value: bool) -> Result<$value, E> {
            Ok($wrap(ParameterValue::Text(value.to_string())))
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<$value, E> {
            Ok($wrap(ParameterValue::Text(number.to_string())))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<$value, E> {
            Ok($wrap(ParameterValue::Text(text.to_owned())))
        }
    };
}

impl<'de> Deserialize<'de> for ParameterValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Scalar;
        impl Visitor<'_> for Scalar {
            scalars!(ParameterValue, "one value, an integer from 0 or a word", |parameter| parameter);

            // Sizes cannot be negative, but factors can.
            fn visit_i64<E: Error>(self, number: i64) -> Result<ParameterValue, E> {
                Ok(ParameterValue::Text(number.to_string()))
            }
        }
        deserializer.deserialize_any(Scalar)
    }
}

impl<'de, const UNIT_STEP: bool> Deserialize<'de> for SweepValues<UNIT_STEP> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany<const UNIT_STEP: bool>;
        impl<'de, const UNIT_STEP: bool> Visitor<'de> for OneOrMany<UNIT_STEP> {
            scalars!(
                SweepValues<UNIT_STEP>,
                "one value, a list of them, or a range such as {start: 1, end: 64, multiplier: 2}",
                |parameter| SweepValues(vec![parameter])
            );

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element()? {
                    values.push(value);
                }
                match values.is_empty() {
                    true => Err(Error::custom("empty list; add a value or omit the key")),
                    false => Ok(SweepValues(values)),
                }
            }

            // Reported from inside the visitor, so that errors have a line and column.
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let bounds = Bounds::deserialize(MapAccessDeserializer::new(map))?;
                bounds.values(UNIT_STEP).map(SweepValues).map_err(Error::custom)
            }
        }
        deserializer.deserialize_any(OneOrMany::<UNIT_STEP>)
    }
}
