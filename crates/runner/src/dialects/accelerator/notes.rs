//! Notes about keys of a file that have no effect.

use super::file::AcceleratorFile;
use calorimeter_zoo::Suite;
use std::collections::HashSet;

/// Lists keys and parameters without effect, each once.
pub(super) fn notes(file: &AcceleratorFile) -> Vec<String> {
    let ignored = file.benchmarks.iter().flat_map(|benchmark| benchmark.ignored.clone());
    let unknown = file.benchmarks.iter().flat_map(|benchmark| benchmark.unknown.clone());
    let computed = file.benchmarks.iter().filter(|benchmark| benchmark.operator.info().suite != Suite::Elsewhere);
    let parameters = computed.flat_map(|benchmark| {
        let operator = benchmark.operator;
        let known = operator.info().axes;
        let names = benchmark.parameters().filter(|name| !known.contains(&name.as_str()));
        names.map(move |name| format!("{name} of {operator}"))
    });
    let lists = [
        ("ignored keys", deduplicated(ignored)),
        ("unknown keys", deduplicated(file.unknown.iter().cloned().chain(unknown))),
        ("ignored parameters", deduplicated(parameters)),
    ];
    let lists = lists.into_iter().filter(|(_, keys)| !keys.is_empty());
    lists.map(|(title, keys)| format!("{title}: {}", keys.join(", "))).collect()
}

fn deduplicated(keys: impl Iterator<Item = String>) -> Vec<String> {
    let mut known = HashSet::new();
    keys.filter(|key| known.insert(key.clone())).collect()
}
