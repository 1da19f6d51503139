//! Facts and clock policy of the CPU.

use crate::telemetry::files::{numbered_entries, read_number, read_text};
use crate::telemetry::source;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const CPU: &str = "sys/devices/system/cpu";

pub(super) fn facts(root: &Path, available: [(&str, bool); 5], counter_error: Option<&str>) -> Value {
    let info = read_text(root.join("proc/cpuinfo")).unwrap_or_default();
    let first = |field| values(&info, field).next().map(str::to_owned);
    let nominal = first("cpu MHz").filter(|_| !has_flag(&info, "aperfmperf"));
    let nodes = numbered_entries(root.join("sys/devices/system/node"), "node").len();
    let logical = values(&info, "processor").count();
    let load =
        read_text(root.join("proc/loadavg")).and_then(|load| load.split_whitespace().next()?.parse::<f64>().ok());
    source::known_fields([
        ("model", first("model name").map(Value::from)),
        ("logical_cores", (logical > 0).then(|| logical.into())),
        ("smt", read_number::<u32>(root.join(CPU).join("smt/active")).map(|active| (active == 1).into())),
        ("numa_nodes", (nodes > 0).then(|| nodes.into())),
        ("virtual_machine", has_flag(&info, "hypervisor").then(|| true.into())),
        ("nominal_mhz", nominal.and_then(|clock| clock.parse::<f64>().ok()).map(Value::from)),
        ("frequency_driver", values_of_all_cores(root, "scaling_driver").map(Value::from)),
        ("governor", values_of_all_cores(root, "scaling_governor").map(Value::from)),
        ("energy_preference", values_of_all_cores(root, "energy_performance_preference").map(Value::from)),
        ("turbo", turbo(root).map(Value::from)),
        ("lowest_mhz", limit_mhz(root, "scaling_min_freq").map(Value::from)),
        ("highest_mhz", limit_mhz(root, "scaling_max_freq").map(Value::from)),
        ("load", load.map(Value::from)),
        ("not_reported", source::not_reported(available)),
        ("event_counters_refused", counter_error.map(Value::from)),
    ])
}

pub(super) fn policy(root: &Path) -> String {
    let limits = limit_mhz(root, "scaling_min_freq").zip(limit_mhz(root, "scaling_max_freq"));
    source::join_policy([
        values_of_all_cores(root, "scaling_governor").map(|governor| format!("governor {governor}")),
        values_of_all_cores(root, "energy_performance_preference").map(|preference| format!("preference {preference}")),
        turbo(root).map(|on| format!("turbo {}", if on { "on" } else { "off" })),
        limits.map(|(lowest, highest)| format!("{lowest}-{highest} MHz")),
    ])
}

/// Clocks in `/proc/cpuinfo`, if the CPU counts them; otherwise they are nominal values.
pub(super) fn counted_clocks(root: &Path) -> Vec<f64> {
    let info = read_text(root.join("proc/cpuinfo")).filter(|info| has_flag(info, "aperfmperf")).unwrap_or_default();
    values(&info, "cpu MHz").filter_map(|clock| clock.parse().ok()).collect()
}

/// Values of a field of `/proc/cpuinfo`, one per core.
fn values<'a>(info: &'a str, field: &str) -> impl Iterator<Item = &'a str> {
    info.lines()
        .filter_map(|line| line.split_once(':'))
        .filter(move |(name, _)| name.trim() == field)
        .map(|(_, v)| v.trim())
}

fn has_flag(info: &str, flag: &str) -> bool {
    values(info, "flags").next().is_some_and(|flags| flags.split_whitespace().any(|word| word == flag))
}

/// Setting of all cores, separated by `/` if they differ.
fn values_of_all_cores(root: &Path, setting: &str) -> Option<String> {
    let cores = numbered_entries(root.join(CPU), "cpu");
    let found: BTreeSet<String> =
        cores.iter().filter_map(|core| read_text(core.join("cpufreq").join(setting))).collect();
    (!found.is_empty()).then(|| Vec::from_iter(found).join("/"))
}

fn limit_mhz(root: &Path, limit: &str) -> Option<u64> {
    read_number::<u64>(root.join(CPU).join("cpu0/cpufreq").join(limit)).map(|kilohertz| kilohertz / 1000)
}

fn turbo(root: &Path) -> Option<bool> {
    let intel = read_number::<u32>(root.join(CPU).join("intel_pstate/no_turbo")).map(|off| off == 0);
    intel.or_else(|| read_number::<u32>(root.join(CPU).join("cpufreq/boost")).map(|on| on == 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::processor::tests::Tree;
    use serde_json::json;

    fn machine() -> Tree {
        let tree = Tree::new();
        let cpuinfo = "processor\t: 0\nmodel name\t: Some Processor: fast\nflags\t\t: fpu hypervisor\ncpu MHz\t: 2600.0\n\
                       processor\t: 1\nmodel name\t: Some Processor: fast\nflags\t\t: fpu hypervisor\ncpu MHz\t: 2600.0";
        tree.write("proc/cpuinfo", cpuinfo);
        tree.write("proc/loadavg", "0.52 0.58 0.59 1/1034 12345");
        for (file, content) in [
            ("smt/active", "0"),
            ("intel_pstate/no_turbo", "1"),
            ("cpu0/cpufreq/scaling_governor", "powersave"),
            ("cpu1/cpufreq/scaling_governor", "performance"),
            ("cpu0/cpufreq/scaling_min_freq", "800000"),
            ("cpu0/cpufreq/scaling_max_freq", "3600000"),
        ] {
            tree.write(&format!("{CPU}/{file}"), content);
        }
        for node in ["node0", "node1"] {
            tree.write(&format!("sys/devices/system/node/{node}/cpulist"), "0");
        }
        tree
    }

    #[test]
    fn facts_follow_from_files() {
        let expected = json!({
            "model": "Some Processor: fast",
            "logical_cores": 2,
            "smt": false,
            "numa_nodes": 2,
            "virtual_machine": true,
            "nominal_mhz": 2600.0,
            "governor": "performance/powersave",
            "turbo": false,
            "lowest_mhz": 800,
            "highest_mhz": 3600,
            "load": 0.52,
            "not_reported": ["b"],
            "event_counters_refused": "a reason",
        });
        let given = [("a", true), ("b", false), ("c", true), ("d", true), ("e", true)];
        assert_eq!(facts(machine().root(), given, Some("a reason")), expected);
    }

    #[test]
    fn policy_reflects_every_setting() {
        let tree = machine();
        let mut seen = BTreeSet::from([policy(tree.root())]);
        assert_eq!(seen.first().unwrap(), "governor performance/powersave, turbo off, 800-3600 MHz");
        for (file, content) in [
            ("intel_pstate/no_turbo", "0"),
            ("cpu0/cpufreq/scaling_governor", "performance"),
            ("cpu0/cpufreq/scaling_max_freq", "2600000"),
            ("cpu0/cpufreq/scaling_min_freq", "2600000"),
            ("cpu0/cpufreq/energy_performance_preference", "power"),
        ] {
            tree.write(&format!("{CPU}/{file}"), content);
            assert!(seen.insert(policy(tree.root())), "{file}: {seen:?}");
        }
    }

    #[test]
    fn boost_counts_as_turbo() {
        let tree = Tree::new();
        for (file, expected) in [("0", false), ("1", true)] {
            tree.write(&format!("{CPU}/cpufreq/boost"), file);
            assert_eq!(turbo(tree.root()), Some(expected));
        }
    }
}
