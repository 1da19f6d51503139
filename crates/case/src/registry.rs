//! Registries of named items, built-in or from other crates, in order of registration.

use crate::{Name, UnknownName};
use std::fmt;
use std::sync::{PoisonError, RwLock};

/// Items by name, with the lifetime of the process; usable as a `static`.
///
/// ```
/// use calorimeter_case::Registry;
///
/// static GREETINGS: Registry<str> = Registry::new("greeting");
/// GREETINGS.add("morning", "good morning")?;
/// assert_eq!(GREETINGS.find("morning"), Ok("good morning"));
/// assert_eq!(GREETINGS.find("mornin").unwrap_err().nearest.as_deref(), Some("morning"));
/// # Ok::<(), calorimeter_case::NameTaken>(())
/// ```
#[derive(Debug)]
pub struct Registry<T: ?Sized + 'static> {
    what: &'static str,
    entries: RwLock<Vec<(Name, &'static T)>>,
}

/// Error: the name is already registered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NameTaken {
    /// Category of the item: `recipe`, `operator`, …
    pub what: &'static str,
    /// Name.
    pub name: Name,
}

impl NameTaken {
    /// Creates the error.
    pub fn new(what: &'static str, name: Name) -> Self {
        Self { what, name }
    }
}

impl fmt::Display for NameTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, name } = self;
        write!(f, "the {what} {:?} is registered already; choose another name", name.as_str())
    }
}

impl std::error::Error for NameTaken {}

impl<T: ?Sized + 'static> Registry<T> {
    /// Creates an empty registry of items of category `what`.
    pub const fn new(what: &'static str) -> Self {
        Self { what, entries: RwLock::new(Vec::new()) }
    }

    /// Adds an item under a free name.
    pub fn add(&self, name: impl Into<Name>, item: &'static T) -> Result<(), NameTaken> {
        let name = name.into();
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.iter().any(|(known, _)| *known == name) {
            return Err(NameTaken::new(self.what, name));
        }
        entries.push((name, item));
        Ok(())
    }

    /// Returns the item with this name; the error suggests the nearest name.
    pub fn find(&self, name: &str) -> Result<&'static T, UnknownName> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let found = entries.iter().find(|(known, _)| known.as_str() == name).map(|(_, item)| *item);
        found.ok_or_else(|| UnknownName::new(self.what, name, entries.iter().map(|(known, _)| known.as_str())))
    }

    /// All items, in order of registration.
    pub fn all(&self) -> Vec<&'static T> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).iter().map(|(_, item)| *item).collect()
    }

    /// All names, in order of registration.
    pub fn names(&self) -> Vec<Name> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).iter().map(|(name, _)| *name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_ordered() {
        static THINGS: Registry<str> = Registry::new("thing");
        THINGS.add("second", "2").unwrap();
        THINGS.add(String::from("first"), "1").unwrap();
        assert_eq!(THINGS.all(), ["2", "1"]);
        assert_eq!(THINGS.add("first", "3"), Err(NameTaken::new("thing", "first".into())));
        assert_eq!(THINGS.find("first"), Ok("1"));
        let error = UnknownName::new("thing", "frist", ["second", "first"]);
        assert_eq!(error.nearest.as_deref(), Some("first"));
        assert_eq!(THINGS.find("frist"), Err(error));
    }
}
