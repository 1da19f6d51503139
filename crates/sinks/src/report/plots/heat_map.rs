//! Geometric means of speed-ups over two axes, chosen as on the page.

use std::cmp::Ordering;

use super::grid::HeatMapGrid;
use super::picture::Picture;
use super::report_rows::{ReportRow, ReportRows, distinct, geometric_mean, group_by, speedup};

/// Property by which cases are arranged in rows or columns.
#[derive(Clone, Copy, PartialEq)]
enum CaseProperty<'a> {
    Item,
    ItemAndImplementation,
    Workload,
    Implementation,
    Shape,
    Device,
    Element,
    /// Axis of the shape.
    Size(&'a str),
}

impl<'a> CaseProperty<'a> {
    fn label(self) -> &'a str {
        match self {
            Self::Item => "recipe or operator",
            Self::ItemAndImplementation => "recipe and implementation",
            Self::Workload => "workload",
            Self::Implementation => "implementation",
            Self::Shape => "shape",
            Self::Device => "device",
            Self::Element => "dtype",
            Self::Size(axis) => axis,
        }
    }

    fn value(self, row: &ReportRow<'_>) -> Option<String> {
        let case = &row.record.case;
        Some(match self {
            Self::Item => row.item(),
            Self::ItemAndImplementation => row.item_and_implementation(),
            Self::Workload => case.workload.to_string(),
            Self::Implementation => case.implementation.to_string(),
            Self::Shape => case.shape.to_string(),
            Self::Device => case.device.to_string(),
            Self::Element => case.element.to_string(),
            Self::Size(axis) => case.shape.get(axis)?.to_string(),
        })
    }

    /// Sorts sizes numerically; other labels stay in order of first occurrence, with the baseline first.
    fn sort_labels(self, mut names: Vec<String>) -> Vec<String> {
        match self {
            Self::Size(_) | Self::Shape => names.sort_by(|one, other| compare_numerically(one, other)),
            _ => names.sort_by_key(|name| name != "baseline"),
        }
        names
    }
}

/// Compares texts by the numbers in them.
fn compare_numerically(one: &str, other: &str) -> Ordering {
    let numbers = |text: &str| -> Vec<u64> {
        text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
    };
    numbers(one).cmp(&numbers(other)).then_with(|| one.cmp(other))
}

pub(super) fn picture(rows: &ReportRows<'_>) -> Option<Picture> {
    let compared = rows.filtered(|record| speedup(record).is_some());
    if compared.is_empty() {
        return None;
    }
    let axes = rows.axes().into_iter().map(CaseProperty::Size);
    let tells = |along: &CaseProperty<'_>| distinct(compared.iter().filter_map(|row| along.value(row))).len() > 1;
    let down = [CaseProperty::Item, CaseProperty::Workload, CaseProperty::Implementation, CaseProperty::Shape]
        .into_iter()
        .find(tells);
    let down = down.unwrap_or(CaseProperty::Item);
    let across = if down == CaseProperty::Shape {
        // For a single recipe the shapes form one column; over one of their axes only a diagonal would be filled.
        CaseProperty::ItemAndImplementation
    } else {
        let others = [CaseProperty::Shape, CaseProperty::Workload, CaseProperty::Device, CaseProperty::Element];
        let all = [CaseProperty::Implementation].into_iter().chain(axes).chain(others);
        all.filter(|along| *along != down).find(tells).unwrap_or(CaseProperty::Implementation)
    };
    let names = |along: CaseProperty| along.sort_labels(distinct(compared.iter().filter_map(|row| along.value(row))));
    let (rows, columns) = (names(down), names(across));
    let inside = group_by(compared.iter(), |row| (down.value(row), across.value(row)));
    let cell = |row: &String, column: &String| {
        let key = (Some(row.clone()), Some(column.clone()));
        let (_, cases) = inside.iter().find(|(known, _)| *known == key)?;
        Some((geometric_mean(cases.iter().filter_map(|row| speedup(row.record)))?, cases.len()))
    };
    let cells = rows.iter().map(|row| columns.iter().map(|column| cell(row, column)).collect()).collect();
    let axes = [down.label().to_owned(), across.label().to_owned()];
    Some(Picture::Grid(HeatMapGrid { title: "Speed-up over the baseline".into(), axes, rows, columns, cells }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_numerically_after_the_baseline() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(CaseProperty::Size("m").sort_labels(names(&["16", "8", "128"])), ["8", "16", "128"]);
        assert_eq!(
            CaseProperty::Shape.sort_labels(names(&["m16-k8", "m8-k16", "m8-k8"])),
            ["m8-k8", "m8-k16", "m16-k8"]
        );
        assert_eq!(
            CaseProperty::Item.sort_labels(names(&["mxfp8", "baseline", "int8wo"])),
            ["baseline", "mxfp8", "int8wo"]
        );
    }
}
