//! Comparison as annotations for GitHub Actions.

use super::case::CaseChange;
use super::comparison::Comparison;
use super::words;

/// An error for each regression, a notice for each other change, and a notice with the counts.
pub fn github(comparison: &Comparison) -> String {
    let mut lines: Vec<String> = comparison.shown(false).map(annotation).collect();
    lines.extend(comparison.unlike.iter().map(|line| command("warning", "forced comparison", line)));
    lines.push(command(
        "notice",
        "calorimeter compare",
        &format!("{} cases: {}", comparison.cases.len(), comparison.tally()),
    ));
    lines.concat()
}

fn annotation(case: &CaseChange) -> String {
    let kind = if case.finding.is_regression() { "error" } else { "notice" };
    command(kind, case.finding.as_str(), &format!("{}: {}", case.id, words::sentence(case)))
}

/// Formats a workflow command. The text is escaped, so it cannot contain another command.
fn command(kind: &str, title: &str, text: &str) -> String {
    let escaped = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let title = escaped(title).replace(':', "%3A").replace(',', "%2C");
    format!("::{kind} title={title}::{}\n", escaped(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_driver_said_begins_no_command_of_its_own() {
        let line = command("error", "a: b, c", "100 % gone\n::stop-commands::x");
        assert_eq!(line, "::error title=a%3A b%2C c::100 %25 gone%0A::stop-commands::x\n");
    }
}
