//! Bias check: a wrong scale shifts all values in one direction, rounding does not.

use std::fmt;

/// Allowed deviation of the slope (output against reference) of a correct output from 1, apart from random errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bias {
    /// Systematic deviation, from truncation instead of rounding.
    pub floor: f64,
    /// Terms of the shortest dot product. Errors of the shared factors are common to all columns; only averaging over
    /// these terms reduces them.
    pub depth: u64,
    /// True if the other factors were computed too, so that their errors are common to all rows.
    pub both_computed: bool,
}

/// Terms over which errors cancel, if the number is unknown.
const DEFAULT_DEPTH: u64 = 64;

impl Bias {
    /// Bias limit with a systematic deviation of `floor`; `computed` is the number of terms with computed factors, if
    /// known.
    pub(super) fn from_slope(floor: f64, computed: Option<u64>, both_computed: bool) -> Self {
        Self { floor, depth: computed.unwrap_or(DEFAULT_DEPTH).min(DEFAULT_DEPTH), both_computed }
    }
}

/// Part of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckedPart {
    /// Whole output.
    Whole,
    /// Row by index.
    Row(usize),
    /// Column by index.
    Column(usize),
}

impl fmt::Display for CheckedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("the output"),
            Self::Row(row) => write!(f, "row {row}"),
            Self::Column(col) => write!(f, "column {col}"),
        }
    }
}

/// Allowed standard errors of the slope of the whole output.
const SIGMAS: f64 = 5.0;
/// Allowed standard errors of the slope of one row or column among thousands.
const PART_SIGMAS: f64 = 6.0;
/// Variance factor for errors proportional to their values: E[x^4] / E[x^2]^2 of normal values is 3.
const KURTOSIS: f64 = 3.0;
/// Terms of a dot product per effective term, if factors vary in magnitude.
const TERMS_PER_EFFECTIVE_TERM: f64 = 4.0;
/// Minimum number of values of a row or column for a slope.
pub(super) const MIN_SLOPE_VALUES: usize = 8;

/// Sums of squares and products of output and reference.
#[derive(Default, Clone, Copy)]
pub(super) struct SlopeSums {
    got: f64,
    reference: f64,
    both: f64,
}

impl SlopeSums {
    pub(super) fn add(&mut self, got: f64, reference: f64) {
        self.got += got * got;
        self.reference += reference * reference;
        self.both += got * reference;
    }

    /// Adds other sums.
    pub(super) fn merge(&mut self, other: Self) {
        self.got += other.got;
        self.reference += other.reference;
        self.both += other.both;
    }

    fn slope(&self) -> f64 {
        self.both / self.reference
    }

    /// Squared distance of the output from the regression line.
    fn residual(&self) -> f64 {
        (self.got - self.both * self.slope()).max(0.0)
    }
}

/// Checks the slopes of the whole output, its columns and its rows, in that order.
///
/// Values are in units of their expected magnitude. The error holds the first part outside its limit, its slope, and
/// the allowed deviation from one. Rows have `cols` values. Columns and rows of fewer than [`FEW`] values are not
/// checked.
pub(super) fn check(
    of_rows: &[SlopeSums],
    of_cols: &[SlopeSums],
    cols: usize,
    bias: &Bias,
) -> Result<(), (CheckedPart, f64, f64)> {
    let rows = of_rows.len();
    let mut all = SlopeSums::default();
    of_rows.iter().for_each(|sums| all.merge(*sums));
    let noise = all.residual() / (rows * cols).max(1) as f64;
    let independent = (cols as f64).min((bias.depth as f64 / TERMS_PER_EFFECTIVE_TERM).max(1.0));
    let of_column = if bias.both_computed { independent.min(rows as f64) } else { rows as f64 };
    let test = |part: CheckedPart, sums: &SlopeSums, count: usize, independent: f64, sigmas: f64| {
        if sums.reference == 0.0 {
            return Ok(());
        }
        let noise = noise.max(sums.residual() / count as f64);
        let relative = noise * count as f64 / sums.reference;
        // A value rounded to one grid is smaller than its reference on another, by the square of their distance.
        let limit = bias.floor + relative + sigmas * (KURTOSIS * relative / independent).sqrt();
        let slope = sums.slope();
        if (slope - 1.0).abs() > limit { Err((part, slope, limit)) } else { Ok(()) }
    };
    test(CheckedPart::Whole, &all, rows * cols, independent * rows as f64, SIGMAS)?;
    if rows >= MIN_SLOPE_VALUES {
        for (col, sums) in of_cols.iter().enumerate() {
            test(CheckedPart::Column(col), sums, rows, of_column, PART_SIGMAS)?;
        }
    }
    if cols >= MIN_SLOPE_VALUES {
        for (row, sums) in of_rows.iter().enumerate() {
            test(CheckedPart::Row(row), sums, cols, independent, PART_SIGMAS)?;
        }
    }
    Ok(())
}
