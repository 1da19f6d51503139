//! CUDA backend: cuBLASLt, cuDNN, NCCL, and CUDA C++ kernels compiled by NVRTC.
//!
//! A [`CudaDevice`] owns one GPU and one stream; everything created from it runs on that stream in order. Kernels
//! ([`CudaKernel`]) and plans of several kernels ([`LinearPlan`], [`LayerPlan`] and others) are selected and
//! compiled at construction, so that `enqueue` only launches. A plan and its buffers must come from the same
//! [`CudaDevice`]; each launch checks this.

mod activation;
mod affine_layer_norm;
mod algorithm_cache;
mod algorithm_trial;
mod attention;
mod attention_quantize;
mod block_linear;
mod buffer;
mod checksum;
mod column_sums;
mod convolution;
mod convolution_spec;
mod cross_entropy;
mod cubin_cache;
#[allow(unsafe_code, reason = "the bindings of cuBLASLt")]
mod cublaslt;
#[allow(unsafe_code, reason = "the bindings of cuBLASLt")]
mod cublaslt_descriptor;
#[allow(unsafe_code, reason = "the bindings of cuBLASLt")]
mod cublaslt_handle;
#[allow(unsafe_code, reason = "the bindings of cuBLASLt")]
mod cublaslt_heuristic;
mod cuda_device;
#[allow(unsafe_code, reason = "the bindings of cuDNN")]
mod cudnn;
#[allow(unsafe_code, reason = "the bindings of cuDNN")]
mod cudnn_convolution;
#[allow(unsafe_code, reason = "loading a library runs its initializers")]
mod cudnn_functions;
mod dequantize_weight;
#[allow(unsafe_code, reason = "the bindings of the CUDA driver")]
mod driver;
mod elementwise;
mod epilogue_kernel;
mod error;
mod float8_linear;
mod float8_matmul;
mod float8_output;
#[allow(unsafe_code, reason = "launching a kernel")]
mod foreign_kernel;
mod gemm_spec;
mod gemv;
mod gpu;
mod grid_reduction;
mod halved_swiglu;
#[allow(unsafe_code, reason = "the bindings of the CUDA driver")]
mod im2col_tiles;
mod implicit_gemm;
mod input_fake_quantizer;
mod int4_gemm;
mod int8_fp8_gemm;
#[allow(unsafe_code, reason = "launching a kernel")]
mod kernel;
mod layer_norm;
mod layer_norm_gradient;
mod layer_plan;
mod layer_specs;
mod layers;
#[allow(unsafe_code, reason = "loading a library runs its initializers")]
mod libraries;
mod line_rotation;
mod linear;
mod linear_spec;
mod mx_fake_quantize;
#[allow(unsafe_code, reason = "the bindings of NCCL")]
mod nccl_group;
#[allow(unsafe_code, reason = "the bindings of NVRTC")]
mod nvrtc;
mod optimizer;
mod output_digest;
mod packed_gemm;
mod packed_weight;
mod pair_reduction;
mod persistent_rows;
#[allow(unsafe_code, reason = "pinned memory allocated by the driver")]
mod pinned_staging;
mod probe_kernel;
mod quantize;
mod quantize_blocks;
mod quantize_columns;
mod quantize_input;
mod quantize_rows;
mod quantize_rows_cols;
mod random_matrix;
mod rms_norm;
mod rms_norm_gradient;
mod row_tile;
mod scale_kernel;
mod short_attention;
mod short_attention_gradient;
mod silu_mul_gradient;
mod sizes;
mod smem_resident_rows;
mod softmax;
mod sparse_gemm;
mod streamed_gemm;
mod tiled_gemm;
#[allow(unsafe_code, reason = "the bindings of the CUDA driver")]
mod tma_tiles;
mod training_gemms;
#[allow(unsafe_code, reason = "pinned host memory for device copies")]
mod transfers;
mod transpose_bytes;
mod transpose_matrices;
mod transposed_b_gemm;

pub use crate::Float8Accumulation;
pub use crate::layer::LinearShape;
pub use affine_layer_norm::AffineNormVariant;
pub use attention::AttentionSpec;
pub use buffer::DeviceBuffer;
pub use convolution::ConvolutionPlan;
pub use convolution_spec::ConvolutionSpec;
pub use cuda_device::CudaDevice;
pub use driver::list_gpus;
pub use elementwise::ElementwiseFunction;
pub use error::NativeError;
pub use float8_linear::Float8LinearPlan;
pub use float8_matmul::Float8MatmulPlan;
pub use float8_output::Float8Output;
pub use foreign_kernel::{ForeignArgument, ForeignKernel, UserLaunchConfig};
pub use gemv::MatVecPlan;
pub use gpu::{ComputeCapability, DriverVersion, GpuInfo};
pub use kernel::CudaKernel;
pub use layer_norm::LAYER_NORM_EPSILON;
pub use layer_plan::{Cuda, LayerPlan, PrepackedWeight};
pub use layers::LAYER_KERNELS;
pub use libraries::{LibraryStatus, libraries};
pub use line_rotation::LineRotation;
pub use linear::LinearPlan;
pub use linear_spec::{Epilogue, InputLayout, LinearSpec, WeightLayout};
pub use mx_fake_quantize::MxBlockAxis;
pub use nccl_group::{NcclCollective, NcclGroup};
pub use optimizer::OptimizerRule;
pub use output_digest::{DeviceMatrix, SignedDigest};
pub use pair_reduction::PairReduction;
pub use quantize::ScaleSource;
pub use quantize_rows_cols::{Float8Dtype, Float8Format};
pub use random_matrix::{DeviceRandomMatrix, MagnitudeGains, RandomTables, ValueDistribution};
pub use rms_norm::RmsNormSpec;
pub use rms_norm_gradient::{ResidualGradient, RmsNormGradientPlan};
pub use short_attention::SHORT_ATTENTION_TOKENS;
pub use training_gemms::{TrainingGemm, TrainingGemmSpec, TrainingGemmsPlan};
pub use transfers::{HostMemory, HostMemoryKind, Transfers};
pub use transpose_matrices::BatchedTransposeSpec;
