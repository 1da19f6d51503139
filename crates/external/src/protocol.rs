//! Messages between Calorimeter and an external program: one JSON object per line, each request followed by one reply.
//! `docs/src/worker-protocol.md` describes the protocol for authors of programs.

use calorimeter_case::{Axes, Element};
use serde::{Deserialize, Serialize};

/// Version of the protocol. A program that speaks another version is rejected.
pub const VERSION: u32 = 1;

/// Request to a program, over standard input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Asks for the version and the implementations; always the first request.
    Hello {
        /// Version that Calorimeter speaks.
        version: u32,
    },
    /// Prepares an implementation for a case.
    Open(Box<OpenCase>),
    /// Runs launches and times them.
    Run {
        /// Id of an open case.
        id: u64,
        /// Buffer set of the first launch; later launches use the following sets in turn.
        set: u32,
        /// Number of launches; may be 0.
        launches: u32,
    },
    /// Frees the resources of a case.
    Close {
        /// Id of an open case.
        id: u64,
    },
}

/// Reply of a program, over standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Reply to [`Request::Hello`].
    Hello {
        /// Version that the program speaks.
        version: u32,
        /// Implementations of the program.
        implementations: Vec<Offer>,
    },
    /// Reply to [`Request::Open`].
    Opened {
        /// Name of the code that runs, with the versions of its libraries; stored in the record.
        kernel: Option<String>,
    },
    /// Reply to [`Request::Run`].
    Ran {
        /// Time from the start of the first launch to the end of the last one, in nanoseconds.
        nanos: u64,
    },
    /// Reply to [`Request::Close`].
    Closed {},
    /// The program does not support the case, which is skipped. Reply to [`Request::Open`].
    Unsupported {
        /// Reason for the reader of the record.
        reason: String,
    },
    /// The request failed. Reply to any request.
    Error {
        /// Reason for the reader of the record.
        reason: String,
    },
}

/// Implementation of a model or operator that a program offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Name of the model or operator.
    pub subject: String,
    /// Name of the implementation.
    pub name: String,
    /// Description in one line.
    #[serde(default)]
    pub description: String,
    /// Kinds of devices.
    pub devices: Vec<String>,
    /// Element types of the inputs; `None` if the program decides when a case is opened.
    #[serde(default)]
    pub dtypes: Option<Vec<Element>>,
}

/// Case that a program opens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenCase {
    /// Id by which later requests name the case.
    pub id: u64,
    /// Name of the model or operator.
    pub subject: String,
    /// Name of the implementation.
    pub implementation: String,
    /// Device.
    pub device: String,
    /// Sizes by axis.
    pub axes: Axes,
    /// Element type of the inputs.
    pub dtype: Element,
    /// File that holds the buffers of all sets.
    pub file: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Buffer sets. Launches rotate through the sets.
    pub sets: Vec<BufferSet>,
}

/// Inputs and outputs of one launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferSet {
    /// Inputs, in the order of the definition of the model or operator.
    pub inputs: Vec<Buffer>,
    /// Outputs. A launch writes every element.
    pub outputs: Vec<Buffer>,
}

/// Row-major matrix in the shared file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// First byte.
    pub offset: u64,
    /// Rows and columns.
    pub shape: [u64; 2],
    /// Element type.
    pub dtype: Element,
}

impl Buffer {
    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.shape[0] * self.shape[1]
    }

    /// Number of bytes.
    pub fn bytes(&self) -> u64 {
        self.elements() * u64::from(self.dtype.bits()) / 8
    }
}
