//! Built-in shape generators, one file each or one file per family.

mod csv;
mod custom;
mod decode;
mod llama;
mod model;
mod powers;
mod published;
mod sweep;

use crate::Generator;

/// Built-in generators, in display order.
pub(crate) const BUILT_IN: &[&Generator] = &[
    &custom::CUSTOM,
    &llama::LLAMA,
    &powers::POW2,
    &powers::POW2_EXTENDED,
    &sweep::SMALL_SWEEP,
    &sweep::SWEEP,
    &published::LLAMA4,
    &published::DEEPSEEK_V3_236B,
    &published::DEEPSEEK_V3_671B,
    &published::QWEN3_32B,
    &published::GEMMA3_27B,
    &decode::DECODE,
    &model::MODEL,
    &csv::CSV,
];

/// Test helper: `name m k n` of each shape of a source written in YAML.
#[cfg(test)]
pub(crate) fn listing(yaml: &str) -> Vec<String> {
    let source: crate::ShapeSource = serde_yaml::from_str(yaml).unwrap();
    let shapes = source.shapes().unwrap();
    if let Some(count) = source.count() {
        assert_eq!(count, shapes.len() as u64, "{yaml}: the count and the shapes differ");
    }
    shapes.iter().map(|s| format!("{} {} {} {}", s.name, s.shape.m(), s.shape.k(), s.shape.n())).collect()
}
