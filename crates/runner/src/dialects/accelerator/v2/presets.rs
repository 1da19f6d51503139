//! Language models of the key `model`. A language model defines sizes that are parameters of benchmarks.

use crate::dialects::accelerator::sweep::{ParameterPairs, ParameterValue};
use crate::entries::word;
use calorimeter_case::UnknownName;
use std::fmt;
use std::str::FromStr;

/// Language model with the sizes that benchmarks use.
#[derive(Debug)]
struct ModelPreset {
    name: &'static str,
    sizes: [(&'static str, u64); 5],
}

const fn preset(name: &'static str, seq_len: u64, q_heads: u64, kv_heads: u64, model_dim: u64) -> ModelPreset {
    let sizes = [
        ("seq_len", seq_len),
        ("num_q_heads", q_heads),
        ("num_kv_heads", kv_heads),
        ("head_dim", 128),
        ("model_dim", model_dim),
    ];
    ModelPreset { name, sizes }
}

static PRESETS: [ModelPreset; 4] = [
    preset("LLM-36B", 8192, 56, 56, 7168),
    preset("LLM-100B", 16384, 64, 8, 8192),
    preset("LLM-200B", 16384, 128, 8, 16384),
    preset("LLM-400B", 16384, 128, 8, 16384),
];

/// Name of a language model.
#[derive(Debug, Clone, Copy)]
pub(super) struct PresetName(&'static ModelPreset);

impl PresetName {
    /// Parameters with their values.
    pub(super) fn sizes(self) -> ParameterPairs {
        self.0.sizes.map(|(name, size)| (name.to_owned(), ParameterValue::Integer(size))).into()
    }
}

impl FromStr for PresetName {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let found = PRESETS.iter().find(|preset| preset.name == name);
        found.map(Self).ok_or_else(|| UnknownName::new("model", name, PRESETS.iter().map(|preset| preset.name)))
    }
}

impl fmt::Display for PresetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

word!(PresetName, "the name of a language model", {
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    schemars::json_schema!({ "enum": names })
});
