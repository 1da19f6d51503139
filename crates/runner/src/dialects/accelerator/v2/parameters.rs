//! Parameters of benchmarks: types, defaults, and values of a case.

use crate::dialects::accelerator::sweep::ParameterValue;
use calorimeter_case::UnknownName;
use calorimeter_recipes::{Dtype, Element};
use serde_json::Value;

/// Name of a parameter with its type and default.
pub(super) type NamedParameter = (&'static str, ParameterDefault);

/// Type of a parameter with its default.
#[derive(Debug, Clone, Copy)]
pub(super) enum ParameterDefault {
    Integer(u64),
    Number(f64),
    Flag(bool),
    /// Name of a dtype.
    Dtype(&'static str),
    /// Word from a list; the first word is the default.
    Word(&'static [&'static str]),
    /// Text without effect in this program.
    Text(Option<&'static str>),
}

/// Parameters of every benchmark, in the order of its results.
pub(super) const GENERAL: &[NamedParameter] = &[
    ("warmup_tries", ParameterDefault::Integer(10)),
    ("num_runs", ParameterDefault::Integer(10)),
    ("min_duration_s", ParameterDefault::Number(0.0)),
    ("xprof_timing", ParameterDefault::Flag(false)),
    ("xprof_dir", ParameterDefault::Text(Some("/tmp/tensorboard"))),
    ("system", ParameterDefault::Text(Some(""))),
    ("use_trace_roofline", ParameterDefault::Flag(false)),
    ("dtype", ParameterDefault::Dtype("bfloat16")),
];

/// Parameters without effect in this program.
pub(super) const IGNORED: [&str; 6] =
    ["warmup_tries", "xprof_dir", "system", "use_trace_roofline", "mesh_shape", "sharding_strategy"];

impl ParameterDefault {
    fn value(self) -> Value {
        match self {
            Self::Integer(number) => number.into(),
            Self::Number(number) => number.into(),
            Self::Flag(flag) => flag.into(),
            Self::Dtype(name) => name.into(),
            Self::Word(words) => words[0].into(),
            Self::Text(text) => text.into(),
        }
    }

    /// Converts a value of a file.
    pub(super) fn read(self, name: &str, value: &ParameterValue) -> Result<Value, String> {
        let invalid = |expected: &str| Err(format!("invalid {name} {:?}: expected {expected}", value.to_string()));
        let text = value.to_string();
        match (self, value) {
            (Self::Integer(_), ParameterValue::Integer(number)) => Ok((*number).into()),
            (Self::Integer(_), _) => invalid("an integer from 0"),
            (Self::Number(_), _) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(number.into()),
                _ => invalid("a number"),
            },
            (Self::Flag(_), _) => match text.to_lowercase().parse::<bool>() {
                Ok(flag) => Ok(flag.into()),
                Err(_) => invalid("true or false"),
            },
            (Self::Dtype(_), _) => match text.parse::<Element>() {
                Ok(_) => Ok(text.into()),
                Err(error) => Err(format!("{name}: {error}")),
            },
            (Self::Word(words), _) if words.contains(&text.to_lowercase().as_str()) => Ok(text.to_lowercase().into()),
            (Self::Word(words), _) => {
                Err(format!("{name}: {}", UnknownName::new("value", &text, words.iter().copied())))
            }
            (Self::Text(_), _) => Ok(text.into()),
        }
    }
}

/// Parameters of a case, in the order of its results.
#[derive(Debug, Clone)]
pub(super) struct CaseParameters(Vec<(&'static str, Value)>);

impl CaseParameters {
    /// Defaults of a benchmark.
    pub(super) fn defaults(own: &'static [NamedParameter]) -> Self {
        Self(GENERAL.iter().chain(own).map(|(name, default)| (*name, default.value())).collect())
    }

    /// Replaces the value of a parameter.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        self.0.iter_mut().filter(|(known, _)| *known == name).for_each(|(_, old)| *old = value.clone());
    }

    /// Names with values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    fn get(&self, name: &str) -> &Value {
        self.0.iter().find(|(known, _)| *known == name).map_or(&Value::Null, |(_, value)| value)
    }

    /// Value as text.
    pub(super) fn display(&self, name: &str) -> String {
        let value = self.get(name);
        value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
    }

    pub(super) fn integer(&self, name: &str) -> u64 {
        self.get(name).as_u64().unwrap_or(0)
    }

    pub(super) fn number(&self, name: &str) -> f64 {
        self.get(name).as_f64().unwrap_or(0.0)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.get(name).as_bool().unwrap_or(false)
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.get(name).as_str().unwrap_or_default()
    }

    /// Value of a dtype parameter. The value was validated when the file was read.
    pub(super) fn element(&self, name: &str) -> Element {
        self.text(name).parse().unwrap_or(Element::Float(Dtype::Bf16))
    }
}
