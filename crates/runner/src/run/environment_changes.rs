//! Comparison of the environments in which parts of a resumed run were measured.

use calorimeter_case::excerpt;
use calorimeter_sinks::journal::Resumed;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Returns a note per variable, thread count or device fact that changed after the start of the run.
pub(super) fn changed_facts(start: &Value, resumed: &[Resumed]) -> BTreeSet<String> {
    let later = resumed.iter().filter_map(|part| part.environment.as_ref());
    later.flat_map(|part| differences(start, part)).map(|change| format!("{change}: {CONSEQUENCE}")).collect()
}

const CONSEQUENCE: &str = "changed when the run was resumed; times before and after may differ for that reason";

/// Facts about devices that may affect times.
const DEVICE_FACTS: [&str; 3] = ["driver", "identity", "clock_policy"];

fn differences(start: &Value, later: &Value) -> Vec<String> {
    let (before, after) = (facts_compared(start), facts_compared(later));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let change = |name: &String| {
        let (was, is) = (before.get(name), after.get(name));
        (was != is).then(|| format!("{} is {} and was {}", short_name(name), quoted_value(is), quoted_value(was)))
    };
    // Early journals do not record variables, so that a missing list is not a difference.
    let is_recorded = |name: &&String| !name.starts_with(VARIABLE) || start["variables"].is_object();
    names.into_iter().filter(is_recorded).filter_map(change).collect()
}

const VARIABLE: &str = "the variable ";

/// Compared facts by readable name.
fn facts_compared(environment: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut facts = BTreeMap::new();
    for (name, value) in environment["variables"].as_object().into_iter().flatten() {
        facts.insert(format!("{VARIABLE}{name}"), text(value));
    }
    if !environment["threads"].is_null() {
        facts.insert("the number of threads".to_owned(), text(&environment["threads"]));
    }
    for device in environment["devices"].as_array().into_iter().flatten() {
        for fact in DEVICE_FACTS.into_iter().filter(|fact| !device[*fact].is_null()) {
            facts.insert(format!("{fact} of {}", text(&device["device"])), text(&device[fact]));
        }
    }
    facts
}

fn short_name(name: &str) -> String {
    excerpt(name, 60)
}

fn quoted_value(fact: Option<&String>) -> String {
    fact.map_or_else(|| "not set".to_owned(), |value| format!("{:?}", excerpt(value, 60)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_difference_is_reported_once() {
        let environment = |threads: u32, policy: &str, variables: Value| {
            let device = json!({ "device": "mock", "driver": "1", "identity": "m", "clock_policy": policy });
            json!({ "kernel": policy, "threads": threads, "variables": variables, "devices": [device] })
        };
        let start = environment(8, "free", json!({ "CUDA_A": "1" }));
        let part =
            |environment: &Value| Resumed { time: String::new(), argv: vec![], environment: Some(environment.clone()) };
        let other = part(&environment(4, "locked", json!({ "NCCL_B": "2" })));
        let notes = changed_facts(&start, &[part(&start), other.clone(), other]);
        let notes: Vec<&str> = notes.iter().map(|line| line.split_once(": ").unwrap().0).collect();
        let expected = [
            "clock_policy of mock is \"locked\" and was \"free\"",
            "the number of threads is \"4\" and was \"8\"",
            "the variable CUDA_A is not set and was \"1\"",
            "the variable NCCL_B is \"2\" and was not set",
        ];
        assert_eq!(notes, expected);
        let early = json!({ "threads": 8 });
        let later = part(&environment(8, "free", json!({ "CUDA_A": "1" })));
        assert!(changed_facts(&early, &[later]).iter().all(|line| !line.contains("CUDA_A")));
    }
}
