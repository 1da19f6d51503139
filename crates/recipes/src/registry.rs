//! Registry of built-in recipes and recipes of other crates.

use crate::{RecipeError, RecipeFamily, Scheme, schemes};
use calorimeter_case::{Name, Registry, expand_pattern};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

static FAMILIES: LazyLock<Registry<RecipeFamily>> = LazyLock::new(|| {
    let families = Registry::new("recipe");
    for &family in schemes::BUILT_IN {
        add(&families, family).expect("built-in recipe names are unique");
    }
    families
});

/// Registers a family behind the built-in ones.
pub(crate) fn register(family: &'static RecipeFamily) -> Result<(), RecipeError> {
    static REGISTRATION: Mutex<()> = Mutex::new(());
    let _guard = REGISTRATION.lock().unwrap_or_else(PoisonError::into_inner);
    add(&FAMILIES, family)
}

fn add(families: &Registry<RecipeFamily>, family: &'static RecipeFamily) -> Result<(), RecipeError> {
    let Some(first) = family.spellings.first() else {
        return Err(RecipeError::UnparsableName { name: String::new() });
    };
    let known = families.all();
    for name in listed_names(family) {
        let canonical = (family.parse)(&name).ok_or(RecipeError::UnparsableName { name: name.clone() })?.to_string();
        if (family.parse)(&canonical).is_none() {
            return Err(RecipeError::UnparsableName { name: canonical });
        }
        if known.iter().any(|known| (known.parse)(&name).is_some()) {
            return Err(RecipeError::NameTaken { name });
        }
    }
    if let Some(name) = known.iter().flat_map(|known| listed_names(known)).find(|name| (family.parse)(name).is_some()) {
        return Err(RecipeError::NameTaken { name });
    }
    families.add(*first, family).map_err(|taken| RecipeError::NameTaken { name: taken.name.to_string() })
}

/// Names that a family lists; each pattern is expanded with one group size.
fn listed_names(family: &RecipeFamily) -> Vec<String> {
    family.spellings.iter().flat_map(|pattern| expand_pattern(pattern, &["64".into()])).collect()
}

/// All families in order of registration.
pub(crate) fn families() -> Vec<&'static RecipeFamily> {
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
    use crate::{Dtype, QuantConfig, Recipe};
    use std::any::Any;

    fn family(name: &'static str, parse: fn(&str) -> Option<Box<dyn Scheme>>) -> &'static RecipeFamily {
        Box::leak(Box::new(RecipeFamily { spellings: Vec::leak(vec![name]), about: "", examples: &[], parse }))
    }

    #[test]
    fn conflicting_names_are_rejected() {
        let everything = |_: &str| Some(Box::new(Baseline) as Box<dyn Scheme>);
        for (family, taken) in [
            (family("baseline", everything), "baseline"),
            // Not listed, but parsed by a built-in family.
            (family("float8_rowwise", everything), "float8_rowwise"),
            // A new name, and a built-in one that the family parses without listing it.
            (family("mine", everything), "baseline"),
        ] {
            let error = Recipe::register(family).unwrap_err();
            assert_eq!(error, RecipeError::NameTaken { name: taken.into() });
        }
        let silent = family("silent", |_| None);
        assert_eq!(Recipe::register(silent), Err(RecipeError::UnparsableName { name: "silent".into() }));
    }

    #[test]
    fn aliases_share_one_scheme() {
        let [one, other] = ["int8dq", "int8_rowwise"].map(|name| name.parse::<Recipe>().unwrap());
        assert_eq!(one, other);
        assert!(std::ptr::addr_eq(one.scheme(), other.scheme()));
        assert_eq!("baseline".parse::<Recipe>().unwrap(), Recipe::BASELINE);
        assert!((Recipe::BASELINE.scheme() as &dyn Any).is::<Baseline>());
        assert_eq!(Recipe::BASELINE.quant_config(Dtype::F16, None), Ok(QuantConfig::unquantized(Dtype::F16)));
    }
}
