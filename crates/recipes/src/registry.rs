//! The recipes that can be named: ours, and those that other crates register.

use crate::names::spelled_out;
use crate::{Family, RecipeError, Scheme, schemes};
use calorimeter_case::{Name, Registry};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

static FAMILIES: LazyLock<Registry<Family>> = LazyLock::new(|| {
    let families = Registry::new("recipe");
    for &family in schemes::OURS {
        add(&families, family).expect("no two recipes of ours have one name");
    }
    families
});

/// Adds a family after ours.
pub(crate) fn register(family: &'static Family) -> Result<(), RecipeError> {
    static ONE_BY_ONE: Mutex<()> = Mutex::new(());
    let _turn = ONE_BY_ONE.lock().unwrap_or_else(PoisonError::into_inner);
    add(&FAMILIES, family)
}

fn add(families: &Registry<Family>, family: &'static Family) -> Result<(), RecipeError> {
    let Some(first) = family.spellings.first() else {
        return Err(RecipeError::Unreadable { name: String::new() });
    };
    let known = families.all();
    for name in names(family) {
        let shown = (family.parse)(&name).ok_or(RecipeError::Unreadable { name: name.clone() })?.to_string();
        if (family.parse)(&shown).is_none() {
            return Err(RecipeError::Unreadable { name: shown });
        }
        if known.iter().any(|known| (known.parse)(&name).is_some()) {
            return Err(RecipeError::Taken { name });
        }
    }
    if let Some(name) = known.iter().flat_map(|known| names(known)).find(|name| (family.parse)(name).is_some()) {
        return Err(RecipeError::Taken { name });
    }
    families.add(*first, family).map_err(|taken| RecipeError::Taken { name: taken.name.to_string() })
}

/// The names that a family lists, each pattern with one group.
fn names(family: &Family) -> Vec<String> {
    family.spellings.iter().flat_map(|pattern| spelled_out(pattern, &["64".into()])).collect()
}

/// Every family, in the order of registration.
pub(crate) fn families() -> Vec<&'static Family> {
    FAMILIES.all()
}

/// The scheme that has this name; each is made once.
pub(crate) fn find(name: &str) -> Option<(Name, &'static dyn Scheme)> {
    static MADE: LazyLock<Mutex<HashMap<&'static str, &'static dyn Scheme>>> = LazyLock::new(Mutex::default);
    let made = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((name, scheme)) = made().get_key_value(name) {
        return Some((Name::new(name), *scheme));
    }
    let scheme = families().iter().find_map(|family| (family.parse)(name))?;
    let name = Name::from(scheme.to_string());
    // Another spelling may have made it.
    let kept = *made().entry(name.as_str()).or_insert_with(|| Box::leak(scheme));
    Some((name, kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes::baseline::Baseline;
    use crate::{Dtype, Recipe, Treatment};
    use std::any::Any;

    fn family(name: &'static str, parse: fn(&str) -> Option<Box<dyn Scheme>>) -> &'static Family {
        Box::leak(Box::new(Family { spellings: Vec::leak(vec![name]), about: "", typical: &[], parse }))
    }

    #[test]
    fn a_name_that_stands_for_another_recipe_is_refused() {
        let everything = |_: &str| Some(Box::new(Baseline) as Box<dyn Scheme>);
        for (family, taken) in [
            (family("baseline", everything), "baseline"),
            // Listed by none and read by one of ours.
            (family("float8_rowwise", everything), "float8_rowwise"),
            // A name of its own, and one of ours that it does not list.
            (family("mine", everything), "baseline"),
        ] {
            let error = Recipe::register(family).unwrap_err();
            assert_eq!(error, RecipeError::Taken { name: taken.into() });
        }
        let silent = family("silent", |_| None);
        assert_eq!(Recipe::register(silent), Err(RecipeError::Unreadable { name: "silent".into() }));
    }

    #[test]
    fn two_spellings_are_one_recipe_whose_scheme_is_made_once() {
        let [one, other] = ["int8dq", "int8_rowwise"].map(|name| name.parse::<Recipe>().unwrap());
        assert_eq!(one, other);
        assert!(std::ptr::addr_eq(one.scheme(), other.scheme()));
        assert_eq!("baseline".parse::<Recipe>().unwrap(), Recipe::BASELINE);
        assert!((Recipe::BASELINE.scheme() as &dyn Any).is::<Baseline>());
        assert_eq!(Recipe::BASELINE.treatment(Dtype::F16, None), Ok(Treatment::none(Dtype::F16)));
    }
}
