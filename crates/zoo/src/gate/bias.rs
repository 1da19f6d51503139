//! Whether an output is too large or too small as a whole: a wrong scale shifts all values one way, rounding does not.

use std::fmt;

/// How far the slope of a correct output on its reference may be from one, besides chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bias {
    /// What cutting off instead of rounding takes away.
    pub floor: f64,
    /// Products in the shortest sums: errors of their factors are shared by all columns, and cancel only among so many.
    pub depth: u64,
    /// Whether errors of the other factors are shared by all rows in the same way: they were computed, and not given.
    pub both_computed: bool,
}

/// Products among which errors cancel, where nobody says how many share one.
const UNLESS_KNOWN: u64 = 64;

impl Bias {
    /// So much, where the shortest sums have so many products of computed factors, if that is known.
    pub(super) fn of(floor: f64, computed: Option<u64>, both_computed: bool) -> Self {
        Self { floor, depth: computed.unwrap_or(UNLESS_KNOWN).min(UNLESS_KNOWN), both_computed }
    }
}

/// Part of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// All of it.
    Whole,
    /// A row.
    Row(usize),
    /// A column.
    Column(usize),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("the output"),
            Self::Row(row) => write!(f, "row {row}"),
            Self::Column(col) => write!(f, "column {col}"),
        }
    }
}

/// Standard errors by which the slope of all values may be off.
const SIGMAS: f64 = 5.0;
/// The same for one row or column among thousands.
const SIGMAS_OF_PART: f64 = 6.0;
/// Errors are as large as their values: the squares of normal values, weighted by themselves, have three times the mean.
const KURTOSIS: f64 = 3.0;
/// Of the factors of a sum with gains the loud ones alone count.
const LOUD: f64 = 4.0;
/// A row or column of fewer values has no slope to speak of.
pub(super) const FEW: usize = 8;

/// Sums over part of the values: of the squares of both, and of their products.
#[derive(Default, Clone, Copy)]
pub struct Sums {
    got: f64,
    reference: f64,
    both: f64,
}

impl Sums {
    pub fn add(&mut self, got: f64, reference: f64) {
        self.got += got * got;
        self.reference += reference * reference;
        self.both += got * reference;
    }

    /// What other values come to.
    pub fn join(&mut self, other: Self) {
        self.got += other.got;
        self.reference += other.reference;
        self.both += other.both;
    }

    fn slope(&self) -> f64 {
        self.both / self.reference
    }

    /// The squared distance from the line.
    fn residual(&self) -> f64 {
        (self.got - self.both * self.slope()).max(0.0)
    }
}

/// Compares what rows and columns come to, in units of their loudness, with their references; answers the first part that is
/// off, its slope, and how far that may be from one. Rows are of `cols` values; too few of them have no columns.
pub fn check(of_rows: &[Sums], of_cols: &[Sums], cols: usize, bias: &Bias) -> Result<(), (Part, f64, f64)> {
    let rows = of_rows.len();
    let mut all = Sums::default();
    of_rows.iter().for_each(|sums| all.join(*sums));
    let noise = all.residual() / (rows * cols).max(1) as f64;
    let independent = (cols as f64).min((bias.depth as f64 / LOUD).max(1.0));
    let of_column = if bias.both_computed { independent.min(rows as f64) } else { rows as f64 };
    let test = |part: Part, sums: &Sums, count: usize, independent: f64, sigmas: f64| {
        if sums.reference == 0.0 {
            return Ok(());
        }
        let noise = noise.max(sums.residual() / count as f64);
        let relative = noise * count as f64 / sums.reference;
        // A value that lies on a grid is nearer to zero than its reference on another, by the square of their distance.
        let limit = bias.floor + relative + sigmas * (KURTOSIS * relative / independent).sqrt();
        let slope = sums.slope();
        if (slope - 1.0).abs() > limit { Err((part, slope, limit)) } else { Ok(()) }
    };
    test(Part::Whole, &all, rows * cols, independent * rows as f64, SIGMAS)?;
    if rows >= FEW {
        for (col, sums) in of_cols.iter().enumerate() {
            test(Part::Column(col), sums, rows, of_column, SIGMAS_OF_PART)?;
        }
    }
    if cols >= FEW {
        for (row, sums) in of_rows.iter().enumerate() {
            test(Part::Row(row), sums, cols, independent, SIGMAS_OF_PART)?;
        }
    }
    Ok(())
}
