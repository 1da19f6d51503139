//! Sizes of a matmul.

use crate::ShapeError;
use crate::number::WholeNumber;
use calorimeter_case::Axes;
use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU64;

/// Maximum size of an axis, 2^31: the product of two axes fits 64 bits.
pub const MAX_SIZE: u64 = 1 << 31;

/// Sizes of `[m, k] x [k, n]`: each axis is from 1 to [`MAX_SIZE`], and the 2·m·k·n operations fit 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    m: NonZeroU64,
    k: NonZeroU64,
    n: NonZeroU64,
}

impl Shape {
    /// Checks the sizes; an error contains the axis and its value.
    pub fn new(m: u64, k: u64, n: u64) -> Result<Self, ShapeError> {
        let shape = Self { m: check_size("m", m)?, k: check_size("k", k)?, n: check_size("n", n)? };
        if shape.operations() > u128::from(u64::MAX) {
            return Err(ShapeError::TooLarge { m, k, n });
        }
        Ok(shape)
    }

    /// Rows of the input (tokens).
    pub fn m(self) -> u64 {
        self.m.get()
    }

    /// Reduction dimension (input features).
    pub fn k(self) -> u64 {
        self.k.get()
    }

    /// Columns of the output (output features).
    pub fn n(self) -> u64 {
        self.n.get()
    }

    /// `[m, k, n]` as `usize`.
    pub fn dims(self) -> [usize; 3] {
        // 2^31 fits a 32-bit `usize`.
        [self.m() as usize, self.k() as usize, self.n() as usize]
    }

    /// Floating-point operations of the matmul: a multiplication and an addition for each m, k and n.
    pub fn flops(self) -> u64 {
        2 * self.m() * self.k() * self.n()
    }

    fn operations(self) -> u128 {
        2 * u128::from(self.m()) * u128::from(self.k()) * u128::from(self.n())
    }
}

/// Bounds of an axis size.
pub(crate) fn size_bounds(name: &str) -> WholeNumber<'_> {
    WholeNumber { name, from: 1, to: MAX_SIZE }
}

fn check_size(axis: &str, value: u64) -> Result<NonZeroU64, ShapeError> {
    let value = size_bounds(axis).check(value)?;
    Ok(NonZeroU64::new(value).expect("checked sizes are at least 1"))
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `pad` honors the column widths of tables.
        f.pad(&format!("m{}-k{}-n{}", self.m, self.k, self.n))
    }
}

/// Shape with a name for tables; names need not be unique.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedShape {
    /// Name, such as `llama_attn.wqkv`.
    pub name: Cow<'static, str>,
    /// Sizes.
    pub shape: Shape,
}

impl NamedShape {
    /// Checks the sizes and adds a name.
    pub fn new(name: impl Into<Cow<'static, str>>, [m, k, n]: [u64; 3]) -> Result<Self, ShapeError> {
        Ok(Self { name: name.into(), shape: Shape::new(m, k, n)? })
    }
}

impl From<Shape> for Axes {
    fn from(shape: Shape) -> Self {
        Self::new([("m", shape.m()), ("k", shape.k()), ("n", shape.n())]).expect("distinct names")
    }
}

/// Reads the axes m, k and n, and ignores others.
impl TryFrom<&Axes> for Shape {
    type Error = ShapeError;

    fn try_from(axes: &Axes) -> Result<Self, ShapeError> {
        let size = |axis| axes.get(axis).ok_or_else(|| ShapeError::MissingAxis { axis, axes: axes.to_string() });
        Self::new(size("m")?, size("k")?, size("n")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn size_errors_report_axis_and_value() {
        let number = |name: &str, found: &str| ShapeError::Number {
            name: name.into(),
            found: found.into(),
            from: 1,
            to: 2_147_483_648,
        };
        for ([m, k, n], expected) in [
            ([0, 1, 1], number("m", "0")),
            ([1, 0, 1], number("k", "0")),
            ([1, 1, (1 << 31) + 1], number("n", "2147483649")),
            ([1 << 21; 3], ShapeError::TooLarge { m: 1 << 21, k: 1 << 21, n: 1 << 21 }),
        ] {
            assert_eq!(Shape::new(m, k, n), Err(expected));
        }
    }

    #[test]
    fn display_matches_case_names() {
        let shape = Shape::new(1024, 512, 1).unwrap();
        assert_eq!(format!("{shape}|{shape:16}|"), "m1024-k512-n1|m1024-k512-n1   |");
    }

    proptest! {
        #[test]
        fn an_accepted_shape_counts_its_operations_exactly(m in 1..=MAX_SIZE, k in 1..=MAX_SIZE, n in 1..=MAX_SIZE) {
            let exact = 2 * u128::from(m) * u128::from(k) * u128::from(n);
            match Shape::new(m, k, n) {
                Ok(shape) => {
                    prop_assert_eq!(u128::from(shape.flops()), exact);
                    prop_assert_eq!(shape.dims(), [m as usize, k as usize, n as usize]);
                }
                Err(_) => prop_assert!(exact > u128::from(u64::MAX)),
            }
        }
    }

    #[test]
    fn shape_converts_to_axes_and_back() {
        let shape = Shape::new(1, 2, 3).unwrap();
        let axes = Axes::from(shape);
        assert_eq!(axes.to_string(), shape.to_string());
        assert_eq!(Shape::try_from(&axes), Ok(shape));
        let two = Axes::new([("m", 1), ("k", 2)]).unwrap();
        assert_eq!(Shape::try_from(&two), Err(ShapeError::MissingAxis { axis: "n", axes: "m1-k2".into() }));
    }
}
