//! Every combination of named axes, or their values side by side.

use crate::{Axes, MAX_SHAPES, ShapeError};
use std::borrow::Cow;

/// A name and its values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Axis {
    name: Cow<'static, str>,
    values: Vec<u64>,
}

impl Axis {
    /// The values of one axis, in order; a [`Grid`] checks them.
    pub fn new(name: impl Into<Cow<'static, str>>, values: impl Into<Vec<u64>>) -> Self {
        Self { name: name.into(), values: values.into() }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The values.
    pub fn values(&self) -> &[u64] {
        &self.values
    }
}

/// How the axes of a grid are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Pairing {
    /// Each value with each, the last axis fastest.
    Product,
    /// The first values, then the second ones.
    Zipped,
}

/// Points made from named axes.
///
/// ```
/// use calorimeter_shapes::{Axis, Grid, Range, Step};
///
/// let rows = Range::new(1, 4, Step::Multiply(2))?;
/// let grid = Grid::product([Axis::new("rows", rows), Axis::new("width", [512, 1024])])?;
/// let points: Vec<String> = grid.iter().take(3).map(|point| point.to_string()).collect();
/// assert_eq!(points, ["rows1-width512", "rows1-width1024", "rows2-width512"]);
/// # Ok::<(), calorimeter_shapes::ShapeError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grid {
    axes: Vec<Axis>,
    pairing: Pairing,
    count: u64,
}

impl Grid {
    /// Each value of each axis with each of the others, the last axis fastest.
    pub fn product(axes: impl IntoIterator<Item = Axis>) -> Result<Self, ShapeError> {
        let axes = checked(axes)?;
        // Saturating: a list of axes that long is refused all the same.
        let count = axes.iter().fold(1u128, |count, axis| count.saturating_mul(axis.values.len() as u128));
        Self::bounded(axes, Pairing::Product, count)
    }

    /// The first values of all axes, then the second ones; the axes have equal lengths.
    pub fn zipped(axes: impl IntoIterator<Item = Axis>) -> Result<Self, ShapeError> {
        let axes = checked(axes)?;
        let count = axes[0].values.len();
        if let Some(other) = axes.iter().find(|axis| axis.values.len() != count) {
            return Err(ShapeError::Ragged {
                first: axes[0].name.to_string(),
                first_len: count,
                other: other.name.to_string(),
                other_len: other.values.len(),
            });
        }
        Self::bounded(axes, Pairing::Zipped, count as u128)
    }

    fn bounded(axes: Vec<Axis>, pairing: Pairing, count: u128) -> Result<Self, ShapeError> {
        match u64::try_from(count) {
            Ok(count) if count <= MAX_SHAPES => Ok(Self { axes, pairing, count }),
            _ => {
                let sizes: Vec<String> =
                    axes.iter().map(|axis| format!("{} has {} values", axis.name, axis.values.len())).collect();
                Err(ShapeError::TooMany {
                    what: "the grid".to_owned(),
                    count,
                    narrow: format!("narrow an axis ({})", sizes.join(", ")),
                })
            }
        }
    }

    /// The axes.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// How many points there are, without making them.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The points, in order.
    pub fn iter(&self) -> impl Iterator<Item = Axes> {
        (0..self.count).map(|index| self.point(index))
    }

    fn point(&self, index: u64) -> Axes {
        // The last axis changes fastest, so the index is read from its end.
        let mut rest = index;
        let mut pairs: Vec<(Cow<'static, str>, u64)> = Vec::with_capacity(self.axes.len());
        for Axis { name, values } in self.axes.iter().rev() {
            let place = match self.pairing {
                Pairing::Zipped => index,
                Pairing::Product => {
                    let place = rest % values.len() as u64;
                    rest /= values.len() as u64;
                    place
                }
            };
            pairs.push((name.clone(), values[place as usize]));
        }
        pairs.reverse();
        Axes::new(pairs).expect("the names of a grid's axes differ: `checked` has seen to it")
    }
}

/// More than any operator has.
const MOST_AXES: usize = 16;

/// At least one axis, none of them empty, no name twice.
fn checked(axes: impl IntoIterator<Item = Axis>) -> Result<Vec<Axis>, ShapeError> {
    let axes: Vec<Axis> = axes.into_iter().collect();
    if axes.len() > MOST_AXES {
        let says = format!("a grid has {} axes, more than {MOST_AXES}: leave some out", axes.len());
        return Err(ShapeError::Fields(says));
    }
    if axes.is_empty() {
        return Err(ShapeError::NoAxes);
    }
    for (index, axis) in axes.iter().enumerate() {
        if axis.values.is_empty() {
            return Err(ShapeError::EmptyList { name: axis.name.to_string() });
        }
        if axes[..index].iter().any(|earlier| earlier.name == axis.name) {
            return Err(ShapeError::GivenTwice { name: axis.name.to_string() });
        }
    }
    Ok(axes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(grid: &Grid) -> Vec<String> {
        grid.iter().map(|axes| axes.to_string()).collect()
    }

    #[test]
    fn the_last_axis_of_a_product_is_fastest() {
        let grid = Grid::product([Axis::new("b", [1, 2]), Axis::new("s", [8, 16, 32])]).unwrap();
        assert_eq!(points(&grid), ["b1-s8", "b1-s16", "b1-s32", "b2-s8", "b2-s16", "b2-s32"]);
    }

    #[test]
    fn a_grid_of_many_axes_is_refused() {
        let axes = (0..17).map(|axis| Axis::new(format!("a{axis}"), [1]));
        let error = Grid::product(axes).unwrap_err().to_string();
        assert_eq!(error, "a grid has 17 axes, more than 16: leave some out");
    }

    #[test]
    fn zipped_axes_go_side_by_side() {
        let grid = Grid::zipped([Axis::new("b", [1, 2]), Axis::new("s", [8, 16])]).unwrap();
        assert_eq!(points(&grid), ["b1-s8", "b2-s16"]);
    }

    #[test]
    fn a_grid_that_makes_no_sense_says_why() {
        let long: Vec<u64> = (0..2000).collect();
        for (result, expected) in [
            (Grid::product([]), "a grid needs at least one axis"),
            (Grid::zipped([]), "a grid needs at least one axis"),
            (Grid::product([Axis::new("b", [])]), "b is an empty list: give it at least one entry or leave it out"),
            (Grid::product([Axis::new("b", [1]), Axis::new("b", [2])]), "b is given twice: keep one"),
            (
                Grid::zipped([Axis::new("b", [1]), Axis::new("s", [2]), Axis::new("d", [2, 3])]),
                "axes that are zipped have equal lengths: b has 1 values, d has 2",
            ),
            (
                Grid::product([Axis::new("b", long.clone()), Axis::new("s", long)]),
                "the grid would make 4000000 entries, more than 1000000: narrow an axis (b has 2000 values, s \
                 has 2000 values)",
            ),
        ] {
            assert_eq!(result.unwrap_err().to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn a_product_has_every_combination_once(lengths in prop::collection::vec(1..6u64, 1..5)) {
            let axis = |(i, len): (usize, &u64)| Axis::new(format!("axis{i}_"), (0..*len).collect::<Vec<_>>());
            let axes = lengths.iter().enumerate().map(axis);
            let grid = Grid::product(axes).unwrap();
            let made: Vec<Axes> = grid.iter().collect();
            prop_assert_eq!(grid.count(), lengths.iter().product::<u64>());
            prop_assert_eq!(made.len() as u64, grid.count());
            // With ascending values and the last axis fastest, the points ascend, so none comes twice.
            prop_assert!(made.is_sorted_by(|a, b| a < b));
        }
    }
}
