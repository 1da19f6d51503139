//! Comparison of calibrated machines: peaks, memory levels, rates over sizes, operators, fusion patterns.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::axis::ChartAxis;
use super::bars::{BarColumn, BarLength, BarRow, BarTable};
use super::canvas::truncate;
use super::chart::{Chart, ChartPoint, ChartSeries, SeriesEmphasis};
use super::number_format::{bytes, bytes_per_second, digits, format_ratio, operations, percent, time, with_si_prefix};
use super::palette::SeriesStyle;
use super::picture::Picture;
use super::report_rows::{geometric_mean, median};
use crate::SinkError;
use crate::report::run::ReportedProfile;

/// Part of a profile that the plots show.
#[derive(Deserialize, Default)]
#[serde(default)]
struct CalibrationData {
    environment: CalibratedEnvironment,
    peaks: BTreeMap<String, ProfilePeak>,
    cache_levels: Vec<CalibratedLevel>,
    operation_profiles: BTreeMap<String, CalibratedOperation>,
    efficiency_curves: BTreeMap<String, Vec<CalibratedCurvePoint>>,
    fusion_profiles: BTreeMap<String, CalibratedFusion>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CalibratedEnvironment {
    hardware_name: String,
}

#[derive(Deserialize)]
struct ProfilePeak {
    unit: String,
    measured: f64,
}

#[derive(Deserialize)]
struct CalibratedLevel {
    from_bytes: u64,
    to_bytes: u64,
    gbps: f64,
    kind: String,
}

#[derive(Deserialize)]
struct CalibratedOperation {
    operation_type: String,
    precision: String,
    implementation: String,
    status: String,
    median_latency_ms: Option<f64>,
    measured_gflops: Option<f64>,
    achieved_bandwidth_gbps: Option<f64>,
    efficiency: Option<f64>,
}

#[derive(Clone, Copy, Deserialize)]
struct CalibratedCurvePoint {
    bytes: u64,
    gflops: Option<f64>,
    gbps: Option<f64>,
}

#[derive(Deserialize)]
struct CalibratedFusion {
    operator: String,
    precision: String,
    implementation: String,
    status: String,
    unfused_launches: Option<f64>,
    fused_launches: Option<f64>,
    unfused_bytes: Option<f64>,
    fused_bytes: Option<f64>,
    speedup_factor: Option<f64>,
}

/// Profile with a unique name.
struct CalibratedMachine {
    name: String,
    profile: CalibrationData,
}

/// Maximum characters of a machine's name.
const MAX_NAME_CHARS: usize = 32;

/// Draws the plots for which the profiles have values.
pub(super) fn pictures(profiles: &[ReportedProfile]) -> Result<Vec<(&'static str, Picture)>, SinkError> {
    let machines = machines(profiles)?;
    let all = [
        ("calibration-peaks", peaks(&machines)),
        ("calibration-levels", levels(&machines)),
        ("calibration-sizes", sizes(&machines)),
        ("calibration-operators", operators(&machines)),
        ("calibration-fusion", fusion(&machines)),
    ];
    Ok(all.into_iter().filter_map(|(name, picture)| Some((name, picture?))).collect())
}

fn machines(profiles: &[ReportedProfile]) -> Result<Vec<CalibratedMachine>, SinkError> {
    let read = |reported: &ReportedProfile| {
        let profile = CalibrationData::deserialize(&reported.profile);
        let profile = profile.map_err(|cause| SinkError::format(Path::new(&reported.name), cause))?;
        let hardware = &profile.environment.hardware_name;
        let name = if hardware.is_empty() { reported.name.clone() } else { hardware.clone() };
        Ok(CalibratedMachine { name, profile })
    };
    let mut machines = profiles.iter().map(read).collect::<Result<Vec<CalibratedMachine>, SinkError>>()?;
    // Profiles of one machine are distinguished by their file names.
    let names: Vec<String> = machines.iter().map(|machine| machine.name.clone()).collect();
    for (machine, reported) in machines.iter_mut().zip(profiles) {
        if names.iter().filter(|name| **name == machine.name).count() > 1 {
            machine.name = format!("{} ({})", machine.name, reported.name);
        }
    }
    Ok(machines)
}

/// Ratio of each machine's rate, except the first, to the rate of the first machine.
fn ratios_to_first(rates: &[Option<f64>]) -> impl Iterator<Item = Option<(f64, String)>> {
    let first = rates.first().copied().flatten().filter(|rate| *rate > 0.0);
    rates.iter().skip(1).map(move |rate| {
        let ratio = rate.filter(|rate| *rate > 0.0)? / first?;
        Some((ratio, format_ratio(ratio)))
    })
}

/// A column of ratios for each machine but the first.
fn ratio_columns(machines: &[CalibratedMachine]) -> impl Iterator<Item = BarColumn> {
    let over = |machine: &CalibratedMachine| {
        let [one, first] = [machine, &machines[0]].map(|machine| truncate(&machine.name, MAX_NAME_CHARS));
        BarColumn { header: format!("{one} over {first}"), length: BarLength::Ratio }
    };
    machines.iter().skip(1).map(over)
}

/// Sorted keys of all machines.
fn keys<'a, T: 'a>(
    machines: &'a [CalibratedMachine],
    of: fn(&CalibrationData) -> &BTreeMap<String, T>,
) -> BTreeSet<&'a str> {
    machines.iter().flat_map(|machine| of(&machine.profile).keys()).map(String::as_str).collect()
}

fn table(title: &str, columns: Vec<BarColumn>, lines: Vec<BarRow>) -> Option<Picture> {
    (!lines.is_empty())
        .then(|| Picture::Bars(BarTable { title: title.into(), columns, rows: lines }.without_empty_columns()))
}

fn peaks(machines: &[CalibratedMachine]) -> Option<Picture> {
    let kinds = keys(machines, |profile| &profile.peaks).into_iter();
    let lines = kinds.map(|kind| {
        let found = machines.iter().map(|machine| machine.profile.peaks.get(kind));
        let write = |peak: &ProfilePeak| (peak.measured, rate(&peak.unit, peak.measured));
        let measured: Vec<Option<f64>> = found.clone().map(|peak| Some(peak?.measured)).collect();
        let figures = found.map(|peak| peak.map(write)).chain(ratios_to_first(&measured)).collect();
        BarRow { name: kind.to_owned(), values: figures }
    });
    // Bytes and operations have no common scale.
    let own = machines
        .iter()
        .map(|machine| BarColumn { header: truncate(&machine.name, MAX_NAME_CHARS), length: BarLength::None });
    table("Measured peaks", own.chain(ratio_columns(machines)).collect(), lines.collect())
}

fn rate(unit: &str, value: f64) -> String {
    if unit == "GB/s" { bytes_per_second(value * 1e9) } else { operations(value * 1e9) }
}

fn levels(machines: &[CalibratedMachine]) -> Option<Picture> {
    let all =
        machines.iter().flat_map(|machine| machine.profile.cache_levels.iter().map(move |level| (machine, level)));
    let lines = all.map(|(machine, level)| {
        let working_set = format!("{} - {}", bytes(level.from_bytes as f64), bytes(level.to_bytes as f64));
        let name =
            if machines.len() > 1 { format!("{} · ", truncate(&machine.name, MAX_NAME_CHARS)) } else { String::new() };
        let figures = vec![Some((level.gbps, bytes_per_second(level.gbps * 1e9))), Some((0.0, level.kind.clone()))];
        BarRow { name: name + &working_set, values: figures }
    });
    let columns = [("bytes/s", BarLength::Amount), ("level", BarLength::None)];
    let columns = columns.map(|(head, length)| BarColumn { header: head.into(), length }).into();
    table("Memory levels, by working set of a copy", columns, lines.collect())
}

/// Rate over bytes moved, for the operator with most sizes.
fn sizes(machines: &[CalibratedMachine]) -> Option<Picture> {
    let points = |key: &str, machine: &CalibratedMachine| -> Vec<(f64, CalibratedCurvePoint)> {
        let all = machine.profile.efficiency_curves.get(key).into_iter().flatten();
        all.filter(|point| point.bytes > 0).map(|point| (point.bytes as f64, *point)).collect()
    };
    let curves = keys(machines, |profile| &profile.efficiency_curves).into_iter();
    let longest = |key: &&str| machines.iter().map(|machine| points(key, machine).len()).max().unwrap_or(0);
    // Reversed, so that the first of equals is chosen.
    let key = curves.rev().filter(|key| longest(key) > 0).max_by_key(longest)?;
    let all = || machines.iter().flat_map(|machine| points(key, machine)).map(|(_, point)| point);
    let of_operations = all().any(|point| point.gflops.is_some()) && !all().all(|point| point.gbps.is_some());
    let (label, text): (_, fn(f64) -> String) =
        if of_operations { ("operations per second", operations) } else { ("bytes per second", bytes_per_second) };
    let series = machines.iter().enumerate().map(|(place, machine)| {
        let figure = |point: CalibratedCurvePoint| if of_operations { point.gflops } else { point.gbps };
        let drawn = points(key, machine).into_iter().filter_map(|(x, point)| {
            let y = figure(point).filter(|rate| *rate > 0.0)? * 1e9;
            Some(ChartPoint { x, y, bounds: None })
        });
        let look = SeriesStyle::new(Some(place), place);
        ChartSeries {
            name: machine.name.clone(),
            style: look,
            points: drawn.collect(),
            emphasis: SeriesEmphasis::Plain,
        }
    });
    let series: Vec<ChartSeries> = series.filter(|series| !series.points.is_empty()).collect();
    let (x, y) = (ChartAxis::log("bytes per pass", |value| with_si_prefix(value) + "B"), ChartAxis::log(label, text));
    let title = format!("Calibration against size: {key}");
    (!series.is_empty()).then(|| Picture::Chart(Chart { title, x, y, series, rules: Vec::new(), is_joined: true }))
}

impl CalibratedOperation {
    fn name(&self) -> String {
        format!("{} · {} · {}", self.operation_type, self.precision, self.implementation)
    }
}

fn operators(machines: &[CalibratedMachine]) -> Option<Picture> {
    let all = || machines.iter().flat_map(|machine| machine.profile.operation_profiles.values());
    let names: BTreeSet<String> = all().map(CalibratedOperation::name).collect();
    let lines = names.into_iter().map(|name| {
        let mut figures: Vec<_> = machines.iter().flat_map(|machine| best_rate(machine, &name)).collect();
        figures.extend(machines.iter().skip(1).map(|machine| speedup_over_first(&machines[0], machine, &name)));
        BarRow { name, values: figures }
    });
    let mut columns = Vec::new();
    for machine in machines {
        let before =
            if machines.len() > 1 { format!("{} ", truncate(&machine.name, MAX_NAME_CHARS)) } else { String::new() };
        columns.push(BarColumn { header: format!("{before}rate"), length: BarLength::None });
        columns.push(BarColumn { header: format!("{before}of the peak"), length: BarLength::Amount });
    }
    columns.extend(ratio_columns(machines));
    table("Operators: maximum rate over all sizes, and its share of the peak", columns, lines.collect())
}

/// Maximum rate of an operator, in FLOP/s or bytes/s, whichever is larger in units of 10⁹, and maximum share of the
/// peak.
///
/// Without a rate the status of a size that failed, else the shortest time.
fn best_rate(machine: &CalibratedMachine, name: &str) -> [Option<(f64, String)>; 2] {
    let own = || machine.profile.operation_profiles.values().filter(|one| one.name() == name);
    let most = |figure: fn(&CalibratedOperation) -> Option<f64>| own().filter_map(figure).fold(0.0, f64::max);
    let (flops, moved) = (most(|one| one.measured_gflops), most(|one| one.achieved_bandwidth_gbps));
    let share = most(|one| one.efficiency);
    let shortest = own().filter_map(|one| one.median_latency_ms).min_by(f64::total_cmp);
    let failed = own().find(|one| one.status != "ok").map(|one| (0.0, one.status.clone()));
    let rate = if flops > moved {
        Some((flops, operations(flops * 1e9)))
    } else if moved > 0.0 {
        Some((moved, bytes_per_second(moved * 1e9)))
    } else {
        failed.or(shortest.map(|millis| (0.0, time(millis * 1e6))))
    };
    [rate, (share > 0.0).then(|| (share, percent(100.0 * share)))]
}

/// Mean speed-up of an operator over the first machine, for the sizes that both measured.
fn speedup_over_first(first: &CalibratedMachine, machine: &CalibratedMachine, name: &str) -> Option<(f64, String)> {
    let timed = |one: &CalibratedOperation| one.median_latency_ms.filter(|millis| *millis > 0.0);
    let own = first.profile.operation_profiles.iter().filter(|(_, one)| one.name() == name);
    let ratios = own.filter_map(|(key, one)| Some(timed(one)? / timed(machine.profile.operation_profiles.get(key)?)?));
    let ratios: Vec<f64> = ratios.collect();
    let mean = geometric_mean(ratios.iter().copied())?;
    let sizes = if ratios.len() == 1 { "1 size".into() } else { format!("{} sizes", ratios.len()) };
    Some((mean, format!("{} of {sizes}", format_ratio(mean))))
}

/// Fusion patterns over all sizes.
fn fusion(machines: &[CalibratedMachine]) -> Option<Picture> {
    let all = || machines.iter().flat_map(|machine| machine.profile.fusion_profiles.values());
    let names: BTreeSet<String> = all().map(CalibratedFusion::name).collect();
    let lines = names.into_iter().map(|name| {
        let allowed = all().filter(|one| one.name() == name).filter_map(CalibratedFusion::speedup_bound);
        let ratio = |ratio: Option<f64>| ratio.map(|ratio| (ratio, format_ratio(ratio)));
        let mut figures: Vec<_> = machines.iter().flat_map(|machine| fusion_results(machine, &name)).collect();
        figures.push(ratio(geometric_mean(allowed)));
        BarRow { name, values: figures }
    });
    let mut columns = Vec::new();
    for machine in machines {
        let before =
            if machines.len() > 1 { format!("{} ", truncate(&machine.name, MAX_NAME_CHARS)) } else { String::new() };
        columns.push(BarColumn { header: format!("{before}kernels"), length: BarLength::None });
        columns.push(BarColumn { header: format!("{before}speed-up"), length: BarLength::Ratio });
    }
    columns.push(BarColumn { header: "bound from bytes".into(), length: BarLength::Ratio });
    table("Fusion: median kernels per pass, and mean speed-up", columns, lines.collect())
}

impl CalibratedFusion {
    fn name(&self) -> String {
        format!("{} · {} · {}", self.operator, self.precision, self.implementation)
    }

    /// Upper bound of the speed-up by fusion, from bytes alone.
    fn speedup_bound(&self) -> Option<f64> {
        Some(self.unfused_bytes? / self.fused_bytes.filter(|bytes| *bytes > 0.0)?)
    }
}

/// Kernels of a pattern unfused and fused, and its speed-up, or the status if there is none.
fn fusion_results(machine: &CalibratedMachine, name: &str) -> [Option<(f64, String)>; 2] {
    let own = || machine.profile.fusion_profiles.values().filter(|one| one.name() == name);
    let kernels = |count: fn(&CalibratedFusion) -> Option<f64>| median(own().filter_map(count));
    let (unfused, fused) = (kernels(|one| one.unfused_launches), kernels(|one| one.fused_launches));
    let launches = unfused.zip(fused);
    let launches = launches.map(|(unfused, fused)| (fused, format!("{} to {}", digits(unfused, 3), digits(fused, 3))));
    let ratio = geometric_mean(own().filter_map(|one| one.speedup_factor)).map(|ratio| (ratio, format_ratio(ratio)));
    let ended = own().find(|one| one.status != "ok").map(|one| (1.0, one.status.clone()));
    [launches, ratio.or(ended)]
}
