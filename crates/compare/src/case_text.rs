//! Text of one case, shared by all output formats.

use super::case::{CaseChange, SpeedRatio};
use super::side::CaseSide;
use calorimeter_sinks::terminal::nanoseconds;

/// Formats the ratio with its interval: `0.9502x [0.9461, 0.9544]`.
pub(crate) fn ratio(ratio: &SpeedRatio) -> String {
    let SpeedRatio { ratio, lo, hi, .. } = ratio;
    format!("{ratio:.4}x [{lo:.4}, {hi:.4}]")
}

/// Formats the time of a side, or its status if there is none.
pub(crate) fn time(seen: Option<&CaseSide>) -> String {
    match seen {
        None => "-".into(),
        Some(CaseSide { time_ns: Some(time), .. }) => nanoseconds(time.median),
        Some(CaseSide { status, .. }) => status.to_string(),
    }
}

/// SQNR before and after, if it changed.
pub(crate) fn accuracy(case: &CaseChange) -> Option<String> {
    let [was, is] = case.sqnr_db?.map(|sqnr| sqnr.map_or_else(|| "exact".into(), |sqnr| format!("{sqnr:.1} dB")));
    Some(format!("accuracy: {was} in A, {is} in B"))
}

/// Reason for the status, accuracy change and remarks.
pub(crate) fn remarks(case: &CaseChange) -> Vec<String> {
    let reason = |seen: &Option<CaseSide>| seen.as_ref().and_then(|seen| seen.reason.clone());
    let [was, is] = [reason(&case.before), reason(&case.after)];
    let mut remarks: Vec<String> = match (was, is) {
        (was, Some(is)) if was.as_ref() != Some(&is) => vec![is],
        (Some(was), None) => vec![format!("in A: {was}")],
        _ => Vec::new(),
    };
    remarks.extend(accuracy(case));
    remarks.extend(case.remarks.iter().cloned());
    remarks
}

/// Formats the case as one sentence.
pub(crate) fn sentence(case: &CaseChange) -> String {
    let [was, is] = [&case.before, &case.after].map(|seen| time(seen.as_ref()));
    let ratio = case.ratio.as_ref().map_or_else(String::new, |found| format!("{}, ", ratio(found)));
    let mut sentence = format!("{ratio}{was} in A, {is} in B");
    for remark in remarks(case) {
        sentence += &format!("; {remark}");
    }
    sentence
}
