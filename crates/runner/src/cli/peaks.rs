//! `calorimeter peaks`: what is held to be the most that devices reach.

use super::error::CliError;
use super::options::TextFormat;
use crate::chatter::marked;
use crate::devices::{self, DiscoveredDevice};
use crate::entries::Wanted;
use crate::peaks::{self, Peaks, Probe};
use crate::print::print;
use crate::run::RunError;
use crate::tell::tell;
use crate::worker::arm::sensors::Sensors;
use crate::{Exit, cache, host};
use calorimeter_case::TuningLevel;
use calorimeter_sinks::terminal::{four_digits, operations};
use calorimeter_zoo::Machines;
use chrono::{DateTime, Local, TimeDelta};
use clap::Args;
use std::fmt::Write;
use std::path::Path;

const EXIT_CODES: &str = "Exit codes:
  0    what is kept was printed
  2    usage, or a device that has no peaks
  5    a peak could not be measured";

/// Show what is held to be the peaks of this machine's devices, or measure them again.
///
/// Shares such as `84 % memory` are shares of these: of the fastest of copies and reads far beyond the cache, and of square
/// products in each kind of number, in a burst and under a second of continuous load. A run measures those that its cases need
/// and keeps them for the next; a case that is faster makes it look again. They hold for a device under one driver and one
/// policy of clocks.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub struct PeaksArguments {
    /// Measure those of a device again, of memory and of every kind of product that it has
    #[arg(long)]
    pub measure: bool,
    /// Where --measure measures: auto, cuda[:i], vulkan[:i], metal, wgpu, cpu
    #[arg(long, value_name = "DEVICE", env = "CALORIMETER_DEVICE", default_value = "auto")]
    pub device: Wanted,
    /// How to print them
    #[arg(long, value_enum, default_value = "text")]
    pub format: TextFormat,
}

pub fn peaks(arguments: PeaksArguments) -> Result<Exit, CliError> {
    let folder = cache::folder("peaks");
    let known = if arguments.measure {
        let device = devices::here().choose(arguments.device).map_err(RunError::from)?;
        let found = devices::present(device).map_err(RunError::from)?;
        vec![measured(&found, folder.as_deref())?]
    } else {
        kept(folder.as_deref())
    };
    match arguments.format {
        TextFormat::Json => print(&format!("{:#}\n", serde_json::json!(known)))?,
        TextFormat::Text if known.is_empty() => {
            print("no peaks are kept: a run measures those that it needs, and `calorimeter peaks --measure` all\n")?;
        }
        TextFormat::Text => print(&known.iter().map(|peaks| text(peaks, host::now())).collect::<Vec<_>>().join("\n"))?,
    }
    let failed = known.iter().flat_map(|peaks| &peaks.failed);
    let failed = failed.map(|(what, why)| tell!("the peak of {what} could not be measured: {why}")).count();
    Ok(if failed == 0 { Exit::Fine } else { Exit::Broken })
}

/// Those of a device, anew: also of the kinds that a run has needed which the device is not known for.
fn measured(found: &DiscoveredDevice, folder: Option<&Path>) -> Result<Peaks, CliError> {
    let (device, told) = (found.device, found.facts());
    calorimeter_zoo::backends::configure(cache::folder("tuning").as_deref(), TuningLevel::Full, false);
    let policy = Sensors::of(device, &told).policy();
    let mut machines = Machines::default();
    let mut probe = Probe { told: &told, policy, device, may_tune: true, machines: &mut machines };
    let driver = device.kind().name().to_string();
    let mut kinds = marked(&driver, || probe.kinds());
    let before = kept(folder).into_iter().filter(|peaks| peaks.device == told.identity);
    kinds.extend(before.flat_map(|peaks| peaks.products.into_keys()));
    kinds.sort_unstable();
    kinds.dedup();
    let mut nothing = Some(probe.nothing());
    marked(&driver, || peaks::of(&kinds, &mut nothing, folder, &mut probe))
        .ok_or_else(|| CliError::Usage(format!("{device} has no peaks: its times are made up")))
}

/// What earlier runs have kept, in the order of the devices' names. A file that cannot be read is told of.
fn kept(folder: Option<&Path>) -> Vec<Peaks> {
    let files = folder.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let read = |file: std::fs::DirEntry| match peaks::kept(&file.path()) {
        Ok(kept) => kept,
        Err(why) => {
            tell!("warning: {why}");
            None
        }
    };
    let mut kept: Vec<Peaks> = files.filter_map(read).collect();
    kept.sort_by(|a, b| a.device.cmp(&b.device));
    kept
}

fn text(peaks: &Peaks, now: DateTime<Local>) -> String {
    let Peaks { device, driver, policy, memory_gbps, cache_gbps, memory_looks, products, .. } = peaks;
    let mut text = format!("{device}\n  driver: {driver}\n  clocks: {policy}\n  measured: {}\n", when(peaks, now));
    if let Some(memory) = memory_gbps {
        let looks = memory_looks.interval().filter(|_| memory_looks.rates().len() > 1);
        let looks = looks.map(|(lo, hi)| {
            format!("; {} looks from {} to {}", memory_looks.rates().len(), four_digits(lo), four_digits(hi))
        });
        let _ = writeln!(text, "  memory  {} GB/s{}", four_digits(*memory), looks.unwrap_or_default());
    }
    if let Some(cache) = cache_gbps {
        let _ = writeln!(text, "  cache   {} GB/s", four_digits(*cache));
    }
    for (kind, peak) in products {
        let (burst, sustained) = (operations(peak.burst), operations(peak.sustained));
        let _ = writeln!(text, "  {kind:<6}  {burst}FLOP/s in a burst, {sustained}FLOP/s under load");
    }
    text
}

/// The day, and how long ago that was.
fn when(peaks: &Peaks, now: DateTime<Local>) -> String {
    let Ok(measured) = DateTime::parse_from_rfc3339(&peaks.measured) else { return "nobody knows when".into() };
    let age = now.signed_duration_since(measured);
    let ago = match (age.num_days(), age.num_hours(), age.num_minutes()) {
        _ if age < TimeDelta::zero() => "in the future".into(),
        (0, 0, minutes) => format!("{minutes} min ago"),
        (0, hours, _) => format!("{hours} h ago"),
        (1, ..) => "a day ago".into(),
        (days, ..) => format!("{days} days ago"),
    };
    format!("{}, {ago}", measured.with_timezone(&now.timezone()).format("%Y-%m-%d %H:%M"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_the_unit_that_suits_it() {
        let now = host::now();
        let aged = |age: TimeDelta| Peaks { measured: (now - age).to_rfc3339(), ..Peaks::default() };
        for (age, ago) in [
            (TimeDelta::minutes(5), ", 5 min ago"),
            (TimeDelta::hours(23), ", 23 h ago"),
            (TimeDelta::hours(25), ", a day ago"),
            (TimeDelta::days(40), ", 40 days ago"),
            (TimeDelta::days(-1), ", in the future"),
        ] {
            assert!(when(&aged(age), now).ends_with(ago), "{}", when(&aged(age), now));
        }
        assert_eq!(when(&Peaks::default(), now), "nobody knows when");
    }
}
