//! Text for a page in Markdown.

/// Text that ends no cell and no line, and begins no element of HTML.
pub fn in_a_cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ").replace('<', "&lt;")
}

/// The same as code: a backtick in it does not end it.
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
