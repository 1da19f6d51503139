//! Registry of built-in recipes and recipes of other crates.

use crate::names::spelled_out;
use crate::{Family, RecipeError, Scheme, schemes};
use calorimeter_case::{Name, Registry};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

static FAMILIES: LazyLock<Registry<Family>> = LazyLock::new(|| {
    let families = Registry::new("recipe");
    for &family in schemes::OURS {
        add(&families, family).expect("built-in recipe names are unique");
    }
    families
});

/// Registers a family behind the built-in ones.
pub(crate) fn register(family: &'static Family) -> Result<(), RecipeError> {
    static REGISTRATION: Mutex<()> = Mutex::new(());
    let _guard = REGISTRATION.lock().unwrap_or_else(PoisonError::into_inner);
    add(&FAMILIES, family)
}

fn add(families: &Registry<Family>, family: &'static Family) -> Result<(), RecipeError> {
    let Some(first) = family.spellings.first() else {
        return Err(RecipeError::Unreadable { name: String::new() });
    };
    let known = families.all();
    for name in names(family) {
        let canonical = (family.parse)(&name).ok_or(RecipeError::Unreadable { name: name.clone() })?.to_string();
        if (family.parse)(&canonical).is_none() {
            return Err(RecipeError::Unreadable { name: canonical });
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

/// Names that a family lists; each pattern is expanded with one group size.
fn names(family: &Family) -> Vec<String> {
    family.spellings.iter().flat_map(|pattern| spelled_out(pattern, &["64".into()])).collect()
}

/// All families in order of registration.
pub(crate) fn families() -> Vec<&'static Family> {
    FAMILIES.all()
}

/// Finds the scheme of a name; each scheme is created once.
pub(crate) fn find(name: &str) -> Option<(Name, &'static dyn Scheme)> {
    static SCHEMES: LazyLock<Mutex<HashMap<&'static str, &'static dyn Scheme>>> = LazyLock::new(Mutex::default);
    let schemes = || SCHEMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((name, scheme)) = schemes().get_key_value(name) {
        return Some((Name::new(name), *scheme));
    }
    let scheme = families().iter().find_map(|family| (family.parse)(name))?;
    let name = Name::from(scheme.to_string());
    // An alias may have created it.
    let scheme = *schemes().entry(name.as_str()).or_insert_with(|| Box::leak(scheme));
    Some((name, scheme))
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
            // Not listed, but parsed by a built-in family.
            (family("float8_rowwise", everything), "float8_rowwise"),
            // A new name, and a built-in one that the family parses without listing it.
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
