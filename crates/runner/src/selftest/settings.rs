//! How the machine is set up, and what to do about it. None of it makes a time wrong, so none of it fails.

use super::check::Check;
use super::rig::Rig;
use serde_json::Value;

/// A setting: its name, what is wanted, and what of it is found among the facts that sensors tell, if anything, with what to
/// do where it is not as wanted.
type Setting = (&'static str, &'static str, fn(&Value) -> Option<(String, Option<&'static str>)>);

/// Every setting that is looked at, those of GPUs first.
const ALL: &[Setting] = &[
    ("persistence mode", "on", |facts| {
        let on = facts.get("persistence_mode")?.as_bool()?;
        let advice = "the driver is loaded anew for each program, and settings are lost: `sudo nvidia-smi -pm 1`";
        Some((on_or_off(on), (!on).then_some(advice)))
    }),
    ("MIG", "off", |facts| {
        let on = facts.get("mig")?.as_bool()?;
        let advice = "slices of one GPU share its clock, its power and its cooling: measure while the others rest, or undivided \
                      after `sudo nvidia-smi -mig 0`";
        Some((on_or_off(on), on.then_some(advice)))
    }),
    ("ECC", "on", |facts| {
        let on = facts.get("ecc")?.as_bool()?;
        let advice = "a flipped bit goes unseen, and memory may be faster than with it: say so beside figures of its memory, or \
                      `sudo nvidia-smi -e 1`";
        Some((on_or_off(on), (!on).then_some(advice)))
    }),
    ("application clocks", "as the driver sets them", |facts| {
        let advice = "somebody has set them: `sudo nvidia-smi --reset-applications-clocks`";
        as_by_default(facts, "application_clocks", "default_application_clocks", advice)
    }),
    ("clock offsets", "none", |facts| {
        let offsets = facts.get("clock_offsets")?.as_str()?;
        let advice = "somebody has over- or underclocked it: other GPUs of its kind have other times";
        Some((offsets.into(), (offsets != "0/0 MHz").then_some(advice)))
    }),
    ("power limit", "as the driver sets it", |facts| {
        let advice = "somebody has set it, and products reach it: `sudo nvidia-smi -pl` with the default";
        as_by_default(facts, "power_limit_w", "default_power_limit_w", advice)
    }),
    ("governor", "performance", |facts| {
        let governor = facts.get("governor")?.as_str()?;
        let advice =
            "clocks follow the load, and short windows find them low: `sudo cpupower frequency-set -g performance`";
        Some((governor.into(), (governor != "performance").then_some(advice)))
    }),
    ("turbo", "off", |facts| {
        let on = facts.get("turbo")?.as_bool()?;
        let advice = "clocks depend on heat and on how many cores work: to compare times of different days, write 1 to \
                      /sys/devices/system/cpu/intel_pstate/no_turbo, or 0 to /sys/devices/system/cpu/cpufreq/boost";
        Some((on_or_off(on), on.then_some(advice)))
    }),
    ("SMT", "off", |facts| {
        let on = facts.get("smt")?.as_bool()?;
        let advice = "two threads share a core, and times depend on who gets which: set RAYON_NUM_THREADS to the number of \
                      cores, or write off to /sys/devices/system/cpu/smt/control";
        Some((on_or_off(on), on.then_some(advice)))
    }),
    ("machine", "its own", |facts| {
        let shared = facts.get("virtual_machine")?.as_bool()?;
        let advice = "it is a virtual one: its host may give its time and its cache to others unseen, so repeat runs on \
                      different days, or with --launches";
        Some((if shared { "virtual" } else { "its own" }.into(), shared.then_some(advice)))
    }),
];

/// What can be seen of the machine.
pub fn look(rig: &mut dyn Rig) -> Vec<Check> {
    let others = match rig.others() {
        Ok(others) if others.is_empty() => check("other users", "nobody", "nobody".into(), None),
        Ok(others) => {
            let advice = "end them, or wait; with --require-idle a run does not begin beside them";
            check("other users", "nobody", others.join("; "), Some(advice))
        }
        Err(why) => Check { passed: None, ..check("other users", "nobody", format!("nobody can tell: {why}"), None) },
    };
    let facts = rig.facts();
    let told = ALL.iter().filter_map(|(name, wanted, look)| {
        let (found, advice) = look(&facts)?;
        Some(check(name, wanted, found, advice))
    });
    told.chain([others]).collect()
}

fn check(name: &'static str, wanted: &'static str, found: String, advice: Option<&'static str>) -> Check {
    Check { name, passed: advice.is_none().then_some(true), found, wanted, advice }
}

fn on_or_off(on: bool) -> String {
    if on { "on" } else { "off" }.into()
}

fn as_by_default(
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
    Some((format!("{}, by default {}", text(set), text(default)), Some(advice)))
}
