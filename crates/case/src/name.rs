//! Interned names, which are cheap to copy and compare.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// An interned name with the lifetime of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(&'static str);

impl Name {
    /// Creates a name from a string constant.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// Name as text.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl From<&'static str> for Name {
    fn from(name: &'static str) -> Self {
        Self(name)
    }
}

/// Interns a name that was created at run time; equal names are stored once.
impl From<String> for Name {
    fn from(name: String) -> Self {
        static INTERNED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let mut interned = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = interned.get(name.as_str()) {
            return Self(known);
        }
        let name: &'static str = name.leak();
        interned.insert(name);
        Self(name)
    }
}

impl From<Cow<'static, str>> for Name {
    fn from(name: Cow<'static, str>) -> Self {
        match name {
            Cow::Borrowed(name) => name.into(),
            Cow::Owned(name) => name.into(),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl std::str::FromStr for Name {
    type Err = std::convert::Infallible;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Ok(name.to_owned().into())
    }
}

crate::serde_by_name!(Name, "a name");
