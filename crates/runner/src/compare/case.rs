//! One case on both sides.

use super::measured::Measured;
use super::side::Side;
use calorimeter_case::record::{Accuracy, Status};
use calorimeter_case::{CaseId, Device, Implementation, Verdict};
use calorimeter_timing::Change;
use serde::Serialize;

/// What became of a case from one side to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// It was measured, and now it goes wrong.
    Broken,
    /// Its time became longer.
    Slower,
    /// Its time became shorter.
    Faster,
    /// It went wrong, and now it is measured.
    Mended,
    /// It ended otherwise, and one of the two ways is no fault of its own.
    EndsOtherwise,
    /// Its times are of two different things.
    Unlike,
    Unclear,
    Same,
    /// It has no time on either side.
    NotTimed,
    OnlyBefore,
    OnlyAfter,
}

impl Finding {
    pub const ALL: [Self; 11] = [
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

    /// The word of the tables: of times it is that of the verdict.
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

    /// Whether it is what a check of a change is there to find.
    pub fn is_regression(self) -> bool {
        matches!(self, Self::Broken | Self::Slower)
    }

    /// Whether a reader wants to see it without asking for every case.
    pub fn is_change(self) -> bool {
        !matches!(self, Self::Unclear | Self::Same | Self::NotTimed | Self::OnlyBefore | Self::OnlyAfter)
    }
}

impl From<Verdict> for Finding {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Faster => Self::Faster,
            Verdict::Slower => Self::Slower,
            Verdict::Same => Self::Same,
            Verdict::Unclear => Self::Unclear,
        }
    }
}

/// How many times faster a case became.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// The time before over the time after: above 1 is faster.
    pub ratio: f64,
    /// Ends of its 95 % interval.
    pub lo: f64,
    pub hi: f64,
    /// How often chance alone shows such a difference where there is none.
    pub p: f64,
    /// A difference within this share of 1 is none.
    pub margin: f64,
    /// The verdict of the interval alone, as if there were no other case.
    pub alone: Verdict,
}

/// A case on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseChange {
    pub id: CaseId,
    pub finding: Finding,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Side>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Side>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Ratio>,
    /// Signal over error in dB, before and after, where it became another by more than rounding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sqnr_db: Option<[Option<f64>; 2]>,
    /// What a reader of the ratio should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Whether it is measured to tell the machine's speed: nobody's kernels, nothing quantized.
    pub control: bool,
    #[serde(skip)]
    pub device: Device,
    #[serde(skip)]
    pub change: Option<Change>,
}

impl CaseChange {
    /// From the records of the case on each side; with `force`, times of different things are compared, too.
    pub fn of(id: CaseId, before: &[&Measured], after: &[&Measured], force: bool) -> Option<Self> {
        let any = before.first().or(after.first())?;
        let control = any.is_baseline() && any.implementation == Implementation::Eager;
        let device = any.device;
        let mut remarks: Vec<String> = differences(before, after);
        let unlike = stopwatches(before, after).or_else(|| levels(before, after));
        let (seen, then) = (Side::of(before), Side::of(after));
        let (mut finding, mut change) = (ending(seen.as_ref(), then.as_ref()), None);
        if finding == Finding::Unclear {
            let is_unlike = unlike.is_some();
            remarks.extend(unlike);
            if is_unlike && !force {
                finding = Finding::Unlike;
            } else {
                change = seen.as_ref().zip(then.as_ref()).and_then(|(seen, then)| changed(seen, then));
                if change.is_none() {
                    remarks.push("too few windows for an interval".into());
                }
            }
        }
        let sqnr_db = other_accuracy(before, after);
        Some(Self { id, finding, before: seen, after: then, ratio: None, sqnr_db, remarks, control, device, change })
    }

    /// Takes the verdict on its change. Where that is one of many and might be chance, nothing is said.
    pub fn judge(&mut self, change: Change, margin: f64, is_discovery: bool) {
        let Change { ratio, lo, hi, p, .. } = change;
        let alone = Verdict::of(Some(lo), Some(hi), margin);
        let says_more = matches!(alone, Verdict::Faster | Verdict::Slower);
        self.finding = if says_more && !is_discovery { Finding::Unclear } else { alone.into() };
        self.ratio = Some(Ratio { ratio, lo, hi, p, margin, alone });
    }
}

/// What the ends of a case say, before its times are looked at: `Unclear` is what has times on both sides.
fn ending(before: Option<&Side>, after: Option<&Side>) -> Finding {
    let (Some(before), Some(after)) = (before, after) else {
        return if before.is_some() { Finding::OnlyBefore } else { Finding::OnlyAfter };
    };
    let at_fault = |status| matches!(status, Status::Mismatch | Status::Failed | Status::Timeout | Status::Crashed);
    match (before.status, after.status) {
        (Status::Ok, Status::Ok) if before.time_ns.is_some() && after.time_ns.is_some() => Finding::Unclear,
        (Status::Ok, then) if at_fault(then) => Finding::Broken,
        (was, Status::Ok) if at_fault(was) => Finding::Mended,
        (was, then) if was == then => Finding::NotTimed,
        _ => Finding::EndsOtherwise,
    }
}

fn changed(before: &Side, after: &Side) -> Option<Change> {
    if before.is_repeated() || after.is_repeated() {
        return Change::of_processes(&before.of_processes_ns, &after.of_processes_ns);
    }
    Change::of_figures(before.figure()?, after.figure()?)
}

/// Why times are not of one thing, where they were read from two clocks.
fn stopwatches(before: &[&Measured], after: &[&Measured]) -> Option<String> {
    let all = before.iter().chain(after);
    let mut clocks: Vec<&str> = all.filter_map(|record| record.stopwatch.as_deref()).collect();
    clocks.dedup();
    (clocks.len() > 1).then(|| format!("read from different clocks: {}", clocks.join(", then ")))
}

/// Why times are not of one thing, where one side's kernels were chosen at other sizes.
fn levels(before: &[&Measured], after: &[&Measured]) -> Option<String> {
    let mut levels = before.iter().chain(after).map(|record| record.autotune_level.unwrap_or_default());
    let first = levels.next()?;
    let other = levels.find(|level| *level != first)?;
    Some(format!("tuned at different levels: {first}, then {other}"))
}

/// A share of windows that says something of the time.
const HELD_BACK: f64 = 0.05;

/// What else differs of what ran.
fn differences(before: &[&Measured], after: &[&Measured]) -> Vec<String> {
    let (Some(before), Some(after)) = (before.first(), after.first()) else { return Vec::new() };
    let mut differences = Vec::new();
    if let (Some(was), Some(is)) = (&before.kernel, &after.kernel)
        && tried(was) != tried(is)
    {
        differences.push(format!("another kernel: {is}, in A {was}"));
    }
    if !before.autotune.is_empty() && !after.autotune.is_empty() && before.autotune != after.autotune {
        differences.push("the autotuner decided otherwise".into());
    }
    let [was, is] = [before, after].map(|record| record.held_back.is_some_and(|share| share > HELD_BACK));
    if was != is {
        let side = if is { "B" } else { "A" };
        differences.push(format!("power or heat held the device back in {side} alone"));
    }
    differences
}

/// A kernel that was tried when it was chosen, for one that was kept from an earlier trial: they are the same.
fn tried(kernel: &str) -> String {
    kernel.replace(", kept from an earlier trial)", ", all of them tried)")
}

/// Figures that differ by less are the same to a reader.
const DECIBELS: f64 = 0.1;

/// The signal over the error on both sides, where that became another; none is an exact output.
fn other_accuracy(before: &[&Measured], after: &[&Measured]) -> Option<[Option<f64>; 2]> {
    let of = |records: &[&Measured]| records.iter().find_map(|record| record.accuracy.as_deref().copied());
    let (was, is): (Accuracy, Accuracy) = (of(before)?, of(after)?);
    let differ = match (was.sqnr_db, is.sqnr_db) {
        (Some(was), Some(is)) => (was - is).abs() >= DECIBELS,
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

    fn record() -> Measured {
        let mut record = Record::new(Case::default(), Status::Ok);
        record.time.time_ns = Some(Estimate { median: 100.0, lo: Some(99.0), hi: Some(101.0) });
        record.execution.kernel = Some("gemm_128".into());
        record.accuracy = Some(Box::new(Accuracy { sqnr_db: Some(40.0), rel_l2: Some(0.01), ..Accuracy::default() }));
        Measured::from(&record)
    }

    fn compared(before: &Measured, after: &Measured) -> CaseChange {
        CaseChange::of("x".into(), &[before], &[after], false).unwrap()
    }

    #[test]
    fn another_kernel_another_accuracy_and_another_state_of_power_are_told() {
        let before = record();
        assert!(compared(&before, &before).remarks.is_empty() && compared(&before, &before).sqnr_db.is_none());
        let chosen = |when: &str| Measured { kernel: Some(format!("gemm (number 2 of 8, {when})")), ..record() };
        let kept = compared(&chosen("all of them tried"), &chosen("kept from an earlier trial"));
        assert!(kept.remarks.is_empty(), "{:?}", kept.remarks);
        let mut after = record();
        after.kernel = Some("gemm_64".into());
        after.held_back = Some(0.6);
        after.accuracy = Some(Box::new(Accuracy { sqnr_db: Some(39.0), ..Accuracy::default() }));
        let change = compared(&before, &after);
        let told = ["another kernel: gemm_64, in A gemm_128", "power or heat held the device back in B alone"]
            .map(String::from);
        assert_eq!(change.remarks, told);
        assert_eq!(change.sqnr_db, Some([Some(40.0), Some(39.0)]));
        after.accuracy = Some(Box::new(Accuracy { rel_l2: Some(0.0), ..Accuracy::default() }));
        assert_eq!(compared(&before, &after).sqnr_db, Some([Some(40.0), None]));
    }

    #[test]
    fn kernels_tuned_at_another_level_are_another_thing() {
        let quick = Measured { autotune_level: Some(TuningLevel::Quick), ..record() };
        let change = compared(&record(), &quick);
        assert_eq!(change.finding, Finding::Unlike);
        assert_eq!(change.remarks, ["tuned at different levels: full, then quick"]);
        assert_ne!(compared(&quick, &quick).finding, Finding::Unlike);
    }

    #[test]
    fn how_a_case_ends_on_both_sides_is_its_finding() {
        let ended = |status: Status| Measured { status, ..record() };
        for (before, after, finding) in [
            (Status::Ok, Status::Crashed, Finding::Broken),
            (Status::Ok, Status::Mismatch, Finding::Broken),
            (Status::Ok, Status::Unsupported, Finding::EndsOtherwise),
            (Status::Timeout, Status::Ok, Finding::Mended),
            (Status::Unsupported, Status::Ok, Finding::EndsOtherwise),
            (Status::Failed, Status::Failed, Finding::NotTimed),
        ] {
            assert_eq!(compared(&ended(before), &ended(after)).finding, finding, "{before} {after}");
        }
        let only =
            |before: &[&Measured], after: &[&Measured]| CaseChange::of("x".into(), before, after, false).unwrap();
        assert_eq!(only(&[&record()], &[]).finding, Finding::OnlyBefore);
        assert_eq!(only(&[], &[&record()]).finding, Finding::OnlyAfter);
    }
}
