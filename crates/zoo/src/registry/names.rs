//! Lists of registered models and operators, and lookup by name.

use super::zoo;
use crate::{Model, ModelInfo, Operator, Subject, ZooError};
use calorimeter_case::UnknownName;
use std::str::FromStr;

impl Model {
    /// Returns every model in order of registration, built-in ones first.
    pub fn all() -> Vec<Self> {
        zoo().models.all().into_iter().map(Self::new).collect()
    }

    /// Returns every model for `calorimeter list`.
    pub fn infos() -> Vec<ModelInfo> {
        let info = |model: Self| ModelInfo { name: model.name().to_owned(), description: model.description() };
        Self::all().into_iter().map(info).collect()
    }
}

impl FromStr for Model {
    type Err = ZooError;

    fn from_str(name: &str) -> Result<Self, ZooError> {
        let all = Self::all();
        let found = all.iter().find(|model| model.matches_name(name)).copied();
        found.ok_or_else(|| UnknownName::new("model", name, all.iter().map(|model| model.name())).into())
    }
}

calorimeter_case::serde_by_name!(Model, "a model of the zoo");

impl Operator {
    /// Returns every operator in order of registration, built-in ones first.
    pub fn all() -> Vec<Self> {
        zoo().operators.all().into_iter().map(Self::new).collect()
    }
}

impl FromStr for Operator {
    type Err = ZooError;

    fn from_str(name: &str) -> Result<Self, ZooError> {
        Ok(Self::new(zoo().operators.find(name)?))
    }
}

calorimeter_case::serde_by_name!(Operator, "an operator of the zoo");

impl Subject {
    /// Returns the names of all models and operators.
    pub fn names() -> Vec<String> {
        let models = Model::infos().into_iter().map(|info| info.name);
        models.chain(Operator::all().iter().map(ToString::to_string)).collect()
    }
}

impl FromStr for Subject {
    type Err = ZooError;

    fn from_str(name: &str) -> Result<Self, ZooError> {
        let operator = Operator::all().into_iter().find(|operator| operator.info().name == name);
        match operator {
            Some(operator) => Ok(Self::Operator(operator)),
            None => name.parse().map(Self::Model).map_err(|_| UnknownName::new("model", name, Self::names()).into()),
        }
    }
}
