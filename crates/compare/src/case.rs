//! Comparison of one case.

use super::compared_record::ComparedRecord;
use super::side::CaseSide;
use calorimeter_case::record::{Accuracy, Status};
use calorimeter_case::{CaseId, Device, Implementation, Verdict};
use calorimeter_timing::SpeedChange;
use serde::Serialize;

/// Result of comparing a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CaseFinding {
    /// Measured before, failing now.
    Broken,
    /// Takes longer.
    Slower,
    /// Takes less time.
    Faster,
    /// Failing before, measured now.
    Mended,
    /// Different statuses, at least one of which is neither a success nor a fault.
    EndsOtherwise,
    /// Times that are not comparable.
    Unlike,
    /// Interval too wide for a verdict.
    Unclear,
    /// Difference within the margin.
    Same,
    /// Without a time, and with the status unchanged.
    NotTimed,
    /// Case that only the runs before contain.
    OnlyBefore,
    /// Case that only the runs after contain.
    OnlyAfter,
}

impl CaseFinding {
    pub(crate) const ALL: [Self; 11] = [
        Self::Broken,
        Self::Slower,
        Self::Faster,
        Self::Mended,
        Self::EndsOtherwise,
        Self::Unlike,
        Self::Unclear,
        Self::Same,
        Self::NotTimed,
        Self::OnlyBefore,
        Self::OnlyAfter,
    ];

    /// Word in tables and counts; for timed cases the word of the verdict.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Slower => Verdict::Slower.as_str(),
            Self::Faster => Verdict::Faster.as_str(),
            Self::Mended => "mended",
            Self::EndsOtherwise => "ends otherwise",
            Self::Unlike => "not compared",
            Self::Unclear => Verdict::Unclear.as_str(),
            Self::Same => Verdict::Same.as_str(),
            Self::NotTimed => "not timed",
            Self::OnlyBefore => "only in A",
            Self::OnlyAfter => "only in B",
        }
    }

    /// True for findings that fail a regression check.
    pub fn is_regression(self) -> bool {
        matches!(self, Self::Broken | Self::Slower)
    }

    /// True for findings that are listed by default.
    pub fn is_change(self) -> bool {
        !matches!(self, Self::Unclear | Self::Same | Self::NotTimed | Self::OnlyBefore | Self::OnlyAfter)
    }
}

impl From<Verdict> for CaseFinding {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Faster => Self::Faster,
            Verdict::Slower => Self::Slower,
            Verdict::Same => Self::Same,
            Verdict::Unclear => Self::Unclear,
        }
    }
}

/// Speed ratio of a case, with its interval and verdict.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SpeedRatio {
    /// Time before divided by time after; above 1 is faster.
    pub ratio: f64,
    /// Lower bound of the 95 % interval.
    pub lo: f64,
    /// Upper bound of the 95 % interval.
    pub hi: f64,
    /// p-value: probability of a difference this large if there is none.
    pub p: f64,
    /// Largest deviation from 1 that counts as no difference.
    pub margin: f64,
    /// Verdict without correction for the number of cases.
    pub alone: Verdict,
}

/// Case with its results on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseChange {
    /// Id of the case.
    pub id: CaseId,
    /// Result of the comparison.
    pub finding: CaseFinding,
    /// Results before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<CaseSide>,
    /// Results after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<CaseSide>,
    /// Speed ratio, if the times were compared.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<SpeedRatio>,
    /// SQNR in dB before and after, if it changed by more than rounding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sqnr_db: Option<[Option<f64>; 2]>,
    /// Remarks for the reader of the ratio.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// True for control cases, which measure the speed of the machine: unquantized, by burn's eager implementation.
    pub control: bool,
    /// Device of the case.
    #[serde(skip)]
    pub device: Device,
    #[serde(skip)]
    pub(crate) change: Option<SpeedChange>,
}

impl CaseChange {
    /// Compares the records of a case. With `force`, times that are not comparable are compared as well.
    pub(crate) fn new(id: CaseId, before: &[&ComparedRecord], after: &[&ComparedRecord], force: bool) -> Option<Self> {
        let first = before.first().or(after.first())?;
        let control = first.is_baseline() && first.implementation == Implementation::Eager;
        let device = first.device;
        let mut remarks: Vec<String> = differences(before, after);
        let mismatch = stopwatch_mismatch(before, after).or_else(|| tuning_level_mismatch(before, after));
        let (old, new) = (CaseSide::from_records(before), CaseSide::from_records(after));
        let (mut finding, mut change) = (status_finding(old.as_ref(), new.as_ref()), None);
        if finding == CaseFinding::Unclear {
            let is_mismatch = mismatch.is_some();
            remarks.extend(mismatch);
            if is_mismatch && !force {
                finding = CaseFinding::Unlike;
            } else {
                change = old.as_ref().zip(new.as_ref()).and_then(|(old, new)| time_change(old, new));
                if change.is_none() {
                    remarks.push("too few windows for an interval".into());
                }
            }
        }
        let sqnr_db = accuracy_change(before, after);
        Some(Self { id, finding, before: old, after: new, ratio: None, sqnr_db, remarks, control, device, change })
    }

    /// Sets ratio and verdict. A difference that is not significant among all cases becomes `Unclear`.
    pub(crate) fn judge(&mut self, change: SpeedChange, margin: f64, is_discovery: bool) {
        let SpeedChange { ratio, lo, hi, p, .. } = change;
        let alone = Verdict::from_interval(Some(lo), Some(hi), margin);
        let is_difference = matches!(alone, Verdict::Faster | Verdict::Slower);
        self.finding = if is_difference && !is_discovery { CaseFinding::Unclear } else { alone.into() };
        self.ratio = Some(SpeedRatio { ratio, lo, hi, p, margin, alone });
    }
}

/// Finding according to the statuses, before times are compared. `Unclear` means that both sides have times.
fn status_finding(before: Option<&CaseSide>, after: Option<&CaseSide>) -> CaseFinding {
    let (Some(before), Some(after)) = (before, after) else {
        return if before.is_some() { CaseFinding::OnlyBefore } else { CaseFinding::OnlyAfter };
    };
    let is_fault = |status| matches!(status, Status::Mismatch | Status::Failed | Status::Timeout | Status::Crashed);
    match (before.status, after.status) {
        (Status::Ok, Status::Ok) if before.time_ns.is_some() && after.time_ns.is_some() => CaseFinding::Unclear,
        (Status::Ok, new) if is_fault(new) => CaseFinding::Broken,
        (old, Status::Ok) if is_fault(old) => CaseFinding::Mended,
        (old, new) if old == new => CaseFinding::NotTimed,
        _ => CaseFinding::EndsOtherwise,
    }
}

fn time_change(before: &CaseSide, after: &CaseSide) -> Option<SpeedChange> {
    if before.is_repeated() || after.is_repeated() {
        return SpeedChange::from_processes(&before.of_processes_ns, &after.of_processes_ns);
    }
    SpeedChange::from_intervals(before.figure()?, after.figure()?)
}

/// Reason why times are not comparable: different stopwatches.
fn stopwatch_mismatch(before: &[&ComparedRecord], after: &[&ComparedRecord]) -> Option<String> {
    let all = before.iter().chain(after);
    let mut clocks: Vec<&str> = all.filter_map(|record| record.stopwatch.as_deref()).collect();
    clocks.dedup();
    (clocks.len() > 1).then(|| format!("measured by different stopwatches: {}", clocks.join(", then ")))
}

/// Reason why times are not comparable: kernels were tuned at different levels.
fn tuning_level_mismatch(before: &[&ComparedRecord], after: &[&ComparedRecord]) -> Option<String> {
    let mut levels = before.iter().chain(after).map(|record| record.autotune_level.unwrap_or_default());
    let first = levels.next()?;
    let other = levels.find(|level| *level != first)?;
    Some(format!("tuned at different levels: {first}, then {other}"))
}

/// Minimum share of throttled windows that is worth a remark.
const MIN_THROTTLED_SHARE: f64 = 0.05;

/// Remarks on differences in kernel, autotuning and throttling.
fn differences(before: &[&ComparedRecord], after: &[&ComparedRecord]) -> Vec<String> {
    let (Some(before), Some(after)) = (before.first(), after.first()) else { return Vec::new() };
    let mut differences = Vec::new();
    if let (Some(was), Some(is)) = (&before.kernel, &after.kernel)
        && comparable_kernel_name(was) != comparable_kernel_name(is)
    {
        differences.push(format!("different kernels: {was} in A, {is} in B"));
    }
    if !before.autotune.is_empty() && !after.autotune.is_empty() && before.autotune != after.autotune {
        differences.push("autotuning selected different kernels".into());
    }
    let [was, is] = [before, after].map(|record| record.held_back.is_some_and(|share| share > MIN_THROTTLED_SHARE));
    if was != is {
        let side = if is { "B" } else { "A" };
        differences.push(format!("device throttled in {side} only"));
    }
    differences
}

/// Kernel name without the origin of its selection: a cached choice and a new trial of the same algorithm are equal.
fn comparable_kernel_name(kernel: &str) -> String {
    kernel.replace(", kept from an earlier trial)", ", all of them tried)")
}

/// Minimum SQNR change that is reported.
const MIN_SQNR_CHANGE_DB: f64 = 0.1;

/// SQNR on both sides, if it changed. `None` inside the pair means an exact output.
fn accuracy_change(before: &[&ComparedRecord], after: &[&ComparedRecord]) -> Option<[Option<f64>; 2]> {
    let of = |records: &[&ComparedRecord]| records.iter().find_map(|record| record.accuracy.as_deref().copied());
    let (was, is): (Accuracy, Accuracy) = (of(before)?, of(after)?);
    let differ = match (was.sqnr_db, is.sqnr_db) {
        (Some(was), Some(is)) => (was - is).abs() >= MIN_SQNR_CHANGE_DB,
        (None, None) => false,
        _ => was.is_exact() != is.is_exact(),
    };
    differ.then_some([was.sqnr_db, is.sqnr_db])
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::record::{Estimate, Record};
    use calorimeter_case::{Case, TuningLevel};

    fn record() -> ComparedRecord {
        let mut record = Record::new(Case::default(), Status::Ok);
        record.time.time_ns = Some(Estimate { median: 100.0, lo: Some(99.0), hi: Some(101.0) });
        record.execution.kernel = Some("gemm_128".into());
        record.accuracy = Some(Box::new(Accuracy { sqnr_db: Some(40.0), rel_l2: Some(0.01), ..Accuracy::default() }));
        ComparedRecord::from(&record)
    }

    fn compared(before: &ComparedRecord, after: &ComparedRecord) -> CaseChange {
        CaseChange::new("x".into(), &[before], &[after], false).unwrap()
    }

    #[test]
    fn changed_kernel_accuracy_and_throttling_are_remarked() {
        let before = record();
        assert!(compared(&before, &before).remarks.is_empty() && compared(&before, &before).sqnr_db.is_none());
        let chosen = |when: &str| ComparedRecord { kernel: Some(format!("gemm (number 2 of 8, {when})")), ..record() };
        let kept = compared(&chosen("all of them tried"), &chosen("kept from an earlier trial"));
        assert!(kept.remarks.is_empty(), "{:?}", kept.remarks);
        let mut after = record();
        after.kernel = Some("gemm_64".into());
        after.held_back = Some(0.6);
        after.accuracy = Some(Box::new(Accuracy { sqnr_db: Some(39.0), ..Accuracy::default() }));
        let change = compared(&before, &after);
        let expected =
            ["different kernels: gemm_128 in A, gemm_64 in B", "device throttled in B only"].map(String::from);
        assert_eq!(change.remarks, expected);
        assert_eq!(change.sqnr_db, Some([Some(40.0), Some(39.0)]));
        after.accuracy = Some(Box::new(Accuracy { rel_l2: Some(0.0), ..Accuracy::default() }));
        assert_eq!(compared(&before, &after).sqnr_db, Some([Some(40.0), None]));
    }

    #[test]
    fn different_tuning_levels_are_not_compared() {
        let quick = ComparedRecord { autotune_level: Some(TuningLevel::Quick), ..record() };
        let change = compared(&record(), &quick);
        assert_eq!(change.finding, CaseFinding::Unlike);
        assert_eq!(change.remarks, ["tuned at different levels: full, then quick"]);
        assert_ne!(compared(&quick, &quick).finding, CaseFinding::Unlike);
    }

    #[test]
    fn statuses_determine_the_finding() {
        let ended = |status: Status| ComparedRecord { status, ..record() };
        for (before, after, finding) in [
            (Status::Ok, Status::Crashed, CaseFinding::Broken),
            (Status::Ok, Status::Mismatch, CaseFinding::Broken),
            (Status::Ok, Status::Unsupported, CaseFinding::EndsOtherwise),
            (Status::Timeout, Status::Ok, CaseFinding::Mended),
            (Status::Unsupported, Status::Ok, CaseFinding::EndsOtherwise),
            (Status::Failed, Status::Failed, CaseFinding::NotTimed),
        ] {
            assert_eq!(compared(&ended(before), &ended(after)).finding, finding, "{before} {after}");
        }
        let only = |before: &[&ComparedRecord], after: &[&ComparedRecord]| {
            CaseChange::new("x".into(), before, after, false).unwrap()
        };
        assert_eq!(only(&[&record()], &[]).finding, CaseFinding::OnlyBefore);
        assert_eq!(only(&[], &[&record()]).finding, CaseFinding::OnlyAfter);
    }
}
