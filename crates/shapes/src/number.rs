//! Bounded integers whose errors contain the name of the parameter.

use crate::ShapeError;
use calorimeter_case::excerpt;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use std::fmt;

/// Name and bounds of an integer. As a serde seed it rejects other values inside the visitor, so that errors have a
/// position.
#[derive(Clone, Copy)]
pub(crate) struct WholeNumber<'a> {
    pub name: &'a str,
    pub from: u64,
    pub to: u64,
}

impl WholeNumber<'_> {
    pub(crate) fn check(&self, value: u64) -> Result<u64, ShapeError> {
        if (self.from..=self.to).contains(&value) { Ok(value) } else { Err(self.reject(value)) }
    }

    pub(crate) fn reject(&self, found: impl fmt::Display) -> ShapeError {
        let found = excerpt(&found.to_string(), 30);
        ShapeError::Number { name: self.name.to_owned(), found, from: self.from, to: self.to }
    }
}

impl<'de> serde::de::DeserializeSeed<'de> for WholeNumber<'_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for WholeNumber<'_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as a whole number from {} to {}", self.name, self.from, self.to)
    }

    fn visit_u64<E: Error>(self, found: u64) -> Result<u64, E> {
        self.check(found).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, found: i64) -> Result<u64, E> {
        u64::try_from(found).map_err(|_| self.reject(found)).and_then(|value| self.check(value)).map_err(E::custom)
    }

    fn visit_u128<E: Error>(self, found: u128) -> Result<u64, E> {
        Err(E::custom(self.reject(found)))
    }

    fn visit_i128<E: Error>(self, found: i128) -> Result<u64, E> {
        Err(E::custom(self.reject(found)))
    }

    fn visit_f64<E: Error>(self, found: f64) -> Result<u64, E> {
        Err(E::custom(self.reject(format_args!("{found:?}"))))
    }

    fn visit_str<E: Error>(self, found: &str) -> Result<u64, E> {
        Err(E::custom(self.reject(format_args!("{found:?}"))))
    }

    fn visit_bool<E: Error>(self, found: bool) -> Result<u64, E> {
        Err(E::custom(self.reject(found)))
    }

    fn visit_unit<E: Error>(self) -> Result<u64, E> {
        Err(E::custom(self.reject("empty")))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<u64, A::Error> {
        Err(A::Error::custom(self.reject("a list")))
    }
}
