//! Comparison as JUnit XML: one test per case, failing if the case became slower or broke.

use super::case::{CaseChange, Finding};
use super::comparison::Comparison;
use super::words;

/// Formats the whole document.
pub fn junit(comparison: &Comparison) -> String {
    let cases = &comparison.cases;
    let count = |of: fn(&CaseChange) -> bool| cases.iter().filter(|case| of(case)).count();
    let failures = count(|case| case.finding.is_regression());
    let skipped = count(is_skipped);
    let tests: String = cases.iter().map(test).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites>\n<testsuite name=\"calorimeter compare\" tests=\"{}\" failures=\"{failures}\" errors=\"0\" \
         skipped=\"{skipped}\">\n{tests}</testsuite>\n</testsuites>\n",
        cases.len()
    )
}

fn test(case: &CaseChange) -> String {
    let head = format!("<testcase classname=\"{}\" name=\"{}\"", case.device, escaped(&case.id));
    let sentence = escaped(&words::sentence(case));
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
    matches!(case.finding, Finding::Unlike | Finding::NotTimed | Finding::OnlyBefore | Finding::OnlyAfter)
}

/// Escapes text for XML, which forbids most control characters.
fn escaped(text: &str) -> String {
    let allowed = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(allowed).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_has_no_place_for_is_escaped_or_left_out() {
        assert_eq!(escaped("a<b> & \"c\"\u{1b}[31m\n"), "a&lt;b&gt; &amp; &quot;c&quot; [31m ");
    }
}
