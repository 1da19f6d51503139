//! What to say when a run is over.

use std::cmp::Reverse;

use super::text::{four_digits, indented};
use super::{Colour, RECIPE_WIDTH, bold, group, paint};
use crate::causes::{Cause, causes, warnings};
use crate::journal::count_by_status;
use calorimeter_case::record::{Record, Status, SuiteSpeedup};

const MOST_LISTED: usize = 10;

/// How the run went: counts, speed-ups over all shapes, which implementation won how often, why cases are not `ok`, and
/// what was warned of.
pub fn summary(records: &[Record], suite: &[SuiteSpeedup], colour: Colour, width: usize) -> String {
    let counts = count_by_status(records);
    let parts: Vec<String> =
        Status::ALL.iter().filter_map(|status| counts.get(status).map(|count| format!("{count} {status}"))).collect();
    let noun = if records.len() == 1 { "case" } else { "cases" };
    let head = match parts.as_slice() {
        [] => format!("0 {noun}"),
        _ => format!("{} {noun}: {}", records.len(), parts.join(", ")),
    };
    let mut lines = vec![bold(&head, colour)];
    let several: Vec<&SuiteSpeedup> = suite.iter().filter(|speedup| speedup.cases > 1).collect();
    if !several.is_empty() {
        lines.push(bold("speed-up over all shapes, geometric mean", colour));
        lines.extend(several.into_iter().map(|speedup| together(speedup, width)));
    }
    let winners = winners(records);
    if !winners.is_empty() {
        lines.push(bold("fastest implementation, by number of shapes", colour));
        lines.extend(winners);
    }
    let causes = causes(records);
    if !causes.is_empty() {
        lines.push(bold("not measured", colour));
        for cause in &causes {
            lines.extend(told(cause, colour, width));
        }
    }
    let warnings = warnings(records);
    if !warnings.is_empty() {
        lines.push(bold("warnings", colour));
        lines.extend(
            warnings.iter().take(MOST_LISTED).map(|(warning, n)| indented(&format!("{n} × {warning}"), 2, width)),
        );
        if warnings.len() > MOST_LISTED {
            lines.push(format!("  and {} more", warnings.len() - MOST_LISTED));
        }
    }
    lines.join("\n")
}

fn together(speedup: &SuiteSpeedup, width: usize) -> String {
    let SuiteSpeedup { recipe, implementation, device, dtype, regime, cases, ratio, lo, hi } = speedup;
    let interval = match (lo, hi) {
        (Some(lo), Some(hi)) => format!("[{}, {}]", four_digits(*lo), four_digits(*hi)),
        _ => "too few for an interval".into(),
    };
    let ratio = format!("{}x", four_digits(*ratio));
    let where_to = format!("{cases} shapes  {dtype}  {device}  {regime}");
    let figures = format!("  {recipe:RECIPE_WIDTH$} {implementation:6}  {ratio:>8} {interval:<24}");
    if figures.chars().count() + 1 + where_to.chars().count() <= width {
        format!("{figures} {where_to}")
    } else {
        format!("{}\n{}", figures.trim_end(), indented(&where_to, 4, width))
    }
}

/// Which implementation was the fastest of several, how often, for each recipe.
fn winners(records: &[Record]) -> Vec<String> {
    let mut wins: Vec<(String, Vec<(&str, usize)>)> = Vec::new();
    // What is compared stands side by side.
    for group in records.chunk_by(|a, b| group(&a.case) == group(&b.case)) {
        for contest in contests(group).into_iter().filter(|contest| contest.rivals > 1) {
            let row = position_or_push(&mut wins, contest.best.case.variant());
            let row = &mut wins[row].1;
            let cell = position_or_push(row, contest.best.case.implementation.name().as_str());
            row[cell].1 += 1;
        }
    }
    let line = |(recipe, mut wins): (String, Vec<(&str, usize)>)| {
        wins.sort_by_key(|(_, count)| Reverse(*count));
        let wins: Vec<String> = wins.iter().map(|(name, count)| format!("{name} {count}")).collect();
        format!("  {recipe:RECIPE_WIDTH$} {}", wins.join(", "))
    };
    wins.into_iter().map(line).collect()
}

/// The implementations of one recipe at one shape, and the fastest of them.
struct Contest<'a> {
    rivals: usize,
    best: &'a Record,
    nanos: f64,
}

fn contests(group: &[Record]) -> Vec<Contest<'_>> {
    let mut contests: Vec<Contest> = Vec::new();
    for record in group.iter().filter(|record| record.outcome.status == Status::Ok) {
        let Some(nanos) = record.time.time_ns.map(|time| time.median) else { continue };
        let recipe = |record: &Record| (record.case.recipe, record.case.sparsity);
        match contests.iter_mut().find(|contest| recipe(contest.best) == recipe(record)) {
            None => contests.push(Contest { rivals: 1, best: record, nanos }),
            Some(contest) => {
                contest.rivals += 1;
                if nanos < contest.nanos {
                    (contest.best, contest.nanos) = (record, nanos);
                }
            }
        }
    }
    contests
}

/// A map that keeps the order in which its keys came.
fn position_or_push<K: PartialEq, V: Default>(list: &mut Vec<(K, V)>, key: K) -> usize {
    list.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
        list.push((key, V::default()));
        list.len() - 1
    })
}

fn told(cause: &Cause, colour: Colour, width: usize) -> Vec<String> {
    let mut lines = vec![format!("  {}, {}", paint(cause.status.as_str(), "33", colour), cases(cause.ids.len()))];
    if !cause.reason.is_empty() {
        lines.push(indented(cause.reason, 4, width));
    }
    // Nobody waited for what does not exist here: a few show which are meant.
    let listed = if cause.status == Status::Unsupported { 3 } else { MOST_LISTED };
    lines.extend(cause.ids.iter().take(listed).map(|id| format!("      {id}")));
    if cause.ids.len() > listed {
        lines.push(format!("      and {} more", cause.ids.len() - listed));
    }
    lines
}

fn cases(count: usize) -> String {
    if count == 1 { "1 case".into() } else { format!("{count} cases") }
}
