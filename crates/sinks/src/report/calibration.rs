//! Comparison of calibrated machines: peaks, memory levels, rates over sizes, operators, fusion patterns.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::number_format::NumberFormat;
use super::plots::axis::ChartAxis;
use super::plots::bars::{BarColumn, BarLength, BarRow, BarTable};
use super::plots::canvas::truncate;
use super::plots::chart::{Chart, ChartPoint, ChartSeries, SeriesEmphasis};
use super::plots::palette::SeriesStyle;
use super::plots::picture::Picture;
use super::report_rows::{geometric_mean, median};
use super::run::ReportedProfile;
use crate::SinkError;

/// Part of a profile that the report shows.
#[derive(Deserialize, Default)]
#[serde(default)]
struct CalibrationData {
    environment: CalibratedEnvironment,
    peaks: BTreeMap<String, ProfilePeak>,
    cache_levels: Vec<CalibratedLevel>,
    operation_profiles: BTreeMap<String, CalibratedOperation>,
    efficiency_curves: BTreeMap<String, Vec<CalibratedCurvePoint>>,
    fusion_profiles: BTreeMap<String, CalibratedFusion>,
    not_measured: BTreeMap<String, String>,
    notes: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CalibratedEnvironment {
    hardware_name: String,
    device: CalibratedDevice,
    started: String,
    calorimeter: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CalibratedDevice {
    name: Option<String>,
    driver: Option<String>,
}

#[derive(Deserialize)]
struct ProfilePeak {
    unit: String,
    measured: f64,
    finding: Option<String>,
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
    reason: Option<String>,
    median_latency_ms: Option<f64>,
    measured_gflops: Option<f64>,
    achieved_bandwidth_gbps: Option<f64>,
    efficiency: Option<f64>,
}

#[derive(Deserialize)]
struct CalibratedCurvePoint {
    bytes: u64,
    shape: String,
    efficiency: Option<f64>,
    gflops: Option<f64>,
    gbps: Option<f64>,
}

#[derive(Deserialize)]
struct CalibratedFusion {
    operator: String,
    precision: String,
    implementation: String,
    status: String,
    reason: Option<String>,
    unfused_launches: Option<f64>,
    fused_launches: Option<f64>,
    unfused_bytes: Option<f64>,
    fused_bytes: Option<f64>,
    unfused_latency_ms: Option<f64>,
    fused_latency_ms: Option<f64>,
    speedup_factor: Option<f64>,
}

/// Profile with a unique name.
struct CalibratedMachine {
    name: String,
    profile: CalibrationData,
}

/// Maximum characters of a machine's name.
const MAX_NAME_CHARS: usize = 32;

/// Tables and charts of all profiles.
#[derive(Serialize)]
pub(super) struct Calibration {
    /// Tables by name.
    tables: Vec<(&'static str, BarTable)>,
    /// Rate over bytes moved, by operator; the operator with most sizes is the first.
    curves: Vec<Chart>,
    notes: Vec<String>,
    /// Machines and their devices.
    #[serde(skip)]
    pub(super) subtitle: String,
}

impl Calibration {
    pub(super) fn new(profiles: &[ReportedProfile]) -> Result<Self, SinkError> {
        let machines = machines(profiles)?;
        let tables = [
            ("profiles", machine_table(&machines)),
            ("peaks", peaks(&machines)),
            ("levels", levels(&machines)),
            ("operators", operators(&machines)),
            ("fusion", fusion(&machines)),
        ];
        let mut curves = curves(&machines);
        curves.sort_by_key(|chart| Reverse(chart.series.iter().map(|series| series.points.len()).max()));
        let tables = tables.into_iter().filter_map(|(name, table)| Some((name, table?))).collect();
        let subtitle = machines.iter().map(CalibratedMachine::subtitle).collect::<Vec<_>>().join("; ");
        Ok(Self { tables, curves, notes: machines.iter().flat_map(CalibratedMachine::notes).collect(), subtitle })
    }

    /// Plots of the tables and of the first chart.
    pub(super) fn pictures(self) -> impl Iterator<Item = (String, Picture)> {
        let tables = self.tables.into_iter().filter(|(name, _)| *name != "profiles");
        let tables = tables.map(|(name, table)| (format!("calibration-{name}"), Picture::Bars(table)));
        let sizes =
            self.curves.into_iter().take(1).map(|chart| ("calibration-sizes".to_owned(), Picture::Chart(chart)));
        tables.chain(sizes)
    }
}

impl CalibratedMachine {
    /// Name with device and driver.
    fn subtitle(&self) -> String {
        let CalibratedDevice { name, driver } = &self.profile.environment.device;
        let device: Vec<&str> = [name, driver].into_iter().flatten().map(String::as_str).collect();
        if device.is_empty() { self.name.clone() } else { format!("{}: {}", self.name, device.join(", ")) }
    }

    fn notes(&self) -> Vec<String> {
        let CalibrationData { peaks, not_measured, notes, .. } = &self.profile;
        let findings = peaks.iter().filter_map(|(kind, peak)| Some(format!("{kind}: {}", peak.finding.as_ref()?)));
        let missing = not_measured.iter().map(|(name, reason)| format!("{name} not measured: {reason}"));
        let all = findings.chain(notes.iter().cloned()).chain(missing);
        all.map(|note| format!("{}: {note}", self.name)).collect()
    }
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
        Some((ratio, NumberFormat::Ratio.write(ratio)))
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

fn table(title: &str, heading: &str, columns: Vec<BarColumn>, rows: Vec<BarRow>) -> Option<BarTable> {
    let table = BarTable { title: title.into(), heading: heading.into(), columns, rows };
    (!table.rows.is_empty()).then(|| table.without_empty_columns())
}

/// Column of texts without a bar.
fn text_column(header: impl Into<String>) -> BarColumn {
    BarColumn { header: header.into(), length: BarLength::None }
}

fn machine_table(machines: &[CalibratedMachine]) -> Option<BarTable> {
    let rows = machines.iter().map(|machine| {
        let CalibratedEnvironment { device, started, calorimeter, .. } = &machine.profile.environment;
        let started = started.get(..16).unwrap_or(started).replace('T', " ");
        let texts = [device.name.clone(), device.driver.clone(), Some(started), Some(calorimeter.clone())];
        BarRow { name: machine.name.clone(), values: texts.map(|text| Some((0.0, text?))).into() }
    });
    let columns = ["device", "driver", "measured", "calorimeter"].map(text_column).into();
    table("Profiles", "profile", columns, rows.collect())
}

fn peaks(machines: &[CalibratedMachine]) -> Option<BarTable> {
    let kinds = keys(machines, |profile| &profile.peaks).into_iter();
    let lines = kinds.map(|kind| {
        let found = machines.iter().map(|machine| machine.profile.peaks.get(kind));
        let write = |peak: &ProfilePeak| (peak.measured, rate(&peak.unit, peak.measured));
        let measured: Vec<Option<f64>> = found.clone().map(|peak| Some(peak?.measured)).collect();
        let figures = found.map(|peak| peak.map(write)).chain(ratios_to_first(&measured)).collect();
        BarRow { name: kind.to_owned(), values: figures }
    });
    // Bytes and operations have no common scale.
    let own = machines.iter().map(|machine| text_column(truncate(&machine.name, MAX_NAME_CHARS)));
    table("Measured peaks", "peak", own.chain(ratio_columns(machines)).collect(), lines.collect())
}

fn rate(unit: &str, value: f64) -> String {
    if unit == "GB/s" { NumberFormat::Gbps.write(value) } else { NumberFormat::Gflops.write(value) }
}

fn levels(machines: &[CalibratedMachine]) -> Option<BarTable> {
    let all =
        machines.iter().flat_map(|machine| machine.profile.cache_levels.iter().map(move |level| (machine, level)));
    let lines = all.map(|(machine, level)| {
        let working_set =
            [level.from_bytes, level.to_bytes].map(|bytes| NumberFormat::Bytes.write(bytes as f64)).join(" – ");
        let name = machine_prefix(machines, machine, " · ");
        let figures = vec![Some((level.gbps, NumberFormat::Gbps.write(level.gbps))), Some((0.0, level.kind.clone()))];
        BarRow { name: name + &working_set, values: figures }
    });
    let columns = [("bytes/s", BarLength::Amount), ("level", BarLength::None)];
    let columns = columns.map(|(head, length)| BarColumn { header: head.into(), length }).into();
    table("Memory levels, by working set of a copy", "working set", columns, lines.collect())
}

/// Name of a machine before a separator; empty if there is only one.
fn machine_prefix(machines: &[CalibratedMachine], machine: &CalibratedMachine, separator: &str) -> String {
    if machines.len() > 1 { truncate(&machine.name, MAX_NAME_CHARS) + separator } else { String::new() }
}

/// Rate over bytes moved, by operator.
fn curves(machines: &[CalibratedMachine]) -> Vec<Chart> {
    let keys = keys(machines, |profile| &profile.efficiency_curves).into_iter();
    keys.filter_map(|key| {
        let curves = || machines.iter().map(|machine| machine.profile.efficiency_curves.get(key));
        let all = || curves().flatten().flatten();
        let is_operations = all().any(|point| point.gflops > Some(0.0)) && !all().all(|point| point.gbps > Some(0.0));
        let (label, format) = match is_operations {
            true => ("operations per second", NumberFormat::Gflops),
            false => ("bytes per second", NumberFormat::Gbps),
        };
        let series = machines.iter().zip(curves()).enumerate().map(|(place, (machine, curve))| {
            let drawn = curve.into_iter().flatten().filter(|point| point.bytes > 0).filter_map(|point| {
                let y = if is_operations { point.gflops } else { point.gbps }.filter(|rate| *rate > 0.0)?;
                let share = point.efficiency.map(|share| format!("{} of the peak", NumberFormat::Share.write(share)));
                let tip = [Some(machine.name.clone()), Some(point.shape.clone()), Some(format.write(y)), share];
                let tip: Vec<String> = tip.into_iter().flatten().collect();
                Some((ChartPoint { x: point.bytes as f64, y, bounds: None }, tip))
            });
            let (points, tips) = drawn.unzip();
            ChartSeries {
                name: machine.name.clone(),
                style: SeriesStyle { item: Some(place), marker: place },
                points,
                emphasis: SeriesEmphasis::Plain,
                tips,
            }
        });
        let series: Vec<ChartSeries> = series.filter(|series| !series.points.is_empty()).collect();
        let (x, y) = (ChartAxis::log("bytes per pass", NumberFormat::Bytes), ChartAxis::log(label, format));
        let title = format!("Scaling with size: {key}");
        (!series.is_empty()).then(|| Chart { title, x, y, series, rules: Vec::new(), is_joined: true, note: None })
    })
    .collect()
}

impl CalibratedOperation {
    fn name(&self) -> String {
        format!("{} · {} · {}", self.operation_type, self.precision, self.implementation)
    }
}

fn operators(machines: &[CalibratedMachine]) -> Option<BarTable> {
    let all = || machines.iter().flat_map(|machine| machine.profile.operation_profiles.values());
    let names: BTreeSet<String> = all().map(CalibratedOperation::name).collect();
    let lines = names.into_iter().map(|name| {
        let mut figures: Vec<_> = machines.iter().flat_map(|machine| best_rate(machine, &name)).collect();
        figures.extend(machines.iter().skip(1).map(|machine| speedup_over_first(&machines[0], machine, &name)));
        BarRow { name, values: figures }
    });
    let mut columns = Vec::new();
    for machine in machines {
        let before = machine_prefix(machines, machine, " ");
        columns.push(text_column(format!("{before}rate")));
        columns.push(BarColumn { header: format!("{before}of the peak"), length: BarLength::Amount });
    }
    columns.extend(ratio_columns(machines));
    let title = "Operators: maximum rate over all sizes, and its share of the peak";
    table(title, "operator · dtype · implementation", columns, lines.collect())
}

/// Maximum rate of an operator, in FLOP/s or bytes/s, whichever is larger in units of 10⁹, and maximum share of the
/// peak.
///
/// Without a rate: the reason of a failed size, or else the shortest time.
fn best_rate(machine: &CalibratedMachine, name: &str) -> [Option<(f64, String)>; 2] {
    let own = || machine.profile.operation_profiles.values().filter(|one| one.name() == name);
    let most = |figure: fn(&CalibratedOperation) -> Option<f64>| own().filter_map(figure).fold(0.0, f64::max);
    let (flops, moved) = (most(|one| one.measured_gflops), most(|one| one.achieved_bandwidth_gbps));
    let share = most(|one| one.efficiency);
    let shortest = own().filter_map(|one| one.median_latency_ms).min_by(f64::total_cmp);
    let failed =
        own().find(|one| one.status != "ok").map(|one| (0.0, one.reason.as_ref().unwrap_or(&one.status).clone()));
    let rate = if flops > moved {
        Some((flops, NumberFormat::Gflops.write(flops)))
    } else if moved > 0.0 {
        Some((moved, NumberFormat::Gbps.write(moved)))
    } else {
        failed.or(shortest.map(|millis| (0.0, NumberFormat::Time.write(millis * 1e6))))
    };
    [rate, (share > 0.0).then(|| (share, NumberFormat::Share.write(share)))]
}

/// Mean speed-up of an operator over the first machine, for the sizes that both measured.
fn speedup_over_first(first: &CalibratedMachine, machine: &CalibratedMachine, name: &str) -> Option<(f64, String)> {
    let timed = |one: &CalibratedOperation| one.median_latency_ms.filter(|millis| *millis > 0.0);
    let own = first.profile.operation_profiles.iter().filter(|(_, one)| one.name() == name);
    let ratios = own.filter_map(|(key, one)| Some(timed(one)? / timed(machine.profile.operation_profiles.get(key)?)?));
    let ratios: Vec<f64> = ratios.collect();
    let mean = geometric_mean(ratios.iter().copied())?;
    let sizes = if ratios.len() == 1 { "1 size".into() } else { format!("{} sizes", ratios.len()) };
    Some((mean, format!("{} of {sizes}", NumberFormat::Ratio.write(mean))))
}

/// Fusion patterns over all sizes.
fn fusion(machines: &[CalibratedMachine]) -> Option<BarTable> {
    let all = || machines.iter().flat_map(|machine| machine.profile.fusion_profiles.values());
    let names: BTreeSet<String> = all().map(CalibratedFusion::name).collect();
    let lines = names.into_iter().map(|name| {
        let allowed = all().filter(|one| one.name() == name).filter_map(CalibratedFusion::speedup_bound);
        let ratio = |ratio: Option<f64>| ratio.map(|ratio| (ratio, NumberFormat::Ratio.write(ratio)));
        let mut figures: Vec<_> = machines.iter().flat_map(|machine| fusion_results(machine, &name)).collect();
        figures.push(ratio(geometric_mean(allowed)));
        BarRow { name, values: figures }
    });
    let mut columns = Vec::new();
    for machine in machines {
        let before = machine_prefix(machines, machine, " ");
        columns.extend(["kernels", "bytes", "time"].map(|header| text_column(format!("{before}{header}"))));
        columns.push(BarColumn { header: format!("{before}speed-up"), length: BarLength::Ratio });
    }
    columns.push(BarColumn { header: "bound from bytes".into(), length: BarLength::Ratio });
    table("Fusion: medians unfused and fused, and mean speed-up", "pattern", columns, lines.collect())
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

/// Kernels, bytes and time of a pattern, unfused and fused, and its speed-up, or the reason if there is none.
fn fusion_results(machine: &CalibratedMachine, name: &str) -> [Option<(f64, String)>; 4] {
    let own = || machine.profile.fusion_profiles.values().filter(|one| one.name() == name);
    let pair = |sides: [fn(&CalibratedFusion) -> Option<f64>; 2], format: NumberFormat| {
        let [unfused, fused] = sides.map(|side| median(own().filter_map(side)));
        let (unfused, fused) = unfused.zip(fused)?;
        Some((fused, format!("{} to {}", format.write(unfused), format.write(fused))))
    };
    let ratio = geometric_mean(own().filter_map(|one| one.speedup_factor));
    let ratio = ratio.map(|ratio| (ratio, NumberFormat::Ratio.write(ratio)));
    let ended = own().find(|one| one.status != "ok");
    let ended = ended.map(|one| (1.0, one.reason.as_ref().unwrap_or(&one.status).clone()));
    [
        pair([|one| one.unfused_launches, |one| one.fused_launches], NumberFormat::Plain),
        pair([|one| one.unfused_bytes, |one| one.fused_bytes], NumberFormat::Bytes),
        pair([|one| Some(1e6 * one.unfused_latency_ms?), |one| Some(1e6 * one.fused_latency_ms?)], NumberFormat::Time),
        ratio.or(ended),
    ]
}
