//! Text in Markdown.

/// Escapes text for a table cell: no cell separator, line feed, HTML tag, link or image.
pub fn escape_cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ").replace('<', "&lt;").replace("](", "]\\(")
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
        assert_eq!(escape_cell("![](https://example.com/x.png)"), "![]\\(https://example.com/x.png)");
        assert_eq!(code("a`|`b"), "`a'\\|'b`");
    }
}
