//! Errors of the CUDA backend, with advice for the user.

use super::{ComputeCapability, DriverVersion, LinearShape};
use crate::Dtype;
use crate::layer::Rejection;

/// Error from the preparation or execution of a native kernel.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NativeError {
    /// A shared library could not be loaded.
    #[error("{file} was not found or could not be loaded (tried {tried}); {advice}")]
    LibraryMissing {
        /// Usual file name.
        file: &'static str,
        /// File names that were tried.
        tried: String,
        /// Advice for the user.
        advice: &'static str,
    },
    /// The installed driver is too old for the functions that are called.
    #[error("the NVIDIA driver supports CUDA {found}, but at least {needed} is required; update the driver")]
    DriverTooOld {
        /// CUDA version that the driver supports.
        found: DriverVersion,
        /// Minimum version.
        needed: DriverVersion,
    },
    /// No GPU with this ordinal is visible.
    #[error("CUDA device {ordinal} not found: {count} visible (CUDA_VISIBLE_DEVICES can hide devices)")]
    NoSuchDevice {
        /// Requested ordinal.
        ordinal: usize,
        /// Number of visible GPUs.
        count: usize,
    },
    /// The GPU is older than the feature requires.
    #[error("{what} requires compute capability {needed} or newer; {name} has {found}")]
    UnsupportedGpu {
        /// Feature.
        what: String,
        /// Minimum compute capability.
        needed: ComputeCapability,
        /// Compute capability of the GPU.
        found: ComputeCapability,
        /// Marketing name of the GPU.
        name: String,
    },
    /// The feature exists only on another GPU generation.
    #[error("{what} requires compute capability {needed}; {name} has {found}")]
    WrongGpuGeneration {
        /// Feature.
        what: String,
        /// Required compute capability.
        needed: ComputeCapability,
        /// Compute capability of the GPU.
        found: ComputeCapability,
        /// Marketing name of the GPU.
        name: String,
    },
    /// Device memory is exhausted.
    #[error("out of GPU memory: {asked} bytes requested, {free} bytes free; use a smaller shape or free buffers first")]
    OutOfMemory {
        /// Requested bytes.
        asked: usize,
        /// Free bytes right after the failed allocation.
        free: usize,
    },
    /// The CUDA driver rejected a call or reported a failure of earlier work.
    #[error("{doing} failed: {name} ({text})")]
    Driver {
        /// Action, as a noun.
        doing: &'static str,
        /// Name of the status, `CUDA_ERROR_…`.
        name: String,
        /// Description by the driver.
        text: String,
    },
    /// cuBLASLt rejected a call.
    #[error("{doing} failed: cuBLASLt returned {status}")]
    CublasLt {
        /// Action, as a noun.
        doing: String,
        /// Name of the status, `CUBLAS_STATUS_…`.
        status: String,
    },
    /// cuDNN rejected a call.
    #[error("{doing} failed: cuDNN returned {status}")]
    Cudnn {
        /// Action, as a noun.
        doing: &'static str,
        /// Name of the status, `CUDNN_STATUS_…`.
        status: String,
    },
    /// cuDNN offers no execution plan for a convolution.
    #[error("cuDNN has no plan for {convolution} within {workspace_bytes} bytes of workspace")]
    NoPlan {
        /// Description of the convolution.
        convolution: String,
        /// Workspace limit.
        workspace_bytes: usize,
    },
    /// NCCL rejected a call.
    #[error("{doing} failed: NCCL returned {status}")]
    Nccl {
        /// Action, as a noun.
        doing: &'static str,
        /// Name of the status, `nccl…`.
        status: String,
    },
    /// cuBLASLt has no algorithm for a matmul.
    #[error(
        "cuBLASLt has no {product} algorithm for {shape} within {workspace_bytes} bytes of workspace ({status}); \
         try row lengths (k, n) that are multiples of 16 bytes"
    )]
    NoAlgorithm {
        /// Dtypes and epilogue.
        product: String,
        /// Sizes.
        shape: LinearShape,
        /// Workspace limit.
        workspace_bytes: usize,
        /// Name of the status, `CUBLAS_STATUS_…`.
        status: String,
    },
    /// NVRTC could not compile a source of this crate.
    #[error("NVRTC could not compile {source_name} with {options}: {status}\n{log}")]
    Compile {
        /// Source file.
        source_name: &'static str,
        /// Compiler options.
        options: String,
        /// Name of the status, `NVRTC_ERROR_…`.
        status: String,
        /// Compiler log.
        log: String,
    },
    /// NVRTC could not compile a user's source, or the source does not contain the requested kernel.
    #[error("NVRTC could not compile {path} with {options}: {status}\n{log}")]
    CompileUserSource {
        /// Path of the source.
        path: String,
        /// Compiler options.
        options: String,
        /// Name of the status, `NVRTC_ERROR_…`.
        status: String,
        /// Compiler log.
        log: String,
    },
    /// A size is out of range.
    #[error("{what} must be between 1 and {limit}, not {value}")]
    InvalidSize {
        /// Name of the size.
        what: &'static str,
        /// Largest allowed value.
        limit: usize,
        /// Actual value.
        value: usize,
    },
    /// A matrix does not consist of whole blocks.
    #[error("invalid matrix size {rows} x {columns}: expected whole blocks of {side}")]
    PartialBlocks {
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        columns: usize,
        /// Block size along each blocked dimension.
        side: usize,
    },
    /// n or k of a weight is not a multiple of the block size.
    #[error("invalid weight size n={n}, k={k}: expected multiples of the block size {side}")]
    WeightBlockSize {
        /// Block size.
        side: usize,
        /// Row length.
        k: usize,
        /// Number of rows.
        n: usize,
    },
    /// The row length of a 2:4 sparse weight is not a multiple of 4.
    #[error("invalid k={k} for 2:4 sparsity: expected a multiple of 4")]
    SparseRowLength {
        /// Row length.
        k: usize,
    },
    /// Rows are not whole sequences of 16 tokens, or columns are not divisible by the number of heads.
    #[error(
        "invalid attention size: {rows} rows, {columns} columns, {heads} heads; expected a multiple of 16 rows and of heads columns"
    )]
    AttentionRows {
        /// Rows of all sequences.
        rows: usize,
        /// Columns of the output.
        columns: usize,
        /// Number of heads.
        heads: usize,
    },
    /// No kernel supports this head width.
    #[error("unsupported head width {width}: expected a multiple of 8 up to 128")]
    HeadWidth {
        /// Elements per position and head.
        width: usize,
    },
    /// A convolution has no output pixels or exceeds the limits of TMA.
    #[error("unsupported convolution: {convolution}: {why}")]
    UnsupportedConvolution {
        /// Description of the convolution.
        convolution: String,
        /// Violated limit.
        why: &'static str,
    },
    /// No kernel supports this dtype.
    #[error("{what} does not support {kind}")]
    UnsupportedDtype {
        /// Operation.
        what: &'static str,
        /// Dtype of the operands.
        kind: Dtype,
    },
    /// A buffer is smaller than the range that the operation accesses.
    #[error("buffer {what} holds {found} bytes, but the operation needs {needed}")]
    BufferSize {
        /// Name of the argument.
        what: &'static str,
        /// Bytes that the operation accesses.
        needed: usize,
        /// Bytes of the buffer.
        found: usize,
    },
    /// Buffer and plan belong to different devices.
    #[error("buffer {what} belongs to another device than the operation; allocate it on the same device")]
    DeviceMismatch {
        /// Name of the argument.
        what: &'static str,
    },
    /// No kernel computes a layer.
    #[error(transparent)]
    Rejected(Rejection),
    /// A weight was prepacked by a plan with another layout.
    #[error("the weight was prepacked for another plan; prepack it with the plan that multiplies it")]
    PlanMismatch,
    /// Wrong number of inputs.
    #[error("expected {needed} inputs, got {found}")]
    InputCount {
        /// Expected number.
        needed: usize,
        /// Actual number.
        found: usize,
    },
    /// Wrong number of outputs.
    #[error("expected {needed} outputs, got {found}")]
    OutputCount {
        /// Expected number.
        needed: usize,
        /// Actual number.
        found: usize,
    },
}

impl NativeError {
    /// Returns an error unless the number of inputs is as expected.
    pub(super) fn check_input_count(needed: usize, found: usize) -> Result<(), Self> {
        if needed == found { Ok(()) } else { Err(Self::InputCount { needed, found }) }
    }
}
