//! Comparison as Markdown, for a pull request.

use super::case::CaseChange;
use super::case_text;
use super::comparison::RunComparison;
use calorimeter_sinks::markdown::{code, escape_cell};

/// Formats a summary, a table of changes, and notes.
pub fn markdown(comparison: &RunComparison, all: bool) -> String {
    let RunComparison { before, after, unlike, differences, notes, .. } = comparison;
    let codes = |names: &[String]| names.iter().map(|name| code(name)).collect::<Vec<_>>().join(", ");
    let mut text = format!("### Speed of B = {} relative to A = {}\n\n", codes(after), codes(before));
    text += &format!("{} cases: **{}**\n", comparison.cases.len(), comparison.tally());
    let rows: Vec<String> = comparison.listed_cases(all).map(row).collect();
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
        text += &format!("- {}\n", escape_cell(&line));
    }
    text
}

fn row(case: &CaseChange) -> String {
    let [was, is] = [&case.before, &case.after].map(|seen| case_text::time(seen.as_ref()));
    let ratio = case.ratio.as_ref().map_or_else(String::new, case_text::ratio);
    let remarks = escape_cell(&case_text::remarks(case).join("; "));
    format!("| {} | {} | {ratio} | {was} | {is} | {remarks} |\n", case.finding.as_str(), code(&case.id))
}
