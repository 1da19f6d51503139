//! What every column means, for readers.

use super::{COLUMNS, Field, JOURNAL_ONLY};

/// The reference of all columns and fields as two tables in Markdown.
pub fn markdown() -> String {
    let row = |cells: [&str; 4]| format!("| `{}` | {} | {} | {} |\n", cells[0], cells[1], cells[2], cells[3]);
    let columns = COLUMNS.iter().map(|column| {
        let field = if column.field == column.name { "the same".to_owned() } else { format!("`{}`", column.field) };
        row([column.name, &field, &column.in_words(), column.doc])
    });
    let fields = JOURNAL_ONLY.iter().map(|Field { name, kind, doc }| format!("| `{name}` | {kind} | {doc} |\n"));
    let mut text = "| column | field of the record | type, unit | meaning |\n|---|---|---|---|\n".to_owned();
    text.extend(columns);
    text.push_str(
        "\nThese are in the journal alone:\n\n| field of the record | type, unit | meaning |\n|---|---|---|\n",
    );
    text.extend(fields);
    text
}
