//! Text layout: paragraphs, and rows of a name and a text, wrapped at word boundaries.

use calorimeter_sinks::terminal::wrap;

/// Maximum width of the column of names. A longer name has lines of its own.
const MAX_NAME_WIDTH: usize = 28;
/// Minimum width of the texts, on narrow terminals.
const MIN_TEXT_WIDTH: usize = 20;

/// Wraps a paragraph to lines of `width` characters.
pub(super) fn paragraph(text: &str, width: usize) -> String {
    wrap(text, width.max(MIN_TEXT_WIDTH)).join("\n") + "\n"
}

/// Wraps an item of a list, indented by two blanks, with a hanging indent.
pub(super) fn hanging(text: &str, width: usize) -> String {
    let lines = wrap(text, width.saturating_sub(4).max(MIN_TEXT_WIDTH));
    lines.iter().enumerate().map(|(at, line)| format!("{}{line}\n", if at == 0 { "  " } else { "    " })).collect()
}

/// Formats rows of a name and a text, indented by two blanks. The texts are aligned and have a hanging indent.
pub(super) fn rows<N: AsRef<str>, T: AsRef<str>>(rows: &[(N, T)], width: usize) -> String {
    rows_with_column(rows, column_width(rows.iter().map(|(name, _)| name)), width)
}

/// Width of the column for these names.
pub(super) fn column_width(names: impl IntoIterator<Item = impl AsRef<str>>) -> usize {
    let lengths = names.into_iter().map(|name| name.as_ref().chars().count());
    lengths.filter(|length| *length <= MAX_NAME_WIDTH).max().unwrap_or(0)
}

/// Formats rows like [`rows`], with a given width of the column of names.
pub(super) fn rows_with_column<N: AsRef<str>, T: AsRef<str>>(rows: &[(N, T)], column: usize, width: usize) -> String {
    let margin = " ".repeat(column + 4);
    let text_width = width.saturating_sub(margin.len()).max(MIN_TEXT_WIDTH);
    let mut lines = Vec::new();
    for (name, text) in rows {
        let (name, mut text) = (name.as_ref(), wrap(text.as_ref(), text_width).into_iter());
        if name.chars().count() <= column {
            let line = format!("  {name:<column$}  {}", text.next().unwrap_or_default());
            lines.push(line.trim_end().to_owned());
        } else {
            let names = wrap(name, width.saturating_sub(2).max(MIN_TEXT_WIDTH));
            lines.extend(names.into_iter().map(|line| format!("  {line}")));
        }
        lines.extend(text.map(|line| format!("{margin}{line}")));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_a_hanging_indent() {
        let table = [("cpu", "one two three four five six"), ("libcublasLt.so", "matmul"), ("", "seven")];
        let expected = "  cpu             one two three four
                  five six
  libcublasLt.so  matmul
                  seven
";
        assert_eq!(rows(&table, 38), expected);
    }

    #[test]
    fn long_names_have_own_lines() {
        let names = "first_operator, second_operator, third_operator";
        let expected = "  add  sum
  first_operator, second_operator,
  third_operator
       matmul
";
        assert_eq!(rows(&[("add", "sum"), (names, "matmul")], 36), expected);
    }

    #[test]
    fn words_are_never_split_at_usual_widths() {
        let text = "the quantized matmul of two matrices";
        for width in 30..120 {
            let words: Vec<String> =
                rows(&[("name", text)], width).split_whitespace().skip(1).map(str::to_owned).collect();
            assert_eq!(words.join(" "), text);
        }
    }
}
