//! What can be named: ours and that of other crates, in the order of registration.

use crate::{Name, UnknownName};
use std::fmt;
use std::sync::{PoisonError, RwLock};

/// Things by their names, for the whole life of a process. It may be a `static`.
///
/// ```
/// use calorimeter_case::Registry;
///
/// static GREETINGS: Registry<str> = Registry::new("greeting");
/// GREETINGS.add("morning", "good morning")?;
/// assert_eq!(GREETINGS.find("morning"), Ok("good morning"));
/// assert!(GREETINGS.find("mornin").unwrap_err().to_string().contains("did you mean \"morning\"?"));
/// # Ok::<(), calorimeter_case::NameTaken>(())
/// ```
#[derive(Debug)]
pub struct Registry<T: ?Sized + 'static> {
    what: &'static str,
    entries: RwLock<Vec<(Name, &'static T)>>,
}

/// Something else has the name already.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NameTaken {
    /// What was being registered: `recipe`, `operator`, …
    pub what: &'static str,
    /// The name.
    pub name: Name,
}

impl NameTaken {
    /// The error for a name that something else has.
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
    /// An empty registry of things that are called `what`.
    pub const fn new(what: &'static str) -> Self {
        Self { what, entries: RwLock::new(Vec::new()) }
    }

    /// Adds one under a name that nothing has yet.
    pub fn add(&self, name: impl Into<Name>, thing: &'static T) -> Result<(), NameTaken> {
        let name = name.into();
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.iter().any(|(known, _)| *known == name) {
            return Err(NameTaken::new(self.what, name));
        }
        entries.push((name, thing));
        Ok(())
    }

    /// What has this name; the error suggests the nearest.
    pub fn find(&self, name: &str) -> Result<&'static T, UnknownName> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let found = entries.iter().find(|(known, _)| known.as_str() == name).map(|(_, thing)| *thing);
        found.ok_or_else(|| UnknownName::new(self.what, name, entries.iter().map(|(known, _)| known.as_str())))
    }

    /// Everything, in the order in which it was added.
    pub fn all(&self) -> Vec<&'static T> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).iter().map(|(_, thing)| *thing).collect()
    }

    /// Every name, in the order in which they were added.
    pub fn names(&self) -> Vec<Name> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).iter().map(|(name, _)| *name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once_and_order_is_kept() {
        static THINGS: Registry<str> = Registry::new("thing");
        THINGS.add("second", "2").unwrap();
        THINGS.add(String::from("first"), "1").unwrap();
        assert_eq!(THINGS.all(), ["2", "1"]);
        let error = THINGS.add("first", "3").unwrap_err().to_string();
        assert_eq!(error, r#"the thing "first" is registered already; choose another name"#);
        assert_eq!(THINGS.find("first"), Ok("1"));
        let error = THINGS.find("frist").unwrap_err().to_string();
        assert_eq!(error, r#"unknown thing "frist"; did you mean "first"?; known: second, first"#);
    }
}
