//! Arguments of foreign kernels and libraries: buffers and scalars.

use super::AxisExpression;
use crate::{Fill, Operand};
use calorimeter_case::Axes;
use calorimeter_recipes::Element;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Argument of a call: `f32:n:in` is a buffer of n elements, `i32=n` is a scalar.
///
/// ```
/// use calorimeter_zoo::foreign::Argument;
///
/// let input: Argument = "f32:n*n:in".parse()?;
/// assert_eq!(input.to_string(), "f32:n*n:in");
/// assert!("f32:n".parse::<Argument>().unwrap_err().contains("f32:1024:in"));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// Memory that is read or written.
    Buffer {
        /// Element type.
        element: Element,
        /// Number of elements.
        length: AxisExpression,
        /// Direction.
        role: BufferRole,
        /// Content before a call.
        content: BufferContent,
    },
    /// Scalar passed by value.
    Value(ScalarArgument),
}

/// Direction of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferRole {
    /// Read.
    In,
    /// Written completely.
    Out,
    /// Read and written. The content is restored before outputs are compared, but not between timed calls.
    InOut,
}

/// Content of an input buffer before a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BufferContent {
    /// Standard normal values, determined by the seed.
    Normal,
    /// Zeros.
    Zero,
    /// Integers from 0 to one below this value, for indices.
    IntegersBelow(AxisExpression),
}

/// Scalar passed by value.
#[derive(Debug, Clone, PartialEq)]
pub enum ScalarArgument {
    /// Integer.
    Integer(IntegerType, AxisExpression),
    /// Single precision.
    F32(f32),
    /// Double precision.
    F64(f64),
}

/// Integer types of scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerType {
    /// Signed, 32 bits.
    I32,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 64 bits.
    U64,
}

/// Element types of buffers; all have whole bytes.
const BUFFER_TYPES: [&str; 8] = ["f32", "f16", "bf16", "e4m3", "e5m2", "i8", "u8", "i32"];

const INTEGER_TYPES: [(IntegerType, &str); 4] =
    [(IntegerType::I32, "i32"), (IntegerType::U32, "u32"), (IntegerType::I64, "i64"), (IntegerType::U64, "u64")];

impl Argument {
    /// Evaluates the argument at a size.
    pub(super) fn resolve(&self, axes: &Axes) -> Result<ResolvedArgument, String> {
        Ok(match self {
            Self::Buffer { element, length, role, content } => {
                let length = length.evaluate(axes)?;
                if length == 0 || length > MAX_ELEMENTS {
                    return Err(format!("{self}: invalid length {length}: expected 1 to 2^40 elements"));
                }
                let fill = match content {
                    BufferContent::Normal => Some(Fill::Normal),
                    BufferContent::Zero => None,
                    BufferContent::IntegersBelow(end) => match u32::try_from(end.evaluate(axes)?) {
                        Ok(end @ 1..) => Some(Fill::IntegersBelow(end)),
                        _ => return Err(format!("{self}: invalid below={end}: expected 1 to 2^32")),
                    },
                };
                ResolvedArgument::Buffer(ResolvedBuffer { element: *element, length, role: *role, fill })
            }
            Self::Value(value) => {
                ResolvedArgument::Value(value.bytes(axes).map_err(|why| format!("{self}: {why}"))?, value.name())
            }
        })
    }
}

/// Maximum length of a buffer; larger than any memory, and small enough that byte counts do not overflow.
const MAX_ELEMENTS: u64 = 1 << 40;

/// Argument evaluated at a size.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ResolvedArgument {
    Buffer(ResolvedBuffer),
    /// Bytes of a scalar, and the name of its type.
    Value(Vec<u8>, &'static str),
}

/// Buffer at a size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ResolvedBuffer {
    pub element: Element,
    pub length: u64,
    pub role: BufferRole,
    /// Content; `None` is zeros.
    pub fill: Option<Fill>,
}

impl ResolvedBuffer {
    pub(super) fn bytes(&self) -> u64 {
        self.length * u64::from(self.element.bits()) / 8
    }

    /// Initial content in bytes; `None` for buffers that are only written.
    pub(super) fn content(&self, seed: u64) -> Option<Vec<u8>> {
        if self.role == BufferRole::Out {
            return None;
        }
        let bytes = match self.fill {
            None => vec![0; self.bytes() as usize],
            Some(fill) => {
                let operand = Operand::normal(1, self.length, self.element).with_fill(fill);
                crate::element_bytes::encode(&operand.matrix(seed).values, self.element)
            }
        };
        Some(bytes)
    }
}

impl ScalarArgument {
    fn name(&self) -> &'static str {
        match self {
            Self::Integer(whole, _) => INTEGER_TYPES.iter().find(|(one, _)| one == whole).map_or("", |(_, name)| name),
            Self::F32(_) => "f32",
            Self::F64(_) => "f64",
        }
    }

    fn bytes(&self, axes: &Axes) -> Result<Vec<u8>, String> {
        let (whole, amount) = match self {
            Self::F32(value) => return Ok(value.to_ne_bytes().to_vec()),
            Self::F64(value) => return Ok(value.to_ne_bytes().to_vec()),
            Self::Integer(whole, amount) => (whole, amount.evaluate(axes)?),
        };
        let bytes = match whole {
            IntegerType::I32 => i32::try_from(amount).map(|value| value.to_ne_bytes().to_vec()).ok(),
            IntegerType::U32 => u32::try_from(amount).map(|value| value.to_ne_bytes().to_vec()).ok(),
            IntegerType::I64 => i64::try_from(amount).map(|value| value.to_ne_bytes().to_vec()).ok(),
            IntegerType::U64 => Some(amount.to_ne_bytes().to_vec()),
        };
        bytes.ok_or_else(|| format!("{amount} does not fit into {}", self.name()))
    }
}

impl FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: String| {
            format!(
                "invalid argument {text:?}: {why}; expected a buffer, e.g. f32:1024:in (or out, inout), or a scalar, e.g. i32=1024 or f32=0.5"
            )
        };
        match text.split_once('=') {
            Some((name, value)) if !name.contains(':') => parse_scalar(name, value).map(Self::Value).map_err(wrong),
            _ => parse_buffer(text).map_err(wrong),
        }
    }
}

fn parse_buffer(text: &str) -> Result<Argument, String> {
    let mut parts = text.split(':');
    let (Some(name), Some(length), Some(role)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("missing type, length or role".into());
    };
    let content = match (parts.next(), parts.next()) {
        (None, _) | (Some("normal"), None) => BufferContent::Normal,
        (Some("zero"), None) => BufferContent::Zero,
        (Some(other), None) => match other.strip_prefix("below=") {
            Some(end) => BufferContent::IntegersBelow(end.parse()?),
            None => return Err(format!("invalid content {other:?}: expected normal, zero or below=N")),
        },
        (Some(_), Some(_)) => return Err("more than four parts".into()),
    };
    if !BUFFER_TYPES.contains(&name) {
        return Err(format!("invalid buffer type {name:?}: expected one of {}", BUFFER_TYPES.join(", ")));
    }
    let role = match role {
        "in" => BufferRole::In,
        "out" => BufferRole::Out,
        "inout" => BufferRole::InOut,
        other => return Err(format!("invalid role {other:?}: expected in, out or inout")),
    };
    let element = name.parse().map_err(|error| format!("{error}"))?;
    Ok(Argument::Buffer { element, length: length.parse()?, role, content })
}

fn parse_scalar(name: &str, value: &str) -> Result<ScalarArgument, String> {
    let no_number = |_| format!("invalid number {value:?}");
    if let Some((whole, _)) = INTEGER_TYPES.iter().find(|(_, known)| *known == name) {
        return Ok(ScalarArgument::Integer(*whole, value.parse()?));
    }
    match name {
        "f32" => value.parse().map(ScalarArgument::F32).map_err(no_number),
        "f64" => value.parse().map(ScalarArgument::F64).map_err(no_number),
        _ => Err(format!("invalid scalar type {name:?}: expected i32, u32, i64, u64, f32 or f64")),
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffer { element, length, role, content } => {
                write!(f, "{element}:{length}:{}", role.name())?;
                match content {
                    BufferContent::Normal => Ok(()),
                    BufferContent::Zero => f.write_str(":zero"),
                    BufferContent::IntegersBelow(end) => write!(f, ":below={end}"),
                }
            }
            Self::Value(value) => {
                write!(f, "{}=", value.name())?;
                match value {
                    ScalarArgument::Integer(_, amount) => amount.fmt(f),
                    ScalarArgument::F32(value) => value.fmt(f),
                    ScalarArgument::F64(value) => value.fmt(f),
                }
            }
        }
    }
}

impl BufferRole {
    /// Name in the argument syntax.
    pub fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
            Self::InOut => "inout",
        }
    }

    /// True if the content is compared after a call.
    pub fn is_written(self) -> bool {
        self != Self::In
    }
}

impl Serialize for Argument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_round_trip() {
        for text in ["f32:n:in", "bf16:2 * n:out", "i32:n:in:below=n", "f32:1:inout:zero", "i64=n", "f32=0.5", "f64=-2"]
        {
            let argument: Argument = text.parse().unwrap();
            assert_eq!(argument.to_string(), text);
        }
    }

    #[test]
    fn invalid_arguments_are_rejected_by_part() {
        for (text, invalid) in [
            ("f32:n", "role"),
            ("f33:n:in", "\"f33\""),
            ("f32:n:input", "\"input\""),
            ("f32:n:in:ones", "\"ones\""),
            ("f32:n+:in", "n+"),
            ("f16=1", "\"f16\""),
            ("f32=x", "\"x\""),
        ] {
            let error = text.parse::<Argument>().unwrap_err();
            assert!(error.contains(invalid) && error.contains("f32:1024:in"), "{text}: {error}");
        }
        let at = |text: &str, n| text.parse::<Argument>().unwrap().resolve(&[("n", n)].into()).map(drop);
        assert!(at("f32:n:in", 0).unwrap_err().contains("length 0"));
        assert!(at("i32=n", 1 << 31).unwrap_err().contains("i32"));
        assert_eq!(at("u32=n", 1 << 31), Ok(()));
    }

    #[test]
    fn scalars_and_contents_have_bytes_of_their_type() {
        let given = |text: &str| text.parse::<Argument>().unwrap().resolve(&[("n", 3)].into()).unwrap();
        assert_eq!(given("i32=n"), ResolvedArgument::Value(vec![3, 0, 0, 0], "i32"));
        assert_eq!(given("f64=0.5"), ResolvedArgument::Value(0.5f64.to_ne_bytes().to_vec(), "f64"));
        let ResolvedArgument::Buffer(indices) = given("i32:100:in:below=n") else { panic!() };
        let content = indices.content(1).unwrap();
        assert!(content.chunks(4).all(|number| number[0] < 3 && number[1..] == [0; 3]));
        assert_eq!(indices.content(1), Some(content), "determined by the seed");
        let ResolvedArgument::Buffer(output) = given("f32:n:out") else { panic!() };
        assert_eq!((output.content(1), output.bytes()), (None, 12));
    }
}
