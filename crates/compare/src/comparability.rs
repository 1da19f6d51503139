//! Comparability of runs: facts of machine and build that must match, and other differences.

use super::source::ComparedRun;
use calorimeter_case::{Device, excerpt};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Differences between runs.
#[derive(Debug, Default)]
pub struct Comparability {
    /// Reasons why times are not comparable.
    pub unlike: Vec<String>,
    /// Differences that do not prevent a comparison, mostly software versions.
    pub differences: Vec<String>,
}

/// Compares machine, devices and build of each run, as recorded in the journals, with those of the first run.
pub fn check_comparability<'a>(
    runs: impl IntoIterator<Item = &'a ComparedRun>,
    devices: &BTreeSet<Device>,
) -> Comparability {
    let (mut unlike, mut differences) = (BTreeSet::new(), BTreeSet::new());
    let mut first: Option<(String, BTreeMap<String, EnvironmentFact>)> = None;
    for (run, environment) in runs.into_iter().flat_map(environments) {
        let Some(environment) = environment else {
            unlike.insert(format!("cannot tell where {run} was measured: no journal found next to it"));
            continue;
        };
        let facts = facts(environment, devices);
        let Some((first, before)) = &first else {
            first = Some((run, facts));
            continue;
        };
        let names: BTreeSet<&String> = before.keys().chain(facts.keys()).collect();
        for name in names {
            let (old, new) = (before.get(name), facts.get(name));
            if old.map(|fact| &fact.value) == new.map(|fact| &fact.value) {
                continue;
            }
            let line = format!("{name} is {} in {first} and {} in {run}", value_text(old), value_text(new));
            // Early journals lack some facts; a missing fact is not a mismatch.
            let is_mismatch = old.zip(new).is_some_and(|(old, _)| old.must_match);
            if is_mismatch {
                unlike.insert(line)
            } else {
                differences.insert(line)
            };
        }
    }
    Comparability { unlike: unlike.into_iter().collect(), differences: differences.into_iter().collect() }
}

/// Environments of the parts of a run, each with a name.
fn environments(run: &ComparedRun) -> Vec<(String, Option<&Value>)> {
    let start = run.read.header.as_ref().map(|header| &header.environment);
    let resumed = run.read.resumed.iter().filter_map(|part| part.environment.as_ref());
    let resumed = resumed.map(|environment| (format!("{} after a resume", run.name), Some(environment)));
    [(run.name.clone(), start)].into_iter().chain(resumed).collect()
}

fn value_text(fact: Option<&EnvironmentFact>) -> String {
    fact.map_or_else(|| "not recorded".into(), |fact| format!("{:?}", excerpt(&fact.value, 60)))
}

struct EnvironmentFact {
    value: String,
    /// True if times are only comparable when this fact matches.
    must_match: bool,
}

/// Recorded facts of an environment, by display name.
fn facts(environment: &Value, devices: &BTreeSet<Device>) -> BTreeMap<String, EnvironmentFact> {
    let mut facts = BTreeMap::new();
    let mut note = |name: String, value: &Value, decides: bool| {
        if !value.is_null() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            facts.insert(name, EnvironmentFact { value, must_match: decides });
        }
    };
    let on_the_cpu = devices.contains(&Device::Cpu);
    for (name, key, decides) in [
        ("the processor", "cpu", true),
        ("the processor's architecture", "arch", true),
        ("the profile of the build", "profile", true),
        ("the number of threads", "threads", on_the_cpu),
        ("RAYON_NUM_THREADS", "rayon_num_threads", on_the_cpu),
        ("the system", "os", false),
        ("the system's kernel", "kernel", false),
        ("calorimeter's version", "calorimeter", false),
        ("calorimeter's revision", "revision", false),
        ("burn's version", "burn", false),
        ("cubecl's version", "cubecl", false),
        ("the compiler", "rustc", false),
        ("the set of features", "features", false),
    ] {
        note(name.into(), &environment[key], decides);
    }
    let variables = environment["variables"].as_object().into_iter().flatten();
    for (name, value) in variables.filter(|(name, _)| *name != "RAYON_NUM_THREADS") {
        note(format!("the variable {name}"), value, false);
    }
    let known = environment["devices"].as_array().into_iter().flatten();
    let named = known.filter_map(|device| Some((device["device"].as_str()?.parse::<Device>().ok()?, device)));
    for (name, device) in named.filter(|(name, _)| devices.contains(name)) {
        note(name.to_string(), &device["name"], true);
        note(format!("the identity of {name}"), &device["identity"], true);
        note(format!("the driver of {name}"), &device["driver"], true);
        note(format!("the clock policy of {name}"), &device["clock_policy"], true);
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_sinks::StoredRun;
    use calorimeter_sinks::journal::{Header, Resumed};
    use serde_json::json;

    fn run(name: &str, environment: Option<Value>) -> ComparedRun {
        let header = environment.map(|environment| Header { environment, ..Header::default() });
        ComparedRun { name: name.into(), read: StoredRun { header, resumed: vec![], records: vec![] } }
    }

    fn machine(gpu: &str, revision: &str) -> Value {
        let device = |name: &str, gpu: &str| json!({ "device": name, "name": gpu, "driver": "1" });
        json!({ "cpu": "x", "revision": revision, "devices": [device("cuda:0", gpu), device("cpu", revision)] })
    }

    #[test]
    fn device_mismatch_refuses_and_revision_mismatch_is_noted() {
        let devices = BTreeSet::from([Device::Cuda(0)]);
        let (a, b) = (run("a", Some(machine("H100", "r1"))), run("b", Some(machine("H200", "r2"))));
        let Comparability { unlike, differences } = check_comparability([&a, &b], &devices);
        assert_eq!(unlike, ["cuda:0 is \"H100\" in a and \"H200\" in b"]);
        assert_eq!(differences, ["calorimeter's revision is \"r1\" in a and \"r2\" in b"]);
        let same = check_comparability([&a, &a], &devices);
        assert!(same.unlike.is_empty() && same.differences.is_empty());
    }

    #[test]
    fn runs_resumed_on_another_device_are_refused() {
        let mut run = run("a", Some(machine("H100", "r")));
        let environment = Some(machine("H200", "r"));
        run.read.resumed.push(Resumed { time: String::new(), argv: vec![], environment });
        let Comparability { unlike, .. } = check_comparability([&run], &BTreeSet::from([Device::Cuda(0)]));
        assert_eq!(unlike, ["cuda:0 is \"H100\" in a and \"H200\" in a after a resume"]);
    }

    #[test]
    fn missing_facts_are_noted_and_missing_journals_refused() {
        let (complete, early) = (machine("H100", "r"), json!({ "cpu": "x" }));
        let Comparability { unlike, differences } = check_comparability(
            [&run("a", Some(complete)), &run("b", Some(early))],
            &BTreeSet::from([Device::Cuda(0)]),
        );
        assert!(unlike.is_empty() && differences.iter().any(|line| line.contains("not recorded")), "{differences:?}");
        let without_journal = check_comparability([&run("t.parquet", None)], &BTreeSet::new());
        assert_eq!(without_journal.unlike, ["cannot tell where t.parquet was measured: no journal found next to it"]);
    }
}
