//! Names that peers' configuration files use and this version cannot run.
//!
//! They are read exactly, parameters included, so that such files load and every case becomes a record that says why it
//! has no time. A recipe leaves this table when its file arrives.

use crate::{Dtype, Linear, RecipeError, Scheme, Weight};
use burn::tensor::backend::Backend;
use std::fmt;

/// A piece of a pattern of names.
enum Part {
    /// This text.
    Text(&'static str),
    /// One of these.
    OneOf(&'static [&'static str]),
    /// Any whole number from 1.
    Number,
    /// This text, or nothing.
    Maybe(&'static str),
    /// A dash and any whole number from 1, or nothing.
    MaybeNumber,
}

use Part::{Maybe, MaybeNumber, Number, OneOf, Text};

/// Every reserved pattern.
const PATTERNS: &[&[Part]] = &[
    &[Text("int8dq"), Maybe("_prefill_wo_decode")],
    &[Text("int4wo-"), OneOf(&["32", "64", "128", "256"]), Maybe("-hqq")],
    &[Text("uintx-"), OneOf(&["1", "2", "3", "4", "5", "6", "7", "8"]), Text("-"), Number, Maybe("-hqq")],
    &[Text("gemlitewo-"), OneOf(&["4", "8"]), MaybeNumber],
    &[Text("fp6")],
    &[Text("int8adq-int4w-symm")],
    &[Text("marlin"), Maybe("-qqq")],
    &[
        Text("int8_dynamic_activation_intx_weight-"),
        OneOf(&["1", "2", "3", "4", "5", "6", "7", "8"]),
        Text("-"),
        Number,
        Text("-"),
        OneOf(&["true", "false"]),
    ],
    &[Text("float8wo")],
    &[Text("float8dq"), OneOf(&["-tensor", "-row", ""])],
    &[Text("mxfp8")],
    &[Text("mxfp4")],
    &[Text("nvfp4")],
];

/// A known recipe name without arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reserved {
    name: [u8; Self::LONGEST],
    len: u8,
}

impl Reserved {
    /// The longest name that fits: names are kept in place so that a recipe stays a small `Copy` value.
    const LONGEST: usize = 63;

    fn name(&self) -> &str {
        // The bytes were copied from a `str` whole.
        std::str::from_utf8(&self.name[..usize::from(self.len)]).unwrap_or_default()
    }

    fn unsupported(&self) -> RecipeError {
        RecipeError::Unsupported(format!("recipe {self} has no implementation in this version of calorimeter"))
    }
}

/// Whether the name is made of exactly these parts.
fn matches(parts: &[Part], name: &str) -> bool {
    let Some((part, rest)) = parts.split_first() else { return name.is_empty() };
    let then = |prefix: &str| name.strip_prefix(prefix).is_some_and(|name| matches(rest, name));
    let number = |name: &str| {
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        let whole = (1..=9).contains(&digits) && !name.starts_with('0');
        whole && matches(rest, &name[digits..])
    };
    match part {
        Text(text) => then(text),
        OneOf(texts) => texts.iter().any(|text| then(text)),
        Maybe(text) => then(text) || matches(rest, name),
        Number => number(name),
        MaybeNumber => name.strip_prefix('-').is_some_and(number) || matches(rest, name),
    }
}

fn spelled(parts: &[Part]) -> String {
    parts
        .iter()
        .map(|part| match part {
            Text(text) => (*text).to_owned(),
            OneOf(texts) if texts.contains(&"") => {
                format!("[{}]", texts.iter().filter(|t| !t.is_empty()).copied().collect::<Vec<_>>().join("|"))
            }
            OneOf(texts) => format!("{{{}}}", texts.join("|")),
            Number => "{group}".to_owned(),
            Maybe(text) => format!("[{text}]"),
            MaybeNumber => "[-{group}]".to_owned(),
        })
        .collect()
}

impl fmt::Display for Reserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Scheme for Reserved {
    const ABOUT: &'static str = "known from other tools; not implemented in this version";

    fn spellings() -> Vec<String> {
        PATTERNS.iter().map(|parts| spelled(parts)).collect()
    }

    fn parse(text: &str) -> Option<Self> {
        let fits = text.len() <= Self::LONGEST && PATTERNS.iter().any(|parts| matches(parts, text));
        fits.then(|| {
            let mut name = [0; Self::LONGEST];
            name[..text.len()].copy_from_slice(text.as_bytes());
            Self { name, len: text.len() as u8 }
        })
    }

    fn check(&self, _: u64, _: u64, _: Dtype) -> Result<(), RecipeError> {
        Err(self.unsupported())
    }

    fn weight_bytes(&self, n: u64, k: u64, dtype: Dtype) -> u64 {
        n * k * dtype.bytes()
    }

    fn roundings(&self) -> u32 {
        1
    }

    fn dequantised(&self, weight: &Weight) -> Weight {
        weight.clone()
    }

    fn linear<B: Backend>(&self, _: &Weight, _: &B::Device) -> Result<Box<dyn Linear<B>>, RecipeError> {
        Err(self.unsupported())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_names_are_read_exactly() {
        for name in [
            "int8dq",
            "int8dq_prefill_wo_decode",
            "int4wo-32",
            "int4wo-256-hqq",
            "uintx-3-64",
            "uintx-8-128-hqq",
            "gemlitewo-4",
            "gemlitewo-8-128",
            "fp6",
            "int8adq-int4w-symm",
            "marlin",
            "marlin-qqq",
            "int8_dynamic_activation_intx_weight-4-32-false",
            "float8wo",
            "float8dq",
            "float8dq-row",
            "mxfp8",
            "nvfp4",
        ] {
            assert_eq!(Reserved::parse(name).map(|r| r.to_string()).as_deref(), Some(name));
        }
        for name in [
            "",
            "int8",
            "int8dqx",
            "xint8dq",
            "int4wo",
            "int4wo-33",
            "int4wo-32-",
            "int4wo-32-hqqq",
            "uintx-9-64",
            "uintx-4-0",
            "uintx-4-064",
            "gemlitewo-3",
            "gemlitewo-4-",
            "float8dq-",
            "float8dq-rows",
            "FP6",
            "int8_dynamic_activation_intx_weight-4-32-maybe",
            "baseline",
            "int8wo",
        ] {
            assert_eq!(Reserved::parse(name), None, "{name}");
        }
    }
}
