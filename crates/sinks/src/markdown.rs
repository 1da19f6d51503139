//! Text in Markdown.

/// Escapes text for a table cell: no cell separator, line feed or HTML tag.
pub fn escape_cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ").replace('<', "&lt;")
}

/// Formats text as code in a table cell; backticks are replaced.
pub fn code(text: &str) -> String {
    format!("`{}`", escape_cell(text).replace('`', "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_text_is_escaped() {
        assert_eq!(escape_cell("a | b\r\n<img src=x>"), "a \\| b  &lt;img src=x>");
        assert_eq!(code("a`|`b"), "`a'\\|'b`");
    }
}
