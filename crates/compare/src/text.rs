//! Comparison for a terminal of 80 columns.

use super::case::{CaseChange, CaseFinding};
use super::case_text;
use super::comparison::RunComparison;
use calorimeter_sinks::terminal::{Color, escape, wrap};

const WIDTH: usize = 80;

/// Formats the table of changes, or with `all` of every case, and the number of cases per finding.
pub fn text(comparison: &RunComparison, all: bool, color: Color) -> String {
    let RunComparison { before, after, unlike, differences, notes, .. } = comparison;
    let mut text = format!("A  {}\nB  {}\n", escape(&before.join(", ")), escape(&after.join(", ")));
    let remarks = [("not comparable, forced: ", unlike), ("differs: ", differences), ("note: ", notes)];
    for (head, lines) in remarks {
        for line in lines {
            text += &paragraph(&format!("{head}{line}"), 0);
        }
    }
    let mut cases = comparison.listed_cases(all).peekable();
    if cases.peek().is_some() {
        text += &format!("\n{:<14} {:<26} {:>12} {:>12}\n", "verdict", "speed of B (A = 1)", "time in A", "time in B");
    }
    for case in cases {
        text += &row(case, color);
    }
    text + &format!("\n{} cases: {}\n", comparison.cases.len(), comparison.tally())
}

fn row(case: &CaseChange, color: Color) -> String {
    let [was, is] = [&case.before, &case.after].map(|seen| case_text::time(seen.as_ref()));
    let ratio = case.ratio.as_ref().map_or_else(String::new, case_text::ratio);
    let finding = colored_word(case.finding, color);
    let mut row = format!("{finding} {ratio:<26} {was:>12} {is:>12}");
    row.truncate(row.trim_end().len());
    row += &format!("\n  {}\n", escape(&case.id));
    for remark in case_text::remarks(case) {
        row += &paragraph(&remark, 4);
    }
    row
}

/// Pads the finding to its column, and colors regressions red.
fn colored_word(finding: CaseFinding, color: Color) -> String {
    let word = format!("{:<14}", finding.as_str());
    let code = match finding {
        CaseFinding::Broken | CaseFinding::Slower => "31",
        CaseFinding::Faster | CaseFinding::Mended => "32",
        CaseFinding::EndsOtherwise | CaseFinding::Unlike => "33",
        _ => return word,
    };
    if color == Color::Always { format!("\x1b[{code}m{word}\x1b[0m") } else { word }
}

fn paragraph(text: &str, indent: usize) -> String {
    wrap(text, WIDTH - indent).iter().map(|line| format!("{:indent$}{line}\n", "")).collect()
}
