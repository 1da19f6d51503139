//! Sets of parameters: written one by one, or as the Cartesian product of ranges and lists.

use calorimeter_recipes::Element;
use calorimeter_shapes::{MAX_SHAPES, Range, Step};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What one case is told, sorted by what it means here.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Set {
    /// Whole numbers, in the order written: an operator's axes are among them.
    pub numbers: Vec<(String, u64)>,
    /// Of the inputs.
    pub element: Option<Element>,
    /// Of the outputs.
    pub output: Option<Element>,
    /// How often the other program runs it.
    pub num_runs: Option<u64>,
    /// Anything else, as it is written.
    pub others: Vec<(String, String)>,
}

/// A map of `benchmark_params`: one set.
pub struct Literal(pub Set);

/// A map of `benchmark_sweep_params`: every combination of its values, the last key fastest.
pub struct Sweep {
    axes: Vec<(String, Vec<Parameter>)>,
    count: u64,
}

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    Number(u64),
    Text(String),
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// How a text refers to another parameter of its set.
const SAME_AS: &str = "SAME_AS_";

impl Set {
    fn of(mut pairs: Vec<(String, Parameter)>) -> Result<Self, String> {
        // In order: a reference to one that is itself a reference finds it resolved if it stands before.
        for index in 0..pairs.len() {
            let Parameter::Text(text) = &pairs[index].1 else { continue };
            let Some(other) = text.strip_prefix(SAME_AS) else { continue };
            let Some((_, value)) = pairs.iter().find(|(name, _)| name == other) else {
                let (name, names) = (&pairs[index].0, names(&pairs));
                return Err(format!("{name} is {text}, and there is no parameter {other:?}; there are {names}"));
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
                ("num_runs", Parameter::Number(number)) => set.num_runs = Some(*number),
                (_, Parameter::Number(number)) => set.numbers.push((name, *number)),
                (_, Parameter::Text(text)) => set.others.push((name, text.clone())),
            }
        }
        Ok(set)
    }
}

fn names(pairs: &[(String, Parameter)]) -> String {
    pairs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

impl Sweep {
    /// Refuses too many combinations, and a value that is none of its parameter.
    fn new(axes: Vec<(String, Vec<Parameter>)>) -> Result<Self, String> {
        // Saturating: what is that long is refused all the same.
        let count = axes.iter().fold(1u64, |count, (_, values)| count.saturating_mul(values.len() as u64));
        if count > MAX_SHAPES {
            let sizes: Vec<String> = axes.iter().map(|(name, values)| format!("{name} has {}", values.len())).collect();
            return Err(format!("{count} combinations, more than {MAX_SHAPES}: narrow one ({})", sizes.join(", ")));
        }
        let sweep = Self { axes, count };
        // While its place is known, each value is looked at in one combination.
        let longest = sweep.axes.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
        for at in 0..longest {
            sweep.set(|values| at.min(values.len() - 1))?;
        }
        Ok(sweep)
    }

    /// How many combinations there are, without making them.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Every combination, the last key fastest.
    pub fn sets(&self) -> impl Iterator<Item = Result<Set, String>> {
        (0..self.count as usize).map(|index| {
            let mut rest = index;
            self.set(|values| {
                let place = rest % values.len();
                rest /= values.len();
                place
            })
        })
    }

    /// One combination; it is said where in the values of each parameter, the last one first.
    fn set(&self, mut place: impl FnMut(&[Parameter]) -> usize) -> Result<Set, String> {
        let value = |(name, values): &(String, Vec<Parameter>)| (name.clone(), values[place(values)].clone());
        let mut pairs: Vec<(String, Parameter)> = self.axes.iter().rev().map(value).collect();
        pairs.reverse();
        Set::of(pairs)
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
                let mut axes: Vec<(String, Vec<Parameter>)> = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    // In this order, and each once: that is how the other program reads them.
                    let name = key.strip_suffix("_range").unwrap_or(&key);
                    let name = name.strip_suffix("_list").unwrap_or(name);
                    let values = map.next_value::<Values>()?.0;
                    once(axes.iter().map(|(name, _)| name), name)?;
                    axes.push((name.to_owned(), values));
                }
                Sweep::new(axes).map_err(Error::custom)
            }
        }
        deserializer.deserialize_map(Map)
    }
}

impl<'de> Deserialize<'de> for Literal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Literal;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("parameters with one value each, such as {m: 64, n: 8}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Literal, A::Error> {
                let mut pairs: Vec<(String, Parameter)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Parameter>()? {
                    once(pairs.iter().map(|(name, _)| name), &name)?;
                    pairs.push((name, value));
                }
                Set::of(pairs).map(Literal).map_err(Error::custom)
            }
        }
        deserializer.deserialize_map(Map)
    }
}

fn once<'a, E: Error>(mut before: impl Iterator<Item = &'a String>, name: &str) -> Result<(), E> {
    match before.any(|one| one == name) {
        true => Err(E::custom(format!("{name} is given twice, under one key or two; keep one"))),
        false => Ok(()),
    }
}

/// The values of a swept parameter: one, a list, or a range whose end is included when it is reached.
struct Values(Vec<Parameter>);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    start: u64,
    end: u64,
    multiplier: Option<u64>,
    increase_by: Option<u64>,
}

impl Bounds {
    fn values(self) -> Result<Vec<Parameter>, String> {
        // 0 and null count as absent there, and of both the multiplier wins.
        let given = |by: Option<u64>| by.filter(|&by| by != 0);
        let step = match (given(self.multiplier), given(self.increase_by)) {
            (Some(by), _) => Step::Multiply(by),
            (None, Some(by)) => Step::Add(by),
            (None, None) => return Err("a range needs a multiplier or increase_by".into()),
        };
        let range = Range::new(self.start, self.end, step);
        // The key is called so in these files.
        let range = range.map_err(|error| error.to_string().replace("increment", "increase_by"))?;
        Ok(range.iter().map(Parameter::Number).collect())
    }
}

macro_rules! scalars {
    ($value:ty, $expecting:literal, $wrap:expr) => {
        type Value = $value;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str($expecting)
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<$value, E> {
            Ok($wrap(Parameter::Number(number)))
        }

        fn visit_bool<E: Error>(self, value: bool) -> Result<$value, E> {
            Ok($wrap(Parameter::Text(value.to_string())))
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<$value, E> {
            Ok($wrap(Parameter::Text(number.to_string())))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<$value, E> {
            Ok($wrap(Parameter::Text(text.to_owned())))
        }
    };
}

impl<'de> Deserialize<'de> for Parameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Scalar;
        impl Visitor<'_> for Scalar {
            scalars!(Parameter, "one value, a whole number from 0 or a word", |parameter| parameter);
        }
        deserializer.deserialize_any(Scalar)
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            scalars!(
                Values,
                "one value, a list of them, or a range such as {start: 1, end: 64, multiplier: 2}",
                |parameter| Values(vec![parameter])
            );

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Values, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element()? {
                    values.push(value);
                }
                match values.is_empty() {
                    true => Err(Error::custom("an empty list: give it a value or leave the key out")),
                    false => Ok(Values(values)),
                }
            }

            // Inside the visitor an error still gets its line and column.
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Values, A::Error> {
                let bounds = Bounds::deserialize(MapAccessDeserializer::new(map))?;
                bounds.values().map(Values).map_err(Error::custom)
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}
