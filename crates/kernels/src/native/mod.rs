//! CUDA: cuBLASLt, and our own CUDA C++ compiled by NVRTC.
//!
//! A [`Machine`] is one GPU with one stream; everything made from it runs on that stream in the order it was enqueued.
//! Plans ([`Linear`], [`PackedLinear`], [`LayerNorm`], [`Quantize`] and the like) choose and compile when they are made, so that
//! `enqueue` only launches. A plan and the buffers it is given must come from the same machine; this is checked at each launch.

mod activation;
mod affine_layer_norm;
mod attended_rows;
mod attention;
mod block_linear;
#[allow(unsafe_code, reason = "the bindings of the CUDA driver")]
mod boxes;
mod buffer;
mod byte_product;
mod checksum;
mod circle;
mod column_sums;
mod convolution;
mod convolution_form;
mod cross_entropy;
#[allow(unsafe_code, reason = "the bindings of cuBLASLt")]
mod cublaslt;
mod cublaslt_choices;
#[allow(unsafe_code, reason = "the bindings of cuBLASLt")]
mod cublaslt_descriptor;
#[allow(unsafe_code, reason = "the bindings of cuBLASLt")]
mod cublaslt_handle;
#[allow(unsafe_code, reason = "the bindings of cuBLASLt")]
mod cublaslt_proposals;
mod cublaslt_trial;
#[allow(unsafe_code, reason = "the bindings of cuDNN")]
mod cudnn;
#[allow(unsafe_code, reason = "the bindings of cuDNN")]
mod cudnn_convolution;
#[allow(unsafe_code, reason = "loading a library runs its initializers")]
mod cudnn_functions;
#[allow(unsafe_code, reason = "the bindings of the CUDA driver")]
mod driver;
mod dynamic_linear;
mod elementwise;
mod error;
mod finish_product;
mod float8_form;
mod float8_linear;
mod float8_product;
#[allow(unsafe_code, reason = "launching a kernel")]
mod foreign_kernel;
mod form;
mod gpu;
mod grid_total;
mod half_byte_product;
mod halved_swiglu;
mod held_rows;
#[allow(unsafe_code, reason = "the bindings of the CUDA driver")]
mod image_boxes;
mod image_product;
mod kept_code;
#[allow(unsafe_code, reason = "launching a kernel")]
mod kernel;
mod layer_norm;
mod layer_norm_gradient;
#[allow(unsafe_code, reason = "loading a library runs its initializers")]
mod libraries;
mod line_codes;
mod linear;
mod linear_form;
mod look;
mod machine;
mod micro_numbers;
#[allow(unsafe_code, reason = "the bindings of NVRTC")]
mod nvrtc;
mod optimizer;
mod packed_form;
mod packed_linear;
mod packed_product;
mod pair_sum;
mod places;
mod probe_kernel;
mod quantize;
mod quantize_blocks;
mod quantize_columns;
mod quantize_input;
mod quantize_rows;
mod rms_norm;
mod rms_norm_gradient;
mod round_input;
mod row_cut;
mod rows_by_vector;
mod rows_in_turn;
mod scale_after;
mod short_attention;
mod short_attention_gradient;
mod silu_mul_gradient;
mod sizes;
mod softmax;
mod sparse_linear;
mod sparse_product;
#[allow(unsafe_code, reason = "the driver fills memory that Rust did not allocate")]
mod staged;
mod streamed_product;
#[allow(unsafe_code, reason = "the bindings of NCCL")]
mod team;
mod tiled_product;
mod trained_products;
#[allow(unsafe_code, reason = "memory that a device copies from and to")]
mod transfers;
mod transpose_bytes;
mod transpose_matrices;
mod turned_product;
mod unpack_weight;

pub use crate::Float8Sums;
pub use activation::Activation;
pub use affine_layer_norm::{AffineLayerNorm, NormForm};
pub use attention::{Attention, AttentionForm};
pub use block_linear::{BlockForm, BlockLinear, BlockWeight};
pub use buffer::Buffer;
pub use circle::Circle;
pub use convolution::Convolution;
pub use convolution_form::ConvolutionForm;
pub use cross_entropy::CrossEntropy;
pub use driver::probe;
pub use dynamic_linear::DynamicLinear;
pub use elementwise::{Elementwise, ElementwiseFunction};
pub use error::NativeError;
pub use float8_form::Float8Output;
pub use float8_linear::Float8Linear;
pub use float8_product::Float8Product;
pub use foreign_kernel::{ForeignArgument, ForeignKernel, LaunchForm};
pub use gpu::{ComputeCapability, DriverVersion, GpuInfo};
pub use halved_swiglu::HalvedSwiglu;
pub use layer_norm::LayerNorm;
pub use layer_norm_gradient::LayerNormGradient;
pub use libraries::{LibraryStatus, libraries};
pub use line_codes::{Float8Codes, LineFormat};
pub use linear::Linear;
pub use linear_form::{Epilogue, InputLayout, LinearForm, LinearShape, WeightLayout};
pub use look::{DeviceMatrix, SignedSum};
pub use machine::Machine;
pub use micro_numbers::{MicroBlocks, MicroNumbers};
pub use optimizer::{OptimizerRule, OptimizerStep};
pub use packed_form::PackedWeight;
pub use packed_linear::{PackedLinear, ReadyWeight};
pub use pair_sum::{PairFunction, PairSum};
pub use places::{PlaceGains, Places, Spread, Tables};
pub(crate) use probe_kernel::ProbeKernel;
pub use quantize::{Quantize, ScaleSource};
pub use rms_norm::{RmsForm, RmsNorm};
pub use rms_norm_gradient::{Past, RmsNormGradient};
pub use rows_by_vector::RowsByVector;
pub use short_attention::ShortAttention;
pub use short_attention_gradient::ShortAttentionGradient;
pub use silu_mul_gradient::SiluMulGradient;
pub use softmax::Softmax;
pub use sparse_linear::{ReadySparse, SparseLinear, SparseWeight};
pub use team::{Collective, Team};
pub use trained_products::{TrainedForm, TrainedProduct, TrainedProducts};
pub use transfers::{HostKind, HostMemory, Transfers};
pub use transpose_bytes::TransposeBytes;
pub use transpose_matrices::{MatricesForm, TransposeMatrices};
