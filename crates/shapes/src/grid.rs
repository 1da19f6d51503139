//! Cartesian products of named axes, and zipped axes.

use crate::{Axes, MAX_AXES, MAX_SHAPES, ShapeError};
use std::borrow::Cow;

/// Axis name with its values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Axis {
    name: Cow<'static, str>,
    values: Vec<u64>,
}

impl Axis {
    /// Creates an axis without checks; a [`Grid`] checks it.
    pub fn new(name: impl Into<Cow<'static, str>>, values: impl Into<Vec<u64>>) -> Self {
        Self { name: name.into(), values: values.into() }
    }

    /// Name of the axis.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Values of the axis, in order.
    pub fn values(&self) -> &[u64] {
        &self.values
    }
}

/// Combination of the axes of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Pairing {
    /// Cartesian product, the last axis fastest.
    Product,
    /// Element-wise combination of equally long axes.
    Zipped,
}

/// Points generated from named axes.
///
/// ```
/// use calorimeter_shapes::{Axis, Grid, RangeStep, ValueRange};
///
/// let rows = ValueRange::new(1, 4, RangeStep::Multiply(2))?;
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
    /// Cartesian product of the axes, the last axis fastest.
    pub fn product(axes: impl IntoIterator<Item = Axis>) -> Result<Self, ShapeError> {
        let axes = check_axes(axes)?;
        // A saturated count exceeds the limit and is rejected below.
        let count = axes.iter().fold(1u128, |count, axis| count.saturating_mul(axis.values.len() as u128));
        Self::build(axes, Pairing::Product, count)
    }

    /// Combines the axes element-wise; they must have equal lengths.
    pub fn zipped(axes: impl IntoIterator<Item = Axis>) -> Result<Self, ShapeError> {
        let axes = check_axes(axes)?;
        let count = axes[0].values.len();
        if let Some(other) = axes.iter().find(|axis| axis.values.len() != count) {
            return Err(ShapeError::UnequalLengths {
                first: axes[0].name.to_string(),
                first_len: count,
                other: other.name.to_string(),
                other_len: other.values.len(),
            });
        }
        Self::build(axes, Pairing::Zipped, count as u128)
    }

    fn build(axes: Vec<Axis>, pairing: Pairing, count: u128) -> Result<Self, ShapeError> {
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

    /// Axes of the grid.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Number of points, computed without generating them.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Iterates over the points in order.
    pub fn iter(&self) -> impl Iterator<Item = Axes> {
        (0..self.count).map(|index| self.point(index))
    }

    fn point(&self, index: u64) -> Axes {
        // Digits of the index in mixed radix; the last axis is the least significant.
        let mut rest = index;
        let mut pairs: Vec<(Cow<'static, str>, u64)> = Vec::with_capacity(self.axes.len());
        for Axis { name, values } in self.axes.iter().rev() {
            let position = match self.pairing {
                Pairing::Zipped => index,
                Pairing::Product => {
                    let position = rest % values.len() as u64;
                    rest /= values.len() as u64;
                    position
                }
            };
            pairs.push((name.clone(), values[position as usize]));
        }
        pairs.reverse();
        Axes::new(pairs).expect("axis names of a grid are distinct")
    }
}

/// Checks that there is at least one axis, no axis is empty and no name is repeated.
fn check_axes(axes: impl IntoIterator<Item = Axis>) -> Result<Vec<Axis>, ShapeError> {
    let axes: Vec<Axis> = axes.into_iter().collect();
    if axes.len() > MAX_AXES {
        return Err(ShapeError::TooManyAxes { count: axes.len() });
    }
    if axes.is_empty() {
        return Err(ShapeError::NoAxes);
    }
    for (index, axis) in axes.iter().enumerate() {
        if axis.values.is_empty() {
            return Err(ShapeError::EmptyList { name: axis.name.to_string() });
        }
        if axes[..index].iter().any(|earlier| earlier.name == axis.name) {
            return Err(ShapeError::DuplicateName { name: axis.name.to_string() });
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
    fn product_varies_the_last_axis_fastest() {
        let grid = Grid::product([Axis::new("b", [1, 2]), Axis::new("s", [8, 16, 32])]).unwrap();
        assert_eq!(points(&grid), ["b1-s8", "b1-s16", "b1-s32", "b2-s8", "b2-s16", "b2-s32"]);
    }

    #[test]
    fn too_many_axes_are_rejected() {
        let axes = (0..17).map(|axis| Axis::new(format!("a{axis}"), [1]));
        assert_eq!(Grid::product(axes).unwrap_err(), ShapeError::TooManyAxes { count: 17 });
    }

    #[test]
    fn zipped_axes_advance_together() {
        let grid = Grid::zipped([Axis::new("b", [1, 2]), Axis::new("s", [8, 16])]).unwrap();
        assert_eq!(points(&grid), ["b1-s8", "b2-s16"]);
    }

    #[test]
    fn invalid_grids_are_rejected() {
        for (result, expected) in [
            (Grid::product([]), ShapeError::NoAxes),
            (Grid::zipped([]), ShapeError::NoAxes),
            (Grid::product([Axis::new("b", [])]), ShapeError::EmptyList { name: "b".into() }),
            (Grid::product([Axis::new("b", [1]), Axis::new("b", [2])]), ShapeError::DuplicateName { name: "b".into() }),
            (
                Grid::zipped([Axis::new("b", [1]), Axis::new("s", [2]), Axis::new("d", [2, 3])]),
                ShapeError::UnequalLengths { first: "b".into(), first_len: 1, other: "d".into(), other_len: 2 },
            ),
        ] {
            assert_eq!(result.unwrap_err(), expected);
        }
        let long: Vec<u64> = (0..2000).collect();
        let large = Grid::product([Axis::new("b", long.clone()), Axis::new("s", long)]).unwrap_err();
        assert!(matches!(large, ShapeError::TooMany { count: 4_000_000, .. }), "{large:?}");
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
            // With ascending values and the last axis fastest, distinct points are in ascending order.
            prop_assert!(made.is_sorted_by(|a, b| a < b));
        }
    }
}
