//! Comparison as JUnit XML: one test per case, failing if the case became slower or broke.

use super::case::{CaseChange, CaseFinding};
use super::case_text;
use super::comparison::RunComparison;

/// Formats the whole document.
pub fn junit(comparison: &RunComparison) -> String {
    let cases = &comparison.cases;
    let count = |of: fn(&CaseChange) -> bool| cases.iter().filter(|case| of(case)).count();
    let failures = count(|case| case.finding.is_regression());
    let skipped = count(is_skipped);
    let tests: String = cases.iter().map(test_case).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites>\n<testsuite name=\"calorimeter compare\" tests=\"{}\" failures=\"{failures}\" errors=\"0\" \
         skipped=\"{skipped}\">\n{tests}</testsuite>\n</testsuites>\n",
        cases.len()
    )
}

fn test_case(case: &CaseChange) -> String {
    let head = format!("<testcase classname=\"{}\" name=\"{}\"", case.device, xml_escaped(&case.id));
    let sentence = xml_escaped(&case_text::sentence(case));
    let word = case.finding.as_str();
    if case.finding.is_regression() {
        return format!("{head}><failure type=\"{word}\" message=\"{sentence}\"/></testcase>\n");
    }
    if is_skipped(case) {
        return format!("{head}><skipped message=\"{word}: {sentence}\"/></testcase>\n");
    }
    format!("{head}><system-out>{word}: {sentence}</system-out></testcase>\n")
}

/// True for cases that were not compared, and so neither pass nor fail.
fn is_skipped(case: &CaseChange) -> bool {
    matches!(
        case.finding,
        CaseFinding::Unlike | CaseFinding::NotTimed | CaseFinding::OnlyBefore | CaseFinding::OnlyAfter
    )
}

/// Escapes text for XML, which forbids most control characters and two noncharacters.
fn xml_escaped(text: &str) -> String {
    let allowed = |c: char| if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') { ' ' } else { c };
    let text: String = text.chars().map(allowed).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_special_and_control_characters_are_escaped() {
        assert_eq!(xml_escaped("a<b> & \"c\"\u{1b}[31m\n\u{ffff}"), "a&lt;b&gt; &amp; &quot;c&quot; [31m  ");
    }
}
