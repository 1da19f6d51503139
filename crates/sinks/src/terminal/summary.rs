//! Summary of a finished run.

use std::cmp::Reverse;

use super::conclusion::conclusion;
use super::programs::{comparisons, has_no_buffers};
use super::text::{four_digits, indented, wrap};
use super::{Color, EVEN, RECIPE_WIDTH, bold, escape, group, paint};
use crate::causes::{Cause, causes};
use crate::journal::count_by_status;
use calorimeter_case::record::{Record, Status, SuiteSpeedup, Warning, WarningCode};

const MAX_LISTED: usize = 10;

/// Minimum number of shapes for a mean.
const MIN_SHAPES: u64 = 3;

/// Formats status counts, mean speed-ups over all shapes, comparisons of external programs, wins of each implementation,
/// reasons for missing times, warnings, and the conclusion in words.
pub fn summary(records: &[Record], suite: &[SuiteSpeedup], color: Color, width: usize) -> String {
    let counts = count_by_status(records);
    let parts: Vec<String> =
        Status::ALL.iter().filter_map(|status| counts.get(status).map(|count| format!("{count} {status}"))).collect();
    let head = match parts.as_slice() {
        [] => cases(0),
        _ => format!("{}: {}", cases(records.len()), parts.join(", ")),
    };
    let mut lines = vec![bold(&head, color)];
    let several: Vec<&SuiteSpeedup> = suite.iter().filter(|speedup| speedup.cases >= MIN_SHAPES).collect();
    if !several.is_empty() {
        lines.push(bold("speed-up over all shapes, geometric mean", color));
        let no_buffers = records.iter().all(|record| has_no_buffers(&record.case));
        let place = |speedup: &SuiteSpeedup| {
            let SuiteSpeedup { cases, dtype, device, regime, .. } = speedup;
            let conditions = match no_buffers {
                true => device.clone(),
                false => format!("{dtype}  {device}  {regime}"),
            };
            escape(&format!("  {cases} shapes  {conditions}")).into_owned()
        };
        for alike in several.chunk_by(|one, other| place(one) == place(other)) {
            lines.extend(alike.first().map(|first| place(first)));
            lines.extend(alike.iter().map(|speedup| speedup_line(speedup)));
        }
    }
    let comparisons = comparisons(records);
    if !comparisons.is_empty() {
        lines.push(bold("comparison, with 95 % intervals", color));
        lines.extend(comparisons.iter().cloned());
    }
    let winners = winners(records);
    if !winners.is_empty() {
        lines.push(bold("fastest implementation, by number of shapes", color));
        lines.extend(winners);
    }
    let causes = causes(records);
    if !causes.is_empty() {
        lines.push(bold("not measured", color));
        lines.extend(causes.iter().flat_map(|cause| cause_lines(cause, color, width)));
    }
    let warnings = warnings_by_kind(records);
    if !warnings.is_empty() {
        lines.push(bold("warnings", color));
        lines.extend(warnings.iter().take(MAX_LISTED).map(|warning| indented(warning, 2, width)));
        if warnings.len() > MAX_LISTED {
            lines.push(format!("  and {} more", warnings.len() - MAX_LISTED));
        }
    }
    let conclusion = if comparisons.is_empty() { conclusion(records) } else { None };
    let ending: Vec<String> = conclusion.into_iter().chain(noise(records)).collect();
    if !ending.is_empty() {
        lines.push(String::new());
        lines.extend(ending.iter().flat_map(|sentence| wrap(sentence, width)));
    }
    lines.join("\n")
}

/// Counts the warnings of each kind, most frequent first, except those about noise. Shows one of different texts; the
/// others are in the records.
fn warnings_by_kind(records: &[Record]) -> Vec<String> {
    let mut kinds: Vec<Vec<&Warning>> = Vec::new();
    for warning in records.iter().flat_map(|record| record.warnings.iter()).filter(|warning| !warning.code.is_noise()) {
        let is_alike = |known: &Warning| match warning.code {
            WarningCode::Other => known == warning,
            code => known.code == code,
        };
        match kinds.iter_mut().find(|kind| is_alike(kind[0])) {
            Some(kind) => kind.push(warning),
            None => kinds.push(vec![warning]),
        }
    }
    kinds.sort_by_key(|kind| Reverse(kind.len()));
    let line = |kind: Vec<&Warning>| {
        let example = if kind.iter().all(|warning| *warning == kind[0]) { "" } else { "e.g. " };
        format!("{} × {example}{}", kind.len(), kind[0])
    };
    kinds.into_iter().map(line).collect()
}

/// Counts cases that did not converge, and gives advice. The intervals of converged cases contain the noise.
fn noise(records: &[Record]) -> Option<String> {
    let unconverged: Vec<&Record> = records.iter().filter(|record| record.time.converged == Some(false)).collect();
    let timed = records.iter().filter(|record| record.time.time_ns.is_some()).count();
    let lock = "lock the clock of the throttled device (--lock-clocks)";
    let measure = "close programs or raise --max-time";
    let advice = match unconverged.iter().filter(|record| was_throttled(record)).count() {
        0 => measure.into(),
        throttled if throttled == unconverged.len() => lock.into(),
        _ => format!("{lock}, {measure}"),
    };
    (!unconverged.is_empty())
        .then(|| format!("Noise: {} of {timed} cases did not converge; {advice}.", unconverged.len()))
}

/// True if a power or temperature limit slowed the device while the case or its group was measured.
fn was_throttled(record: &Record) -> bool {
    let has_warning = || record.warnings.iter().any(|warning| warning.code == WarningCode::Throttled);
    record.time.in_turns_ns.is_some() || record.time.held_back.is_some_and(|share| share > 0.0) || has_warning()
}

fn speedup_line(speedup: &SuiteSpeedup) -> String {
    let SuiteSpeedup { recipe, implementation, ratio, lo, hi, .. } = speedup;
    let interval = match (lo, hi) {
        (Some(lo), Some(hi)) => format!("[{}, {}]", four_digits(*lo), four_digits(*hi)),
        _ => "too few for an interval".into(),
    };
    let ratio = format!("{}x", four_digits(*ratio));
    escape(&format!("    {recipe:RECIPE_WIDTH$} {implementation:6}  {ratio:>8} {interval}")).into_owned()
}

/// Wins of each implementation against others, for each recipe. External programs are compared in sentences.
fn winners(records: &[Record]) -> Vec<String> {
    let mut wins: Vec<(String, Vec<(&str, usize)>)> = Vec::new();
    // Compared cases are adjacent.
    for group in records.chunk_by(|a, b| group(&a.case) == group(&b.case)) {
        for contest in contests(group).into_iter().filter(|contest| contest.rivals > 1) {
            let case = &contest.best.case;
            if case.mode.is_foreign() {
                continue;
            }
            let row = if case.mode.is_operator() { "operators".into() } else { case.variant() };
            let row = position_or_push(&mut wins, row);
            let row = &mut wins[row].1;
            let name = if contest.is_even { EVEN } else { contest.best.case.implementation.name().as_str() };
            let cell = position_or_push(row, name);
            row[cell].1 += 1;
        }
    }
    let line = |(recipe, mut wins): (String, Vec<(&str, usize)>)| {
        wins.sort_by_key(|(_, count)| Reverse(*count));
        let wins: Vec<String> = wins.iter().map(|(name, count)| format!("{name} {count}")).collect();
        escape(&format!("  {recipe:RECIPE_WIDTH$} {}", wins.join(", "))).into_owned()
    };
    wins.retain(|(_, wins)| wins.iter().map(|(_, count)| count).sum::<usize>() as u64 >= MIN_SHAPES);
    wins.into_iter().map(line).collect()
}

/// Fastest implementation of a recipe at a shape.
struct Contest<'a> {
    rivals: usize,
    best: &'a Record,
    nanos: f64,
    /// True if the confidence interval of another implementation overlaps its own.
    is_even: bool,
}

fn contests(group: &[Record]) -> Vec<Contest<'_>> {
    let recipe = |record: &Record| (record.case.recipe, record.case.sparsity);
    let mut contests: Vec<Contest> = Vec::new();
    for record in group.iter().filter(|record| record.outcome.status == Status::Ok) {
        let Some(nanos) = record.time.time_ns.map(|time| time.median) else { continue };
        match contests.iter_mut().find(|contest| recipe(contest.best) == recipe(record)) {
            None => contests.push(Contest { rivals: 1, best: record, nanos, is_even: false }),
            Some(contest) => {
                contest.rivals += 1;
                if nanos < contest.nanos {
                    (contest.best, contest.nanos) = (record, nanos);
                }
            }
        }
    }
    for contest in &mut contests {
        let end = contest.best.time.time_ns.map(|time| time.hi.unwrap_or(time.median));
        let reaches = |record: &Record| record.time.time_ns.map(|time| time.lo.unwrap_or(time.median)) <= end;
        let rivals = group.iter().filter(|record| record.outcome.status == Status::Ok && record.time.time_ns.is_some());
        let mut rivals = rivals.filter(|record| recipe(record) == recipe(contest.best));
        contest.is_even = rivals.any(|record| record.case.id != contest.best.case.id && reaches(record));
    }
    contests
}

/// Insertion-ordered map: index of a key, which is added if missing.
fn position_or_push<K: PartialEq, V: Default>(list: &mut Vec<(K, V)>, key: K) -> usize {
    list.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
        list.push((key, V::default()));
        list.len() - 1
    })
}

/// Formats a reason with its cases. Unsupported cases are counted only, because an entry may have thousands.
fn cause_lines(cause: &Cause, color: Color, width: usize) -> Vec<String> {
    if cause.status == Status::Unsupported {
        let text = format!("{} {}: {}", cases(cause.ids.len()), cause.status, cause.reason);
        return vec![indented(&text, 2, width)];
    }
    let mut lines = vec![format!("  {}, {}", paint(cause.status.as_str(), "33", color), cases(cause.ids.len()))];
    if !cause.reason.is_empty() {
        lines.push(indented(cause.reason, 4, width));
    }
    lines.extend(cause.ids.iter().take(MAX_LISTED).map(|id| format!("      {}", escape(id))));
    if cause.ids.len() > MAX_LISTED {
        lines.push(format!("      and {} more", cause.ids.len() - MAX_LISTED));
    }
    lines
}

fn cases(count: usize) -> String {
    if count == 1 { "1 case".into() } else { format!("{count} cases") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::Case;
    use calorimeter_case::record::Estimate;

    fn unconverged() -> Record {
        let mut record = Record::new(Case::default(), Status::Ok);
        record.time.time_ns = Some(Estimate { median: 1.0, lo: None, hi: None });
        record.time.converged = Some(false);
        record
    }

    #[test]
    fn advice_on_noise_depends_on_throttling() {
        let (mut throttled, mut precise) = (unconverged(), unconverged());
        throttled.warnings.push(Warning::throttled(3));
        precise.time.converged = Some(true);
        let advice = |records: &[Record]| {
            noise(records).map(|text| (text.contains("--lock-clocks"), text.contains("--max-time")))
        };
        assert_eq!(advice(&[precise.clone()]), None);
        assert_eq!(advice(&[unconverged(), precise]), Some((false, true)));
        assert_eq!(advice(&[throttled.clone()]), Some((true, false)));
        assert_eq!(advice(&[throttled, unconverged()]), Some((true, true)));
    }

    #[test]
    fn warnings_with_different_numbers_show_an_example() {
        let record = |rounds| Record { warnings: [Warning::throttled(rounds)].into_iter().collect(), ..unconverged() };
        let example = Warning::throttled(3).to_string();
        assert_eq!(warnings_by_kind(&[record(3), record(5)]), [format!("2 × e.g. {example}")]);
        assert_eq!(warnings_by_kind(&[record(3), record(3)]), [format!("2 × {example}")]);
    }
}
