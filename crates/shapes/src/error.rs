//! Errors of shapes, sources, ranges and grids.

use crate::{MAX_AXES, MAX_SHAPES};
use calorimeter_case::{excerpt, nearest};
use std::path::PathBuf;

/// Error of a shape, source, range or grid; each message contains the place, the value and a remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// Unknown name of a generator, model or column.
    #[error("unknown {what} {:?};{} known: {}", shorten(.found), hint(.found, .known), .known.join(", "))]
    Unknown {
        /// Category of the name.
        what: &'static str,
        /// Name as written.
        found: String,
        /// Accepted names.
        known: Vec<&'static str>,
    },
    /// A source without a `name`.
    #[error("a shape source needs a name, such as {{name: llama}}; known: {}", .known.join(", "))]
    NoGenerator {
        /// Registered generators.
        known: Vec<&'static str>,
    },
    /// Parameter that the generator does not have.
    #[error("{generator} does not take {:?};{} {}", shorten(.found), hint(.found, .takes), parameter_list(.takes))]
    UnknownParameter {
        /// Generator, or "a shape source" while the name is unknown.
        generator: &'static str,
        /// Parameter as written.
        found: String,
        /// Parameters of the generator.
        takes: Vec<&'static str>,
    },
    /// A generator is registered under an existing name.
    #[error("the shape generator {generator:?} is registered already; choose another name")]
    GeneratorTaken {
        /// Generator name.
        generator: &'static str,
    },
    /// A generator is registered with a reserved parameter name, or one that has another kind in another generator.
    #[error("the parameter name {parameter:?} of {generator} is reserved or has another type; choose another name")]
    ParameterTaken {
        /// Generator.
        generator: &'static str,
        /// Parameter.
        parameter: &'static str,
    },
    /// Missing parameter without a default.
    #[error("{generator} needs {parameter}: {about}")]
    MissingParameter {
        /// Generator.
        generator: &'static str,
        /// Missing parameter.
        parameter: &'static str,
        /// Description of the parameter.
        about: &'static str,
    },
    /// Missing key of a model's configuration.
    #[error("the configuration of the model has no {key:?}")]
    MissingKey {
        /// Key.
        key: &'static str,
    },
    /// A size that the devices of a model, or its heads, do not divide.
    #[error("{what} ({size}) cannot be divided by {parts}")]
    NotDivisible {
        /// Name of the size.
        what: &'static str,
        /// Size.
        size: u64,
        /// Number of parts.
        parts: u64,
    },
    /// Duplicate parameter or axis.
    #[error("{name} is given twice: keep one")]
    DuplicateName {
        /// Parameter or axis.
        name: String,
    },
    /// Value of the wrong kind for a parameter.
    #[error("{parameter} takes {expects}, not {found}")]
    WrongValue {
        /// Parameter.
        parameter: &'static str,
        /// Expected kind.
        expects: &'static str,
        /// Kind of the value.
        found: &'static str,
    },
    /// Empty list.
    #[error("{name} is an empty list: give it at least one entry or leave it out")]
    EmptyList {
        /// Parameter or axis.
        name: String,
    },
    /// Duplicate entry in a list whose entries become names.
    #[error("{name} lists {} twice: keep one", shorten(.value))]
    DuplicateEntry {
        /// Parameter.
        name: &'static str,
        /// Duplicate entry.
        value: String,
    },
    /// Shape with more or fewer than three sizes.
    #[error("a shape is [m, k, n]: found {found} numbers")]
    Arity {
        /// Number of sizes.
        found: usize,
    },
    /// List of sizes with another length than the axes of its model or operator.
    #[error("invalid shape of {found} numbers: expected one for each axis, [{axes}]")]
    WrongLength {
        /// Number of sizes.
        found: usize,
        /// Expected axes, separated by commas.
        axes: String,
    },
    /// Number that is fractional or out of bounds.
    #[error("{name} is {found}: it must be a whole number from {from} to {to}{}", bound_reason(.found, *.to))]
    Number {
        /// Axis or parameter.
        name: String,
        /// Value as written.
        found: String,
        /// Minimum.
        from: u64,
        /// Maximum.
        to: u64,
    },
    /// Shape whose 2·m·k·n operations do not fit 64 bits.
    #[error("m{m}-k{k}-n{n} has more than 2^64 operations, so they cannot be counted: make an axis smaller")]
    TooLarge {
        /// Rows of the input.
        m: u64,
        /// Reduction dimension.
        k: u64,
        /// Columns of the output.
        n: u64,
    },
    /// `min_power` greater than `max_power`.
    #[error(
        "{generator}: min_power {min} is above max_power {max}, which leaves no shapes: raise max_power or \
         lower min_power"
    )]
    PowersReversed {
        /// Generator.
        generator: &'static str,
        /// Given minimum exponent.
        min: u64,
        /// Given maximum exponent.
        max: u64,
    },
    /// More shapes, values or points than [`MAX_SHAPES`].
    #[error("{what} would make {count} entries, more than {MAX_SHAPES}: {narrow}")]
    TooMany {
        /// Generator, range or grid.
        what: String,
        /// Number of entries it would generate.
        count: u128,
        /// Suggestion for a smaller request.
        narrow: String,
    },
    /// Range whose end is below its start.
    #[error("a range from start {start} to end {end} is empty: end must not be below start")]
    RangeReversed {
        /// First value.
        start: u64,
        /// Last allowed value.
        end: u64,
    },
    /// Range with both kinds of step, or neither.
    #[error("a range takes either multiplier or increment: found {found}")]
    RangeStep {
        /// `both` or `neither`.
        found: &'static str,
    },
    /// Range whose step does not increase the value.
    #[error("a range from {start} with {step} never grows: {wayout}")]
    ConstantRange {
        /// First value.
        start: u64,
        /// Step as written.
        step: String,
        /// Suggestion for a step that increases.
        wayout: &'static str,
    },
    /// Grid without axes.
    #[error("a grid needs at least one axis")]
    NoAxes,
    /// Grid with too many axes.
    #[error("a grid has {count} axes, more than {MAX_AXES}: leave some out")]
    TooManyAxes {
        /// Number of axes.
        count: usize,
    },
    /// Zipped axes of different lengths.
    #[error("zipped axes must have equal lengths: {first} has {first_len} values, {other} has {other_len}")]
    UnequalLengths {
        /// First axis.
        first: String,
        /// Length of the first axis.
        first_len: usize,
        /// First axis with another length.
        other: String,
        /// Length of the other axis.
        other_len: usize,
    },
    /// Missing axis of a shape.
    #[error("no axis {axis} in {axes:?}: a shape needs m, k and n")]
    MissingAxis {
        /// Missing axis.
        axis: &'static str,
        /// Given axes.
        axes: String,
    },
    /// Unreadable file.
    #[error("cannot read {}: {cause}", .path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system or the CSV reader.
        cause: String,
    },
    /// Invalid line of a file.
    #[error("{}:{line}: {cause}", .path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Line number, counted from one.
        line: u64,
        /// Error in the line.
        cause: Box<ShapeError>,
    },
    /// Missing column of a file.
    #[error("no column {column:?}: the header is m,k,n and optionally name")]
    MissingColumn {
        /// Column.
        column: &'static str,
    },
    /// Row with more or fewer fields than the header.
    #[error("found {found} fields where the header has {header}")]
    FieldCount {
        /// Fields of the row.
        found: usize,
        /// Fields of the header.
        header: usize,
    },
    /// File without rows.
    #[error("a header and no rows: add a shape")]
    NoRows,
}

/// Explains the upper bound, for values that exceed it.
fn bound_reason(found: &str, to: u64) -> &'static str {
    match found.parse::<u128>() {
        Ok(found) if found > u128::from(to) => ", so that the operations of a shape can be counted in 64 bits",
        _ => "",
    }
}

fn parameter_list(parameters: &[&str]) -> String {
    if parameters.is_empty() {
        "it takes no parameters".to_owned()
    } else {
        format!("it takes: {}", parameters.join(", "))
    }
}

/// Abbreviates user input for messages.
fn shorten(found: &str) -> String {
    excerpt(found, 60)
}

/// Formats a suggestion: ` did you mean "pow2"?`, or an empty string.
fn hint(found: &str, known: &[&str]) -> String {
    nearest(found, known).map_or_else(String::new, |word| format!(" did you mean {word:?}?"))
}
