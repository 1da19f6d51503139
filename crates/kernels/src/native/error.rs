//! What can go wrong, in sentences for the person who can act.

use super::{ComputeCapability, DriverVersion, LinearShape};
use crate::Dtype;

/// Why a native kernel could not be prepared or run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NativeError {
    /// A shared library could not be loaded.
    #[error("{file} was not found or could not be loaded (tried {tried}); {advice}")]
    LibraryMissing {
        /// Usual name of the file.
        file: &'static str,
        /// The names that were tried.
        tried: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// The installed driver lacks functions that are called here.
    #[error("the NVIDIA driver supports CUDA {found}, but at least {needed} is needed; update the driver")]
    DriverTooOld {
        /// What the driver supports.
        found: DriverVersion,
        /// What is needed.
        needed: DriverVersion,
    },
    /// There is no GPU with that number.
    #[error("there is no CUDA device {ordinal}: {count} visible (CUDA_VISIBLE_DEVICES can hide devices)")]
    NoSuchDevice {
        /// The number asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// The GPU is too old for what is asked of it.
    #[error("{what} needs a GPU of compute capability {needed} or newer, and {name} has {found}")]
    UnsupportedGpu {
        /// What it cannot do.
        what: &'static str,
        /// The oldest that can.
        needed: ComputeCapability,
        /// What it has.
        found: ComputeCapability,
        /// Its marketing name.
        name: String,
    },
    /// The GPU is of another generation than the one that has what is asked of it.
    #[error("{what} needs a GPU of compute capability {needed}, and {name} has {found}")]
    OtherGpu {
        /// What it cannot do.
        what: &'static str,
        /// The one that can.
        needed: ComputeCapability,
        /// What it has.
        found: ComputeCapability,
        /// Its marketing name.
        name: String,
    },
    /// The GPU has no room for a buffer.
    #[error("out of GPU memory: {asked} bytes asked, {free} bytes free; use a smaller shape or free buffers first")]
    OutOfMemory {
        /// Bytes asked for.
        asked: usize,
        /// Bytes that were free just after the refusal.
        free: usize,
    },
    /// The CUDA driver refused a call, or reports that earlier work failed.
    #[error("{doing} failed: {name} ({text})")]
    Driver {
        /// The action, as a noun.
        doing: &'static str,
        /// Name of the status, `CUDA_ERROR_…`.
        name: String,
        /// The driver's own description.
        text: String,
    },
    /// cuBLASLt refused a call.
    #[error("{doing} failed: cuBLASLt answered {status}")]
    CublasLt {
        /// The action, as a noun.
        doing: String,
        /// Name of the status, `CUBLAS_STATUS_…`.
        status: String,
    },
    /// cuDNN refused a call.
    #[error("{doing} failed: cuDNN answered {status}")]
    Cudnn {
        /// The action, as a noun.
        doing: &'static str,
        /// Name of the status, `CUDNN_STATUS_…`.
        status: String,
    },
    /// cuDNN has no plan for a convolution.
    #[error("cuDNN has no plan for {convolution} within {workspace_bytes} bytes of workspace")]
    NoPlan {
        /// What is computed.
        convolution: String,
        /// The limit on workspace.
        workspace_bytes: usize,
    },
    /// NCCL refused a call.
    #[error("{doing} failed: NCCL answered {status}")]
    Nccl {
        /// The action, as a noun.
        doing: &'static str,
        /// Name of the status, `nccl…`.
        status: String,
    },
    /// cuBLASLt has no algorithm for a product.
    #[error(
        "cuBLASLt has no {product} algorithm for {shape} within {workspace_bytes} bytes of workspace ({status}); \
         try row lengths (k, n) that are multiples of 16 bytes"
    )]
    NoAlgorithm {
        /// The element types.
        product: String,
        /// The sizes.
        shape: LinearShape,
        /// The limit on workspace.
        workspace_bytes: usize,
        /// Name of the status, `CUBLAS_STATUS_…`.
        status: String,
    },
    /// NVRTC did not accept one of our sources.
    #[error("NVRTC could not compile {source_name} with {options}: {status}\n{log}")]
    Compile {
        /// File of the source.
        source_name: &'static str,
        /// Options of the compiler.
        options: String,
        /// Name of the status, `NVRTC_ERROR_…`.
        status: String,
        /// What the compiler wrote.
        log: String,
    },
    /// NVRTC did not accept a source that is not ours, or did not find the kernel that was named.
    #[error("NVRTC could not compile {path} with {options}: {status}\n{log}")]
    CompileForeign {
        /// The file.
        path: String,
        /// Options of the compiler.
        options: String,
        /// Name of the status, `NVRTC_ERROR_…`.
        status: String,
        /// What the compiler wrote.
        log: String,
    },
    /// A shape that means nothing.
    #[error("{what} must be between 1 and {limit}, not {value}")]
    InvalidSize {
        /// Which size.
        what: &'static str,
        /// The largest allowed value.
        limit: usize,
        /// What was given.
        value: usize,
    },
    /// Groups of codes that kernels would read across.
    #[error(
        "groups of {group} codes of {bits} bits of a packed weight do not fill whole words; a multiple of 32 would"
    )]
    InvalidGroup {
        /// Codes in a group.
        group: usize,
        /// Bits of a code.
        bits: usize,
    },
    /// Codes of a packed weight that no kernel of ours is made for.
    #[error("a packed weight of {codes} has no kernel")]
    WeightCodes {
        /// What they are.
        codes: String,
    },
    /// A matrix that is not made of whole blocks.
    #[error("a matrix of {rows} x {columns} is not made of whole blocks of {side}")]
    NotWholeBlocks {
        /// Its rows.
        rows: usize,
        /// Numbers of a row.
        columns: usize,
        /// Numbers of a block along each direction that it has.
        side: usize,
    },
    /// A weight that is no whole number of blocks.
    #[error("blocks of {side} by {side} need n and k to be multiples of {side}; they are {n} and {k}")]
    NotInBlocks {
        /// Side of a block.
        side: usize,
        /// Length of a row.
        k: usize,
        /// Number of rows.
        n: usize,
    },
    /// Rows that are no whole number of fours.
    #[error("two of every four numbers along k are kept; k is {k}, and a multiple of 4 would do")]
    NotInFours {
        /// Length of a row.
        k: usize,
    },
    /// Tokens that are no whole number of sequences, or that heads do not divide.
    #[error(
        "attention needs whole sequences of 16 rows and whole heads, not {rows} rows of {columns} numbers in {heads} heads"
    )]
    NotInSequences {
        /// Rows of all sequences.
        rows: usize,
        /// Numbers of a row of the output.
        columns: usize,
        /// Heads of a row.
        heads: usize,
    },
    /// Heads that no kernel of ours is made for.
    #[error("heads of {width} numbers are not supported; a multiple of 8 up to 128 is")]
    HeadWidth {
        /// Numbers of a position in one head.
        width: usize,
    },
    /// A convolution without pixels, or one that cannot be copied.
    #[error("{convolution} is not supported: {why}")]
    ConvolutionForm {
        /// What was asked for.
        convolution: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Numbers that an operation is not made for.
    #[error("{what} is not made for {kind}")]
    NumberType {
        /// What.
        what: &'static str,
        /// The type of its numbers.
        kind: Dtype,
    },
    /// A buffer does not hold what the operation touches.
    #[error("buffer {what} holds {found} bytes, but the operation needs {needed}")]
    BufferSize {
        /// Which argument.
        what: &'static str,
        /// Bytes that the operation touches.
        needed: usize,
        /// Bytes that the buffer holds.
        found: usize,
    },
    /// A buffer was allocated on another machine than the plan it is given to.
    #[error("buffer {what} belongs to another Machine than the operation; allocate it on the same one")]
    OtherMachine {
        /// Which argument.
        what: &'static str,
    },
    /// A weight was made ready by a plan that takes it in another order.
    #[error("the weight was made ready for another plan; make it ready by the one that multiplies it")]
    OtherPlan,
    /// An operation was given more or fewer inputs than it has.
    #[error("the operation takes {needed} inputs, not {found}")]
    InputCount {
        /// How many it has.
        needed: usize,
        /// How many were given.
        found: usize,
    },
    /// An operation was given more or fewer outputs than it has.
    #[error("the operation has {needed} outputs, not {found}")]
    OutputCount {
        /// How many it has.
        needed: usize,
        /// How many were given.
        found: usize,
    },
}

impl NativeError {
    /// An operation takes as many inputs as were given.
    pub(super) fn unless_inputs(needed: usize, found: usize) -> Result<(), Self> {
        if needed == found { Ok(()) } else { Err(Self::InputCount { needed, found }) }
    }
}
