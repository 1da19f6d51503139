//! Geometric means of speed-ups over two axes, chosen as on the page.

use std::cmp::Ordering;

use super::grid::Grid;
use super::picture::Picture;
use super::rows::{Row, Rows, distinct, grouped, mean, speedup};

/// Property by which cases are arranged in rows or columns.
#[derive(Clone, Copy, PartialEq)]
enum Along<'a> {
    What,
    Who,
    Workload,
    Implementation,
    Shape,
    Device,
    Element,
    /// Axis of the shape.
    Size(&'a str),
}

impl<'a> Along<'a> {
    fn label(self) -> &'a str {
        match self {
            Self::What => "recipe or operator",
            Self::Who => "recipe and implementation",
            Self::Workload => "workload",
            Self::Implementation => "implementation",
            Self::Shape => "shape",
            Self::Device => "device",
            Self::Element => "dtype",
            Self::Size(axis) => axis,
        }
    }

    fn of(self, row: &Row<'_>) -> Option<String> {
        let case = &row.record.case;
        Some(match self {
            Self::What => row.what(),
            Self::Who => row.who(),
            Self::Workload => case.workload.to_string(),
            Self::Implementation => case.implementation.to_string(),
            Self::Shape => case.shape.to_string(),
            Self::Device => case.device.to_string(),
            Self::Element => case.element.to_string(),
            Self::Size(axis) => case.shape.get(axis)?.to_string(),
        })
    }

    /// Sorts sizes numerically; other labels stay in order of first occurrence, with the baseline first.
    fn ordered(self, mut names: Vec<String>) -> Vec<String> {
        match self {
            Self::Size(_) | Self::Shape => names.sort_by(|one, other| by_numbers(one, other)),
            _ => names.sort_by_key(|name| name != "baseline"),
        }
        names
    }
}

/// Compares texts by the numbers in them.
fn by_numbers(one: &str, other: &str) -> Ordering {
    let numbers = |text: &str| -> Vec<u64> {
        text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
    };
    numbers(one).cmp(&numbers(other)).then_with(|| one.cmp(other))
}

pub(super) fn picture(rows: &Rows<'_>) -> Option<Picture> {
    let compared = rows.with(|record| speedup(record).is_some());
    if compared.is_empty() {
        return None;
    }
    let axes = rows.axes().into_iter().map(Along::Size);
    let tells = |along: &Along<'_>| distinct(compared.iter().filter_map(|row| along.of(row))).len() > 1;
    let down = [Along::What, Along::Workload, Along::Implementation, Along::Shape].into_iter().find(tells);
    let down = down.unwrap_or(Along::What);
    let across = if down == Along::Shape {
        // For a single recipe the shapes form one column; over one of their axes only a diagonal would be filled.
        Along::Who
    } else {
        let others = [Along::Shape, Along::Workload, Along::Device, Along::Element];
        let all = [Along::Implementation].into_iter().chain(axes).chain(others);
        all.filter(|along| *along != down).find(tells).unwrap_or(Along::Implementation)
    };
    let names = |along: Along| along.ordered(distinct(compared.iter().filter_map(|row| along.of(row))));
    let (rows, columns) = (names(down), names(across));
    let inside = grouped(compared.iter(), |row| (down.of(row), across.of(row)));
    let cell = |row: &String, column: &String| {
        let key = (Some(row.clone()), Some(column.clone()));
        let (_, cases) = inside.iter().find(|(known, _)| *known == key)?;
        Some((mean(cases.iter().filter_map(|row| speedup(row.record)))?, cases.len()))
    };
    let cells = rows.iter().map(|row| columns.iter().map(|column| cell(row, column)).collect()).collect();
    let axes = [down.label().to_owned(), across.label().to_owned()];
    Some(Picture::Grid(Grid { title: "Speed-up over the baseline".into(), axes, rows, columns, cells }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stand_by_their_numbers_and_the_baseline_first() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(Along::Size("m").ordered(names(&["16", "8", "128"])), ["8", "16", "128"]);
        assert_eq!(Along::Shape.ordered(names(&["m16-k8", "m8-k16", "m8-k8"])), ["m8-k8", "m8-k16", "m16-k8"]);
        assert_eq!(Along::What.ordered(names(&["mxfp8", "baseline", "int8wo"])), ["baseline", "mxfp8", "int8wo"]);
    }
}
