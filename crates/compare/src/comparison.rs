//! Comparison of two runs, case by case.

use super::case::{CaseChange, CaseFinding};
use super::comparability::{Comparability, check_comparability};
use super::compared_record::ComparedRecord;
use super::error::CompareError;
use super::margins::margins;
use super::options::CompareOptions;
use super::source::ComparedRun;
use calorimeter_case::{CaseId, Device};
use calorimeter_timing::{CommonShift, SpeedChange, ValueWithInterval, discoveries};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// False discovery rate of a comparison: expected share of false verdicts among all verdicts of a difference.
const FALSE_DISCOVERY_RATE: f64 = 0.05;

/// Comparison of two runs, case by case.
#[derive(Debug, Serialize)]
pub struct RunComparison {
    /// Name of the JSON format.
    pub schema: &'static str,
    /// Version of the JSON format.
    pub version: u32,
    /// Names of the runs before.
    pub before: Vec<String>,
    /// Names of the runs after.
    pub after: Vec<String>,
    /// Reasons against comparing these times, if `force` overrode them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unlike: Vec<String>,
    /// Other differences between the sides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    /// Notes on intervals and margins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Margin of each device: largest deviation from 1 that counts as no difference.
    pub margins: BTreeMap<Device, f64>,
    /// Speed-up common to all control cases of a device. Ratios are relative to it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub machine: BTreeMap<Device, f64>,
    /// Number of cases per finding.
    pub counts: BTreeMap<&'static str, usize>,
    /// Cases, sorted by severity.
    pub cases: Vec<CaseChange>,
}

impl RunComparison {
    /// True if a case became slower or broke.
    pub fn has_regressions(&self) -> bool {
        self.cases.iter().any(|case| case.finding.is_regression())
    }

    /// Cases to list: changes only, or all.
    pub fn listed_cases(&self, all: bool) -> impl Iterator<Item = &CaseChange> {
        self.cases.iter().filter(move |case| all || case.finding.is_change() || case.sqnr_db.is_some())
    }

    /// Number of cases per finding, by severity: `1 SLOWER, 499 SAME`.
    pub fn tally(&self) -> String {
        let count = |finding: CaseFinding| Some((self.counts.get(finding.as_str())?, finding));
        let counts = CaseFinding::ALL.into_iter().filter_map(count);
        counts.map(|(count, finding)| format!("{count} {}", finding.as_str())).collect::<Vec<_>>().join(", ")
    }
}

/// Compares runs. Several runs per side are repetitions.
pub fn compare(
    before: &[ComparedRun],
    after: &[ComparedRun],
    options: &CompareOptions,
) -> Result<RunComparison, CompareError> {
    let cases = match_cases(before, after);
    let shared = cases.iter().filter(|(_, one, other)| !one.is_empty() && !other.is_empty());
    let devices: BTreeSet<Device> = shared.map(|(_, one, _)| one[0].device).collect();
    if devices.is_empty() {
        return Err(nothing_shared_error(before, after));
    }
    let Comparability { unlike, differences } = check_comparability(before.iter().chain(after), &devices);
    if !unlike.is_empty() && !options.force {
        return Err(CompareError::NotComparable { reasons: unlike.join("; ") });
    }
    let mut cases: Vec<CaseChange> =
        cases.into_iter().filter_map(|(id, one, other)| CaseChange::new(id, &one, &other, options.force)).collect();
    let is_repeated =
        |case: &CaseChange| [&case.before, &case.after].into_iter().flatten().any(|seen| seen.is_repeated());
    let repeated = cases.iter().any(is_repeated);
    let (margins, mut notes) = margins(options, &devices, repeated);
    let of_controls = |line: &&String| CONTROL_FACTS.iter().any(|what| line.starts_with(what));
    let same_libraries = !differences.iter().any(|line| of_controls(&line));
    let mut machine = BTreeMap::new();
    for device in devices {
        let shift = remove_common_shift(&mut cases, device, margins[&device], same_libraries, &mut notes);
        machine.extend(shift.map(|factor| (device, factor)));
    }
    assign_verdicts(&mut cases, &margins);
    let mut counts = BTreeMap::new();
    for case in &cases {
        *counts.entry(case.finding.as_str()).or_insert(0) += 1;
    }
    cases.sort_by(|one, other| (one.finding, &one.id).cmp(&(other.finding, &other.id)));
    let names = |runs: &[ComparedRun]| runs.iter().map(|run| run.name.clone()).collect();
    let (schema, version) = ("calorimeter-comparison", 1);
    let (before, after) = (names(before), names(after));
    Ok(RunComparison { schema, version, before, after, unlike, differences, notes, margins, machine, counts, cases })
}

/// Facts that must match for the control cases to be the same computation on both sides.
const CONTROL_FACTS: [&str; 4] = ["burn's version", "cubecl's version", "the compiler", "the set of features"];

type MatchedCase<'a> = (CaseId, Vec<&'a ComparedRecord>, Vec<&'a ComparedRecord>);

/// Groups the records by case, in the order of the runs.
fn match_cases<'a>(before: &'a [ComparedRun], after: &'a [ComparedRun]) -> Vec<MatchedCase<'a>> {
    let mut cases: Vec<MatchedCase<'a>> = Vec::new();
    let mut index_of: HashMap<&CaseId, usize> = HashMap::new();
    let mut add = |runs: &'a [ComparedRun], is_after: bool| {
        for record in runs.iter().flat_map(|run| &run.read.records) {
            let id = &record.id;
            let index = *index_of.entry(id).or_insert(cases.len());
            if index == cases.len() {
                cases.push((id.clone(), Vec::new(), Vec::new()));
            }
            let (_, one, other) = &mut cases[index];
            if is_after {
                other.push(record)
            } else {
                one.push(record)
            };
        }
    };
    add(before, false);
    add(after, true);
    cases
}

fn nothing_shared_error(before: &[ComparedRun], after: &[ComparedRun]) -> CompareError {
    let name = |runs: &[ComparedRun]| runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>().join(",");
    let example = |runs: &[ComparedRun]| runs[0].read.records[0].id.to_string();
    let (one, other) = (example(before), example(after));
    CompareError::NothingShared { before: name(before), after: name(after), one, other }
}

/// Divides the changes on a device by the shift that its control cases have in common, and returns that factor. Also
/// widens intervals that are narrower than the scatter of the control cases.
///
/// Control cases are unquantized cases of burn's eager implementation. Kernels and recipes do not affect them, but burn
/// and the compiler must be the same on both sides.
fn remove_common_shift(
    cases: &mut [CaseChange],
    device: Device,
    margin: f64,
    same_libraries: bool,
    notes: &mut Vec<String>,
) -> Option<f64> {
    let mut on_device: Vec<&mut CaseChange> =
        cases.iter_mut().filter(|case| case.device == device && case.change.is_some()).collect();
    let changes = |wanted: fn(&CaseChange) -> bool| -> Vec<SpeedChange> {
        on_device.iter().filter(|case| wanted(case)).filter_map(|case| case.change).collect()
    };
    let ratios = |changes: &[SpeedChange]| changes.iter().map(|change| change.ratio).collect::<Vec<f64>>();
    let (all, controls) = (changes(|_| true), changes(|case| case.control));
    if !same_libraries || !(CommonShift::MIN_RATIOS..all.len()).contains(&controls.len()) {
        let shift = CommonShift::from_ratios(&ratios(&all), margin)?;
        notes.push(format!(
            "{device}: nearly all cases changed by the same factor, {:.4}x: the speed of the machine or a shared component \
             changed; there are no control cases to tell which",
            shift.factor
        ));
        return None;
    }
    let count = controls.len();
    let scatter = SpeedChange::scatter_half_width(&controls)?;
    for case in &mut on_device {
        case.change = case.change.and_then(|change| change.with_min_half_width(scatter));
    }
    notes.push(format!(
        "{device}: {count} control cases (unquantized burn, which kernels and recipes do not affect) scatter within {:.1} %; \
         no interval is narrower than that",
        100.0 * scatter
    ));
    let shift = CommonShift::from_ratios(&ratios(&controls), margin)?;
    let shared = ValueWithInterval { center: shift.factor, lo: shift.lo, hi: shift.hi };
    for case in &mut on_device {
        case.change = case.change.and_then(|change| change.relative_to(shared));
    }
    notes.push(format!(
        "{device}: the machine ran {:.4} times as fast in B, according to its {count} control cases; all ratios on \
         {device} are relative to that",
        shift.factor
    ));
    Some(shift.factor)
}

/// Assigns verdicts to all cases with a change, corrected for the number of cases.
fn assign_verdicts(cases: &mut [CaseChange], margins: &BTreeMap<Device, f64>) {
    let (mut changed, mut chances) = (Vec::new(), Vec::new());
    for case in cases {
        if let Some(change) = case.change {
            chances.push(change.p);
            changed.push((case, change));
        }
    }
    for ((case, change), is_discovery) in changed.into_iter().zip(discoveries(&chances, FALSE_DISCOVERY_RATE)) {
        let margin = margins[&case.device];
        case.judge(change, margin, is_discovery);
    }
}
