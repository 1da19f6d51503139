//! Comparison as Markdown, for a pull request.

use super::case::CaseChange;
use super::comparison::Comparison;
use super::words;
use calorimeter_sinks::markdown::in_a_cell;

/// Formats a summary, a table of changes, and notes.
pub fn markdown(comparison: &Comparison, all: bool) -> String {
    let Comparison { before, after, unlike, differences, notes, .. } = comparison;
    let code = |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let mut text = format!("### Speed of B = {} relative to A = {}\n\n", code(after), code(before));
    text += &format!("{} cases: **{}**\n", comparison.cases.len(), comparison.tally());
    let rows: Vec<String> = comparison.shown(all).map(row).collect();
    if !rows.is_empty() {
        text += "\n| verdict | case | speed of B | time in A | time in B | remarks |\n|---|---|---|---|---|---|\n";
        text += &rows.concat();
    }
    let remarks = unlike.iter().map(|line| format!("**not comparable, forced:** {line}"));
    let remarks: Vec<String> = remarks.chain(differences.iter().cloned()).chain(notes.iter().cloned()).collect();
    if !remarks.is_empty() {
        text += "\n";
    }
    for line in remarks {
        text += &format!("- {}\n", in_a_cell(&line));
    }
    text
}

fn row(case: &CaseChange) -> String {
    let [was, is] = [&case.before, &case.after].map(|seen| words::time(seen.as_ref()));
    let ratio = case.ratio.as_ref().map_or_else(String::new, words::ratio);
    let remarks = in_a_cell(&words::remarks(case).join("; "));
    format!("| {} | `{}` | {ratio} | {was} | {is} | {remarks} |\n", case.finding.as_str(), in_a_cell(&case.id))
}
