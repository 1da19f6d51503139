//! Settings of the machine, with recommendations. None of them invalidates times, so none fails.

use super::check::Check;
use super::rig::Rig;
use serde_json::Value;

/// Setting: name, expected value, and a function that reads it from the sensor facts and returns a recommendation if it
/// differs.
type Setting = (&'static str, &'static str, fn(&Value) -> Option<(String, Option<&'static str>)>);

/// All settings, those of GPUs first.
const ALL: &[Setting] = &[
    ("persistence mode", "on", |facts| {
        let on = facts.get("persistence_mode")?.as_bool()?;
        let advice =
            "without it the driver is reloaded for each program, and settings are lost: `sudo nvidia-smi -pm 1`";
        Some((on_or_off(on), (!on).then_some(advice)))
    }),
    ("MIG", "off", |facts| {
        let on = facts.get("mig")?.as_bool()?;
        let advice = "slices of a GPU share clock, power and cooling: measure while the other slices are idle, or disable MIG \
                      with `sudo nvidia-smi -mig 0`";
        Some((on_or_off(on), on.then_some(advice)))
    }),
    ("ECC", "on", |facts| {
        let on = facts.get("ecc")?.as_bool()?;
        let advice = "memory errors are not corrected, and memory may be faster than with ECC: report this with results, or \
                      enable it with `sudo nvidia-smi -e 1`";
        Some((on_or_off(on), (!on).then_some(advice)))
    }),
    ("application clocks", "driver default", |facts| {
        let advice = "changed from the default; reset with `sudo nvidia-smi --reset-applications-clocks`";
        compare_with_default(facts, "application_clocks", "default_application_clocks", advice)
    }),
    ("clock offsets", "none", |facts| {
        let offsets = facts.get("clock_offsets")?.as_str()?;
        let advice = "the GPU is over- or underclocked, so times are not comparable with other GPUs of this kind";
        Some((offsets.into(), (offsets != "0/0 MHz").then_some(advice)))
    }),
    ("power limit", "driver default", |facts| {
        let advice = "changed from the default, and matmuls reach it; reset with `sudo nvidia-smi -pl`";
        compare_with_default(facts, "power_limit_w", "default_power_limit_w", advice)
    }),
    ("governor", "performance", |facts| {
        let governor = facts.get("governor")?.as_str()?;
        let advice =
            "clocks follow the load and may be low in short windows: `sudo cpupower frequency-set -g performance`";
        Some((governor.into(), (governor != "performance").then_some(advice)))
    }),
    ("turbo", "off", |facts| {
        let on = facts.get("turbo")?.as_bool()?;
        let advice = "clocks depend on temperature and on the number of active cores; for comparable times, write 1 to \
                      /sys/devices/system/cpu/intel_pstate/no_turbo, or 0 to /sys/devices/system/cpu/cpufreq/boost";
        Some((on_or_off(on), on.then_some(advice)))
    }),
    ("SMT", "off", |facts| {
        let on = facts.get("smt")?.as_bool()?;
        let advice = "two threads share a core, so times depend on thread placement: set RAYON_NUM_THREADS to the number of \
                      cores, or write off to /sys/devices/system/cpu/smt/control";
        Some((on_or_off(on), on.then_some(advice)))
    }),
    ("machine", "physical", |facts| {
        let is_virtual = facts.get("virtual_machine")?.as_bool()?;
        let advice = "a virtual machine may share CPU time and cache with others: repeat runs on different days, or use \
                      --launches";
        Some((if is_virtual { "virtual" } else { "physical" }.into(), is_virtual.then_some(advice)))
    }),
];

/// Checks all settings that are readable on this machine.
pub(super) fn check_settings(rig: &mut dyn Rig) -> Vec<Check> {
    let others = match rig.other_users() {
        Ok(others) if others.is_empty() => setting_check("other users", "none", "none".into(), None),
        Ok(others) => {
            let advice = "stop them or wait; with --require-idle, a run refuses to start";
            setting_check("other users", "none", others.join("; "), Some(advice))
        }
        Err(why) => Check { passed: None, ..setting_check("other users", "none", format!("unknown: {why}"), None) },
    };
    let facts = rig.facts();
    let checks = ALL.iter().filter_map(|(name, wanted, read)| {
        let (found, advice) = read(&facts)?;
        Some(setting_check(name, wanted, found, advice))
    });
    checks.chain([others]).collect()
}

fn setting_check(name: &'static str, wanted: &'static str, found: String, advice: Option<&'static str>) -> Check {
    Check { name, passed: advice.is_none().then_some(true), found, wanted, advice }
}

fn on_or_off(on: bool) -> String {
    if on { "on" } else { "off" }.into()
}

fn compare_with_default(
    facts: &Value,
    name: &str,
    default: &str,
    advice: &'static str,
) -> Option<(String, Option<&'static str>)> {
    let (set, default) = (facts.get(name)?, facts.get(default)?);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if set == default {
        return Some((text(set), None));
    }
    Some((format!("{} (default {})", text(set), text(default)), Some(advice)))
}
