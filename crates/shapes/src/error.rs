//! What can be wrong with a request for sizes.

use crate::MAX_SHAPES;
use calorimeter_case::{excerpt, nearest};
use std::path::PathBuf;

/// Why a shape, a source, a range or a grid was refused; each text names the place, the value and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// A name that is not in the table of generators, models or columns.
    #[error("unknown {what} {:?};{} known: {}", shortened(.found), hint(.found, .known), .known.join(", "))]
    Unknown {
        /// What kind of thing was named.
        what: &'static str,
        /// The name as written.
        found: String,
        /// The names that would have been accepted.
        known: Vec<&'static str>,
    },
    /// A source without a `name`.
    #[error("a shape source needs a name, such as {{name: llama}}; known: {}", .known.join(", "))]
    NoGenerator {
        /// The generators there are.
        known: Vec<&'static str>,
    },
    /// A parameter that this generator does not take.
    #[error("{generator} does not take {:?};{} {}", shortened(.found), hint(.found, .takes), listed(.takes))]
    UnknownParameter {
        /// The generator, or "a shape source" while its name has not been read.
        generator: &'static str,
        /// The parameter as written.
        found: String,
        /// The parameters it takes.
        takes: Vec<&'static str>,
    },
    /// A generator is to be registered under the name of another.
    #[error("the shape generator {generator:?} is registered already; choose another name")]
    GeneratorTaken {
        /// The name.
        generator: &'static str,
    },
    /// A generator is to be registered with a parameter whose name takes another kind of value elsewhere.
    #[error("the parameter {parameter:?} of {generator} means something else already; choose another name")]
    ParameterTaken {
        /// The generator.
        generator: &'static str,
        /// Its parameter.
        parameter: &'static str,
    },
    /// A parameter without which the generator has nothing to do.
    #[error("{generator} needs {parameter}: {about}")]
    MissingParameter {
        /// The generator.
        generator: &'static str,
        /// The parameter that is absent.
        parameter: &'static str,
        /// What the parameter is.
        about: &'static str,
    },
    /// A parameter or axis given twice, of which only one could be meant.
    #[error("{name} is given twice: keep one")]
    GivenTwice {
        /// The parameter or axis.
        name: String,
    },
    /// A value of a type that the parameter does not take.
    #[error("{parameter} takes {expects}, not {found}")]
    WrongValue {
        /// The parameter.
        parameter: &'static str,
        /// What it takes.
        expects: &'static str,
        /// What it was given.
        found: &'static str,
    },
    /// A list with nothing in it.
    #[error("{name} is an empty list: give it at least one entry or leave it out")]
    EmptyList {
        /// The parameter or axis.
        name: String,
    },
    /// The same entry twice in a list whose entries become names.
    #[error("{name} lists {} twice: keep one", shortened(.value))]
    ListedTwice {
        /// The parameter.
        name: &'static str,
        /// The repeated entry.
        value: String,
    },
    /// A shape that does not have three sizes.
    #[error("a shape is [m, k, n]: found {found} numbers")]
    Arity {
        /// How many sizes there were.
        found: usize,
    },
    /// A number that is not whole or lies outside its bounds.
    #[error("{name} is {found}: it must be a whole number from {from} to {to}{}", why(.found, *.to))]
    Number {
        /// The axis or parameter.
        name: String,
        /// The value as written.
        found: String,
        /// The smallest accepted value.
        from: u64,
        /// The largest accepted value.
        to: u64,
    },
    /// A shape whose 2·m·k·n operations do not fit 64 bits.
    #[error("m{m}-k{k}-n{n} has more than 2^64 operations, so they cannot be counted: make an axis smaller")]
    TooLarge {
        /// Rows of the input.
        m: u64,
        /// The axis summed over.
        k: u64,
        /// Columns of the output.
        n: u64,
    },
    /// `min_power` above `max_power`.
    #[error(
        "{generator}: min_power {min} is above max_power {max}, which leaves no shapes: raise max_power or \
         lower min_power"
    )]
    PowersReversed {
        /// The generator.
        generator: &'static str,
        /// The smaller exponent, or so it was meant.
        min: u64,
        /// The larger exponent.
        max: u64,
    },
    /// More shapes, values or points than [`MAX_SHAPES`].
    #[error("{what} would make {count} entries, more than {MAX_SHAPES}: {narrow}")]
    TooMany {
        /// The generator, range or grid.
        what: String,
        /// How many it would make.
        count: u128,
        /// What to make smaller.
        narrow: String,
    },
    /// A range that ends before it starts.
    #[error("a range from start {start} to end {end} is empty: end must not be below start")]
    RangeReversed {
        /// The first value.
        start: u64,
        /// The last value allowed.
        end: u64,
    },
    /// A range with both kinds of step, or neither.
    #[error("a range takes either multiplier or increment: found {found}")]
    RangeStep {
        /// `both` or `neither`.
        found: &'static str,
    },
    /// A step that never gets anywhere.
    #[error("a range from {start} with {step} never grows: {wayout}")]
    RangeStuck {
        /// The first value.
        start: u64,
        /// The step as written.
        step: String,
        /// What would make it grow.
        wayout: &'static str,
    },
    /// A grid without axes.
    #[error("a grid needs at least one axis")]
    NoAxes,
    /// Axes that cannot be zipped.
    #[error("axes that are zipped have equal lengths: {first} has {first_len} values, {other} has {other_len}")]
    Ragged {
        /// The first axis.
        first: String,
        /// Its length.
        first_len: usize,
        /// The first axis that differs.
        other: String,
        /// Its length.
        other_len: usize,
    },
    /// An axis that a shape needs.
    #[error("no axis {axis} in {axes:?}: a shape needs m, k and n")]
    MissingAxis {
        /// The absent axis.
        axis: &'static str,
        /// The axes there are.
        axes: String,
    },
    /// A file that cannot be read.
    #[error("cannot read {}: {cause}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// A line of a file that is not a shape.
    #[error("{}:{line}: {cause}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from one.
        line: u64,
        /// What is wrong with it.
        cause: Box<ShapeError>,
    },
    /// A header or row with the wrong fields, or a grid with too many axes.
    #[error("{0}")]
    Fields(String),
}

/// Only who asked for too much wants to know where the bound comes from.
fn why(found: &str, to: u64) -> &'static str {
    match found.parse::<u128>() {
        Ok(found) if found > u128::from(to) => ", so that the operations of a shape can be counted in 64 bits",
        _ => "",
    }
}

fn listed(parameters: &[&str]) -> String {
    if parameters.is_empty() {
        "it takes no parameters".to_owned()
    } else {
        format!("it takes: {}", parameters.join(", "))
    }
}

/// What somebody wrote, of whatever length.
fn shortened(found: &str) -> String {
    excerpt(found, 60)
}

/// ` did you mean "pow2"?`, or nothing.
fn hint(found: &str, known: &[&str]) -> String {
    nearest(found, known).map_or_else(String::new, |word| format!(" did you mean {word:?}?"))
}
