//! Names of models and operators in configuration files.

use crate::entries::word;
use calorimeter_zoo::{Operator, Subject, ZooError};
use std::fmt;
use std::str::FromStr;

/// Name of a model or operator of the zoo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModelName(pub Subject);

impl FromStr for ModelName {
    type Err = ZooError;

    fn from_str(name: &str) -> Result<Self, ZooError> {
        name.parse().map(Self)
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Name of an operator of the zoo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OperatorName(pub Operator);

impl FromStr for OperatorName {
    type Err = ZooError;

    fn from_str(name: &str) -> Result<Self, ZooError> {
        name.parse().map(Self)
    }
}

impl fmt::Display for OperatorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

word!(ModelName, "the name of a model or operator", {
    let names = Subject::names();
    let patterns: Vec<String> = names.iter().filter_map(|name| case_insensitive_pattern(name)).collect();
    let patterns = patterns.into_iter().map(|pattern| serde_json::json!({ "pattern": pattern }));
    let known: Vec<serde_json::Value> = std::iter::once(serde_json::json!({ "enum": names })).chain(patterns).collect();
    schemars::json_schema!({ "type": "string", "anyOf": known })
});
/// Regular expression for a name whose last word may be written in capitals.
fn case_insensitive_pattern(name: &str) -> Option<String> {
    let (before, last) = name.rsplit_once('_')?;
    let capitals = format!("{before}_{}", last.to_uppercase()).parse::<Subject>();
    let either = |c: char| match c.is_alphabetic() {
        true => format!("[{}{}]", c.to_lowercase(), c.to_uppercase()),
        false => c.to_string(),
    };
    capitals.is_ok().then(|| format!("^{before}_{}$", last.chars().map(either).collect::<String>()))
}

word!(OperatorName, "the name of an operator", {
    let names: Vec<String> = Operator::all().iter().map(ToString::to_string).collect();
    schemars::json_schema!({ "enum": names })
});
