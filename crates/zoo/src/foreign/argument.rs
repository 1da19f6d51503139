//! Arguments of foreign kernels and libraries: buffers and scalars.

use super::AxisExpression;
use crate::{Fill, Operand, ZooError};
use calorimeter_case::Axes;
use calorimeter_recipes::Element;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
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
    /// Bytes of a file.
    File {
        /// Absolute path.
        path: String,
        /// First byte.
        offset: u64,
    },
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
const BUFFER_TYPES: [&str; 10] = ["f32", "f16", "bf16", "e4m3", "e5m2", "i8", "u8", "i16", "i32", "i64"];

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
                    BufferContent::Normal => ResolvedContent::Fill(Fill::Normal),
                    BufferContent::Zero => ResolvedContent::Zero,
                    BufferContent::IntegersBelow(end) => match u32::try_from(end.evaluate(axes)?) {
                        Ok(end @ 1..) => ResolvedContent::Fill(Fill::IntegersBelow(end)),
                        _ => return Err(format!("{self}: invalid below={end}: expected 1 to 2^32")),
                    },
                    BufferContent::File { path, offset } => {
                        ResolvedContent::File { path: path.clone(), offset: *offset }
                    }
                };
                ResolvedArgument::Buffer(ResolvedBuffer { element: *element, length, role: *role, content: fill })
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
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedBuffer {
    /// Element type.
    pub element: Element,
    /// Number of elements.
    pub length: u64,
    /// Direction.
    pub role: BufferRole,
    /// Content before a call.
    pub content: ResolvedContent,
}

/// Content of a buffer at a size.
#[derive(Debug, Clone, PartialEq)]
pub enum ResolvedContent {
    /// Zeros.
    Zero,
    /// Generated values, determined by the seed.
    Fill(Fill),
    /// Bytes of a file.
    File {
        /// Path.
        path: String,
        /// First byte.
        offset: u64,
    },
}

impl ResolvedBuffer {
    /// Number of bytes.
    pub fn bytes(&self) -> u64 {
        self.length * u64::from(self.element.bits()) / 8
    }

    /// Initial content in bytes; `None` for buffers that are only written.
    pub(super) fn initial_bytes(&self, seed: u64) -> Result<Option<Vec<u8>>, ZooError> {
        if self.role == BufferRole::Out {
            return Ok(None);
        }
        let bytes = match &self.content {
            ResolvedContent::Zero => vec![0; self.bytes() as usize],
            ResolvedContent::Fill(fill) => {
                // Random values are computed in types of at most 32 bits.
                let drawn = if self.element.bits() > 32 { Element::Signed(32) } else { self.element };
                let operand = Operand::normal(1, self.length, drawn).with_fill(*fill);
                crate::element_bytes::encode(&operand.matrix(seed).values, self.element)
            }
            ResolvedContent::File { path, offset } => read_part(path, *offset, self.bytes())
                .map_err(|error| ZooError::Device(format!("cannot read {path}: {error}")))?,
        };
        Ok(Some(bytes))
    }
}

/// Reads a part of a file.
fn read_part(path: &str, offset: u64, bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut content = vec![0; bytes as usize];
    file.read_exact(&mut content)?;
    Ok(content)
}

impl ScalarArgument {
    fn name(&self) -> &'static str {
        match self {
            Self::Integer(whole, _) => INTEGER_TYPES.iter().find(|(one, _)| one == whole).map_or("", |(_, name)| name),
            Self::F32(_) => "f32",
            Self::F64(_) => "f64",
        }
    }

    /// Evaluates the scalar at a size.
    pub(super) fn number(&self, axes: &Axes) -> Result<f64, String> {
        match self {
            Self::Integer(_, amount) => amount.evaluate(axes).map(|amount| amount as f64),
            Self::F32(value) => Ok(f64::from(*value)),
            Self::F64(value) => Ok(*value),
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
    let mut parts = text.splitn(4, ':');
    let (Some(name), Some(length), Some(role)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("missing type, length or role".into());
    };
    let content = match parts.next() {
        None | Some("normal") => BufferContent::Normal,
        Some("zero") => BufferContent::Zero,
        Some(other) => match (other.strip_prefix("below="), other.strip_prefix("file=")) {
            (Some(end), _) => BufferContent::IntegersBelow(end.parse()?),
            (_, Some(file)) => parse_file(file)?,
            _ => return Err(format!("invalid content {other:?}: expected normal, zero, below=N or file=PATH@OFFSET")),
        },
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

fn parse_file(text: &str) -> Result<BufferContent, String> {
    let invalid = || format!("invalid file {text:?}: expected an absolute path and an offset, e.g. /data/x.bin@0");
    let (path, offset) = text.rsplit_once('@').ok_or_else(invalid)?;
    let offset = offset.parse().map_err(|_| invalid())?;
    if !Path::new(path).is_absolute() {
        return Err(invalid());
    }
    Ok(BufferContent::File { path: path.to_owned(), offset })
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
                    BufferContent::File { path, offset } => write!(f, ":file={path}@{offset}"),
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
        for text in [
            "f32:n:in",
            "bf16:2 * n:out",
            "i32:n:in:below=n",
            "f32:1:inout:zero",
            "i64:n:in:file=/data/a:b@c.bin@128",
            "i64=n",
            "f32=0.5",
            "f64=-2",
        ] {
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
            ("f32:n:in:file=x.bin@0", "absolute path"),
            ("f32:n:in:file=/x.bin", "offset"),
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
        let bytes = |buffer: &ResolvedBuffer| buffer.initial_bytes(1).unwrap();
        let content = bytes(&indices).unwrap();
        assert!(content.chunks(4).all(|number| number[0] < 3 && number[1..] == [0; 3]));
        assert_eq!(bytes(&indices), Some(content), "determined by the seed");
        let ResolvedArgument::Buffer(output) = given("f32:n:out") else { panic!() };
        assert_eq!((bytes(&output), output.bytes()), (None, 12));
        let ResolvedArgument::Buffer(wide) = given("i64:n:in") else { panic!() };
        assert_eq!(bytes(&wide).map(|bytes| bytes.len()), Some(24));
    }

    #[test]
    fn content_of_a_file_is_read_at_its_offset() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [9, 1, 0, 2, 0]).unwrap();
        let read = |length: u64| {
            let text = format!("i16:{length}:in:file={}@1", file.path().display());
            let ResolvedArgument::Buffer(buffer) = text.parse::<Argument>().unwrap().resolve(&Axes::default()).unwrap()
            else {
                panic!()
            };
            buffer.initial_bytes(1)
        };
        assert_eq!(read(2), Ok(Some(vec![1, 0, 2, 0])));
        assert!(matches!(read(3), Err(ZooError::Device(_))), "the file is too short");
    }
}
