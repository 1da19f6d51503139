//! Column reference of the documentation.

use super::{COLUMNS, Field, JOURNAL_ONLY};

/// Reference of all columns and journal fields, as two Markdown tables.
pub fn markdown() -> String {
    let row = |cells: [&str; 4]| format!("| `{}` | {} | {} | {} |\n", cells[0], cells[1], cells[2], cells[3]);
    let columns = COLUMNS.iter().map(|column| {
        let field =
            if column.field == column.name { "same as column".to_owned() } else { format!("`{}`", column.field) };
        row([column.name, &field, &column.type_description(), column.doc])
    });
    let fields = JOURNAL_ONLY.iter().map(|Field { name, kind, doc }| format!("| `{name}` | {kind} | {doc} |\n"));
    let mut text = "| column | field of the record | type, unit | meaning |\n|---|---|---|---|\n".to_owned();
    text.extend(columns);
    text.push_str("\nFields of the journal only:\n\n| field of the record | type, unit | meaning |\n|---|---|---|\n");
    text.extend(fields);
    text
}
