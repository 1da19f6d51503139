//! Text in Markdown.

/// Escapes text for a table cell: no cell separator, line feed or HTML tag.
pub fn in_a_cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ").replace('<', "&lt;")
}

/// Formats text as code in a table cell; backticks are replaced.
pub fn code(text: &str) -> String {
    format!("`{}`", in_a_cell(text).replace('`', "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_stays_in_its_cell() {
        assert_eq!(in_a_cell("a | b\r\n<img src=x>"), "a \\| b  &lt;img src=x>");
        assert_eq!(code("a`|`b"), "`a'\\|'b`");
    }
}
