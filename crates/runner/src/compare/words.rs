//! One case in words, and figures as every output has them.

use super::case::{CaseChange, Ratio};
use super::side::Side;
use calorimeter_sinks::terminal::nanoseconds;

/// The ratio with its interval: `0.9502x [0.9461, 0.9544]`.
pub fn ratio(ratio: &Ratio) -> String {
    let Ratio { ratio, lo, hi, .. } = ratio;
    format!("{ratio:.4}x [{lo:.4}, {hi:.4}]")
}

/// The time of a side, or how it ended there.
pub fn time(seen: Option<&Side>) -> String {
    match seen {
        None => "-".into(),
        Some(Side { time_ns: Some(time), .. }) => nanoseconds(time.median),
        Some(Side { status, .. }) => status.to_string(),
    }
}

/// Signal over error before and after, where that changed.
pub fn accuracy(case: &CaseChange) -> Option<String> {
    let [was, is] = case.sqnr_db?.map(|sqnr| sqnr.map_or_else(|| "exact".into(), |sqnr| format!("{sqnr:.1} dB")));
    Some(format!("accuracy: {was} in A, {is} in B"))
}

/// Everything besides the figures: why it ended as it did, accuracy, remarks.
pub fn remarks(case: &CaseChange) -> Vec<String> {
    let reason = |seen: &Option<Side>| seen.as_ref().and_then(|seen| seen.reason.clone());
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

/// The case in a sentence.
pub fn sentence(case: &CaseChange) -> String {
    let [was, is] = [&case.before, &case.after].map(|seen| time(seen.as_ref()));
    let ratio = case.ratio.as_ref().map_or_else(String::new, |found| format!("{}, ", ratio(found)));
    let mut sentence = format!("{ratio}{was} in A, {is} in B");
    for remark in remarks(case) {
        sentence += &format!("; {remark}");
    }
    sentence
}
