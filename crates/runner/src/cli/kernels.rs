//! Table of layer kernels, for `calorimeter list kernels` and the book.

use super::layout::{hanging, paragraph};
use calorimeter_recipes::Dtype;
use calorimeter_zoo::{Device, Implementation, LayerChoice, LayerTableRow, TABLE_ROWS, TABLE_SIDE, layer_table};
use std::fmt::Write;

/// Dtype of the layers in the table.
const DTYPE: Dtype = Dtype::Bf16;

/// Text table: for each recipe, the computation by each implementation and device, with reasons.
pub(super) fn text(width: usize) -> String {
    let about = format!(
        "Layers in {DTYPE} with k = n = {TABLE_SIDE}, by number of input rows; `native` on cuda stands for an H100 or \
         H200, and `cube` for a GPU with matrix instructions."
    );
    let mut text = paragraph(&about, width);
    let table = layer_table(DTYPE);
    for rows in table.chunk_by(|a, b| a.variant == b.variant) {
        let _ = writeln!(text, "\n{}", rows[0].variant);
        for implementation in Implementation::ALL {
            let places = rows.iter().filter(|row| row.implementation == implementation);
            let places: Vec<_> =
                places.map(|row| (row.device.kind(), describe(&row.choices, Reasons::Shown))).collect();
            for same in places.chunk_by(|a, b| a.1 == b.1) {
                let devices: Vec<String> = same.iter().map(|(device, _)| device.to_string()).collect();
                text += &hanging(&format!("{implementation} on {}: {}", devices.join(", "), same[0].1), width);
            }
        }
    }
    text
}

/// Columns of the Markdown table: heading, implementation, and device that stands for all devices of the column.
const COLUMNS: [(&str, Implementation, Device); 4] = [
    ("`native` on CUDA", Implementation::Native, Device::Cuda(0)),
    ("`native` on the CPU", Implementation::Native, Device::Cpu),
    ("`cube`", Implementation::Cube, Device::Vulkan(0)),
    ("`eager`", Implementation::Eager, Device::Cpu),
];

/// Markdown table of the book: one row per recipe.
pub(super) fn markdown() -> String {
    let table = layer_table(DTYPE);
    let headings = COLUMNS.map(|(heading, ..)| heading).join(" | ");
    let mut text = format!("| recipe | {headings} |\n|---|---|---|---|---|\n");
    for rows in table.chunk_by(|a, b| a.variant == b.variant) {
        let cells = COLUMNS.map(|(_, implementation, device)| {
            let found = rows.iter().find(|row| (row.implementation, row.device) == (implementation, device));
            found.map_or_else(String::new, |row: &LayerTableRow| describe(&row.choices, Reasons::Hidden))
        });
        let _ = writeln!(text, "| `{}` | {} |", rows[0].variant, cells.join(" | "));
    }
    text
}

/// Treatment of the reasons for unsupported layers in a description.
#[derive(Clone, Copy, PartialEq)]
enum Reasons {
    Shown,
    Hidden,
}

/// Describes the computation for each number of rows; equal neighbors are joined.
fn describe(choices: &[LayerChoice], reasons: Reasons) -> String {
    let one = |choice: &LayerChoice| match choice {
        LayerChoice::Kernel(name) => (*name).to_owned(),
        LayerChoice::Burn => "burn".to_owned(),
        LayerChoice::Dequantized => "dequantized".to_owned(),
        LayerChoice::Unsupported(reason) if reasons == Reasons::Shown => format!("unsupported: {reason}"),
        _ => "unsupported".to_owned(),
    };
    let pairs: Vec<(usize, String)> = TABLE_ROWS.into_iter().zip(choices.iter().map(one)).collect();
    let groups: Vec<&[(usize, String)]> = pairs.chunk_by(|a, b| a.1 == b.1).collect();
    if let [(_, name), ..] = pairs.as_slice()
        && groups.len() == 1
    {
        return name.clone();
    }
    let group = |group: &&[(usize, String)]| {
        let rows: Vec<String> = group.iter().map(|(rows, _)| rows.to_string()).collect();
        format!("{}: {}", rows.join(", "), group[0].1)
    };
    groups.iter().map(group).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_neighbors_are_joined() {
        let [a, b] = ["a", "b"].map(LayerChoice::Kernel);
        let text = |choices: [&LayerChoice; 4]| describe(&choices.map(Clone::clone), Reasons::Shown);
        assert_eq!(text([&a; 4]), "a");
        assert_eq!(text([&a, &b, &b, &a]), "1: a; 16, 256: b; 4096: a");
        let no = LayerChoice::Unsupported("too long".into());
        assert_eq!(text([&a, &a, &a, &no]), "1, 16, 256: a; 4096: unsupported: too long");
    }
}
