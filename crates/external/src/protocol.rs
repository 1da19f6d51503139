//! Messages between Calorimeter and an external program: one JSON object per line, each request followed by one reply.
//! `docs/src/worker-protocol.md` describes the protocol for authors of programs.

use calorimeter_case::{Axes, Clock, Element};
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
    /// Runs launches, and times them if a clock is stated.
    Run {
        /// Id of an open case.
        id: u64,
        /// Buffer set of the first launch; later launches rotate through the following sets.
        set: u32,
        /// Number of launches; may be 0.
        launches: u32,
        /// Kind of clock.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clock: Option<Clock>,
    },
    /// Runs launches and reports the kernels that the device executed. Calorimeter sends the request only if the clock
    /// of kind `device` is `cupti`.
    Trace {
        /// Id of an open case.
        id: u64,
        /// Buffer set of the first launch.
        set: u32,
        /// Number of launches.
        launches: u32,
    },
    /// Copies the last outputs of a buffer set to its output buffers, if the program holds them elsewhere.
    Store {
        /// Id of an open case.
        id: u64,
        /// Buffer set.
        set: u32,
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
        /// Name of the implementation, with the versions of its libraries; stored in the record.
        kernel: Option<String>,
        /// Time that the implementation took to quantize the weights of one buffer set, in nanoseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quantization_nanos: Option<u64>,
    },
    /// Reply to [`Request::Run`].
    Ran {
        /// Time of the launches. `None` if the request states no clock.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time: Option<MeasuredTime>,
    },
    /// Reply to [`Request::Trace`].
    Traced {
        /// Name and number of calls of each kernel.
        kernels: Vec<(String, u64)>,
    },
    /// Reply to [`Request::Store`].
    Stored {},
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

/// Measured time of launches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredTime {
    /// Name of the clock; a kind of clock always has the same name in a program.
    pub clock: String,
    /// Nanoseconds.
    pub nanos: u64,
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
    /// True if the implementation computes models and training passes by recipes. The program replies
    /// [`Reply::Unsupported`] for recipes that the implementation does not support.
    #[serde(default)]
    pub quantizes: bool,
    /// Element types of the inputs; `None` if the program decides when a case is opened.
    #[serde(default)]
    pub dtypes: Option<Vec<Element>>,
    /// True if images and filters of convolutions have one row per pixel and one column per channel, in inputs and
    /// outputs.
    #[serde(default)]
    pub channels_last: bool,
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
    /// Recipe by which the implementation computes a model or a training pass.
    pub recipe: String,
    /// Scalars of foreign work, in the order of its definition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scalars: Vec<f64>,
    /// Memory that holds the buffers of all sets.
    pub memory: SharedMemory,
    /// Bytes of the memory.
    pub bytes: u64,
    /// Buffer sets. Launches rotate through the sets.
    pub sets: Vec<BufferSet>,
}

/// Memory that Calorimeter and the program share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedMemory {
    /// Path of a file that the program maps into its memory.
    File(String),
    /// Memory of a CUDA device: handle for `cuIpcOpenMemHandle`, as 128 hexadecimal digits.
    CudaIpc(String),
}

/// Inputs and outputs of one launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferSet {
    /// Inputs, in the order of the definition of the model or operator.
    pub inputs: Vec<Buffer>,
    /// Outputs. A launch writes every element.
    pub outputs: Vec<Buffer>,
}

/// Row-major matrix in the shared memory.
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
