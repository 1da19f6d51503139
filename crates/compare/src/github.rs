//! Comparison as annotations for GitHub Actions.

use super::case::CaseChange;
use super::case_text;
use super::comparison::RunComparison;

/// An error for each regression, a notice for each other change, and a notice with the counts.
pub fn github(comparison: &RunComparison) -> String {
    let mut lines: Vec<String> = comparison.listed_cases(false).map(annotation).collect();
    lines.extend(comparison.unlike.iter().map(|line| workflow_command("warning", "forced comparison", line)));
    lines.push(workflow_command(
        "notice",
        "calorimeter compare",
        &format!("{} cases: {}", comparison.cases.len(), comparison.tally()),
    ));
    lines.concat()
}

fn annotation(case: &CaseChange) -> String {
    let kind = if case.finding.is_regression() { "error" } else { "notice" };
    workflow_command(kind, case.finding.as_str(), &format!("{}: {}", case.id, case_text::sentence(case)))
}

/// Formats a workflow command. The text is escaped, so it cannot contain another command.
fn workflow_command(kind: &str, title: &str, text: &str) -> String {
    let escaped = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let title = escaped(title).replace(':', "%3A").replace(',', "%2C");
    format!("::{kind} title={title}::{}\n", escaped(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_cannot_inject_workflow_commands() {
        let line = workflow_command("error", "a: b, c", "100 % gone\n::stop-commands::x");
        assert_eq!(line, "::error title=a%3A b%2C c::100 %25 gone%0A::stop-commands::x\n");
    }
}
