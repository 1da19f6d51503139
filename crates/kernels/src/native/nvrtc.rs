//! Compilation of CUDA C++ by NVRTC.

use std::{
    ffi::{CStr, CString, c_char},
    path::{Path, PathBuf},
    ptr,
};

use cudarc::nvrtc::{
    result::{self, NvrtcError},
    sys,
};

use super::{ComputeCapability, NativeError, checksum::checksum, libraries::CudaLibrary};

/// CUDA C++ files of this crate. A closed set, because the safety of a launch depends on their content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum CudaSource {
    LayerNorm,
    Activation,
    BandwidthProbe,
    Spin,
    QuantizeRows,
    QuantizeColumns,
    QuantizeColumnsTiled,
    QuantizeBlocks,
    MxFakeQuantize,
    TransposeBytes,
    Elementwise,
    ScaleEpilogue,
    TransposedBGemm,
    PackedWeightGemm,
    PersistentInt4WeightGemm,
    TileWeight,
    WgmmaPackedWeightGemm,
    DequantizeWeight,
    QuantizeInput,
    TensorAmax,
    SmemResidentRows,
    FakeQuantizeInput,
    QuantizedGemmEpilogue,
    Int8Fp8Gemm,
    Int4Gemm,
    Int4ToInt8,
    ReorderSparseWeight,
    SparseGemm,
    SparseToDense,
    BlockSparseGemm,
    BlockSparseGemmSimt,
    PairReduction,
    CrossEntropy,
    Swiglu,
    SiluMulGradient,
    RmsNorm,
    RmsNormGradient,
    LayerNormGradient,
    ColumnSums,
    Gemv,
    AffineLayerNorm,
    Softmax,
    ShortAttention,
    ShortAttentionMma,
    ShortAttentionQuantize,
    ShortAttentionGradient,
    Attention,
    AmaxRowsCols,
    QuantizeRowsCols,
    Optimizer,
    RotateRows,
    ImplicitGemmConv,
    TransposeMatrices,
    RandomMatrix,
    OutputDigest,
}

impl CudaSource {
    fn name(self) -> &'static str {
        match self {
            Self::LayerNorm => "layer_norm.cu",
            Self::Activation => "activation.cu",
            Self::BandwidthProbe => "bandwidth_probe.cu",
            Self::Spin => "spin.cu",
            Self::QuantizeRows => "quantize_rows.cu",
            Self::QuantizeColumns => "quantize_columns.cu",
            Self::QuantizeColumnsTiled => "quantize_columns_tiled.cu",
            Self::QuantizeBlocks => "quantize_blocks.cu",
            Self::MxFakeQuantize => "mx_fake_quantize.cu",
            Self::TransposeBytes => "transpose_bytes.cu",
            Self::Elementwise => "elementwise.cu",
            Self::ScaleEpilogue => "scale_epilogue.cu",
            Self::TransposedBGemm => "transposed_b_gemm.cu",
            Self::PackedWeightGemm => "packed_weight_gemm.cu",
            Self::PersistentInt4WeightGemm => "persistent_int4_weight_gemm.cu",
            Self::TileWeight => "tile_weight.cu",
            Self::WgmmaPackedWeightGemm => "wgmma_packed_weight_gemm.cu",
            Self::DequantizeWeight => "dequantize_weight.cu",
            Self::QuantizeInput => "quantize_input.cu",
            Self::TensorAmax => "tensor_amax.cu",
            Self::SmemResidentRows => "smem_resident_rows.cu",
            Self::FakeQuantizeInput => "fake_quantize_input.cu",
            Self::QuantizedGemmEpilogue => "quantized_gemm_epilogue.cu",
            Self::Int8Fp8Gemm => "int8_fp8_gemm.cu",
            Self::Int4Gemm => "int4_gemm.cu",
            Self::Int4ToInt8 => "int4_to_int8.cu",
            Self::ReorderSparseWeight => "reorder_sparse_weight.cu",
            Self::SparseGemm => "sparse_gemm.cu",
            Self::SparseToDense => "sparse_to_dense.cu",
            Self::BlockSparseGemm => "block_sparse_gemm.cu",
            Self::BlockSparseGemmSimt => "block_sparse_gemm_simt.cu",
            Self::PairReduction => "pair_reduction.cu",
            Self::CrossEntropy => "cross_entropy.cu",
            Self::Swiglu => "swiglu.cu",
            Self::SiluMulGradient => "silu_mul_gradient.cu",
            Self::RmsNorm => "rms_norm.cu",
            Self::RmsNormGradient => "rms_norm_gradient.cu",
            Self::LayerNormGradient => "layer_norm_gradient.cu",
            Self::ColumnSums => "column_sums.cu",
            Self::Gemv => "gemv.cu",
            Self::AffineLayerNorm => "affine_layer_norm.cu",
            Self::Softmax => "softmax.cu",
            Self::ShortAttention => "short_attention.cu",
            Self::ShortAttentionMma => "short_attention_mma.cu",
            Self::ShortAttentionQuantize => "short_attention_quantize.cu",
            Self::ShortAttentionGradient => "short_attention_gradient.cu",
            Self::Attention => "attention.cu",
            Self::AmaxRowsCols => "amax_rows_cols.cu",
            Self::QuantizeRowsCols => "quantize_rows_cols.cu",
            Self::Optimizer => "optimizer.cu",
            Self::RotateRows => "rotate_rows.cu",
            Self::ImplicitGemmConv => "implicit_gemm_conv.cu",
            Self::TransposeMatrices => "transpose_matrices.cu",
            Self::RandomMatrix => "random_matrix.cu",
            Self::OutputDigest => "output_digest.cu",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::LayerNorm => include_str!("cuda/layer_norm.cu"),
            Self::Activation => include_str!("cuda/activation.cu"),
            Self::BandwidthProbe => include_str!("cuda/bandwidth_probe.cu"),
            Self::Spin => include_str!("cuda/spin.cu"),
            Self::QuantizeRows => include_str!("cuda/quantize_rows.cu"),
            Self::QuantizeColumns => include_str!("cuda/quantize_columns.cu"),
            Self::QuantizeColumnsTiled => include_str!("cuda/quantize_columns_tiled.cu"),
            Self::QuantizeBlocks => include_str!("cuda/quantize_blocks.cu"),
            Self::MxFakeQuantize => include_str!("cuda/mx_fake_quantize.cu"),
            Self::TransposeBytes => include_str!("cuda/transpose_bytes.cu"),
            Self::Elementwise => include_str!("cuda/elementwise.cu"),
            Self::ScaleEpilogue => include_str!("cuda/scale_epilogue.cu"),
            Self::TransposedBGemm => include_str!("cuda/transposed_b_gemm.cu"),
            Self::PackedWeightGemm => include_str!("cuda/packed_weight_gemm.cu"),
            Self::PersistentInt4WeightGemm => include_str!("cuda/persistent_int4_weight_gemm.cu"),
            Self::TileWeight => include_str!("cuda/tile_weight.cu"),
            Self::WgmmaPackedWeightGemm => include_str!("cuda/wgmma_packed_weight_gemm.cu"),
            Self::DequantizeWeight => include_str!("cuda/dequantize_weight.cu"),
            Self::QuantizeInput => include_str!("cuda/quantize_input.cu"),
            Self::TensorAmax => include_str!("cuda/tensor_amax.cu"),
            Self::SmemResidentRows => include_str!("cuda/smem_resident_rows.cu"),
            Self::FakeQuantizeInput => include_str!("cuda/fake_quantize_input.cu"),
            Self::QuantizedGemmEpilogue => include_str!("cuda/quantized_gemm_epilogue.cu"),
            Self::Int8Fp8Gemm => include_str!("cuda/int8_fp8_gemm.cu"),
            Self::Int4Gemm => include_str!("cuda/int4_gemm.cu"),
            Self::Int4ToInt8 => include_str!("cuda/int4_to_int8.cu"),
            Self::ReorderSparseWeight => include_str!("cuda/reorder_sparse_weight.cu"),
            Self::SparseGemm => include_str!("cuda/sparse_gemm.cu"),
            Self::SparseToDense => include_str!("cuda/sparse_to_dense.cu"),
            Self::BlockSparseGemm => include_str!("cuda/block_sparse_gemm.cu"),
            Self::BlockSparseGemmSimt => include_str!("cuda/block_sparse_gemm_simt.cu"),
            Self::PairReduction => include_str!("cuda/pair_reduction.cu"),
            Self::CrossEntropy => include_str!("cuda/cross_entropy.cu"),
            Self::Swiglu => include_str!("cuda/swiglu.cu"),
            Self::SiluMulGradient => include_str!("cuda/silu_mul_gradient.cu"),
            Self::RmsNorm => include_str!("cuda/rms_norm.cu"),
            Self::RmsNormGradient => include_str!("cuda/rms_norm_gradient.cu"),
            Self::LayerNormGradient => include_str!("cuda/layer_norm_gradient.cu"),
            Self::ColumnSums => include_str!("cuda/column_sums.cu"),
            Self::Gemv => include_str!("cuda/gemv.cu"),
            Self::AffineLayerNorm => include_str!("cuda/affine_layer_norm.cu"),
            Self::Softmax => include_str!("cuda/softmax.cu"),
            Self::ShortAttention => include_str!("cuda/short_attention.cu"),
            Self::ShortAttentionMma => include_str!("cuda/short_attention_mma.cu"),
            Self::ShortAttentionQuantize => include_str!("cuda/short_attention_quantize.cu"),
            Self::ShortAttentionGradient => include_str!("cuda/short_attention_gradient.cu"),
            Self::Attention => include_str!("cuda/attention.cu"),
            Self::AmaxRowsCols => include_str!("cuda/amax_rows_cols.cu"),
            Self::QuantizeRowsCols => include_str!("cuda/quantize_rows_cols.cu"),
            Self::Optimizer => include_str!("cuda/optimizer.cu"),
            Self::RotateRows => include_str!("cuda/rotate_rows.cu"),
            Self::ImplicitGemmConv => include_str!("cuda/implicit_gemm_conv.cu"),
            Self::TransposeMatrices => include_str!("cuda/transpose_matrices.cu"),
            Self::RandomMatrix => include_str!("cuda/random_matrix.cu"),
            Self::OutputDigest => include_str!("cuda/output_digest.cu"),
        }
    }
}

/// Headers by name.
const HEADERS: [(&CStr, &str); 24] = [
    (c"element.cuh", include_str!("cuda/element.cuh")),
    (c"mma_attention16.cuh", include_str!("cuda/mma_attention16.cuh")),
    (c"mma16.cuh", include_str!("cuda/mma16.cuh")),
    (c"hopper.cuh", include_str!("cuda/hopper.cuh")),
    (c"activations.cuh", include_str!("cuda/activations.cuh")),
    (c"norm_weight.cuh", include_str!("cuda/norm_weight.cuh")),
    (c"activation_grad.cuh", include_str!("cuda/activation_grad.cuh")),
    (c"row_statistics.cuh", include_str!("cuda/row_statistics.cuh")),
    (c"row_reduce.cuh", include_str!("cuda/row_reduce.cuh")),
    (c"online_softmax.cuh", include_str!("cuda/online_softmax.cuh")),
    (c"grid_reduce.cuh", include_str!("cuda/grid_reduce.cuh")),
    (c"bf16x2.cuh", include_str!("cuda/bf16x2.cuh")),
    (c"e4m3.cuh", include_str!("cuda/e4m3.cuh")),
    (c"input_row.cuh", include_str!("cuda/input_row.cuh")),
    (c"dynamic_quant.cuh", include_str!("cuda/dynamic_quant.cuh")),
    (c"grid_amax.cuh", include_str!("cuda/grid_amax.cuh")),
    (c"output_dtype.cuh", include_str!("cuda/output_dtype.cuh")),
    (c"packed_weight.cuh", include_str!("cuda/packed_weight.cuh")),
    (c"split_k.cuh", include_str!("cuda/split_k.cuh")),
    (c"float8_quant.cuh", include_str!("cuda/float8_quant.cuh")),
    (c"tiled_weight.cuh", include_str!("cuda/tiled_weight.cuh")),
    (c"int4_weight.cuh", include_str!("cuda/int4_weight.cuh")),
    (c"sparse_weight.cuh", include_str!("cuda/sparse_weight.cuh")),
    (c"dequantize_pairs.cuh", include_str!("cuda/dequantize_pairs.cuh")),
];

/// Compiles to machine code instead of PTX, so that a driver older than the compiler can load it.
///
/// `macros` are definitions such as `WIDTH=8`.
pub(super) fn compile(
    source: CudaSource,
    target: ComputeCapability,
    macros: &[String],
) -> Result<Vec<u8>, NativeError> {
    CudaLibrary::Nvrtc.require()?;
    let options = compile_options(source, target, macros);
    let failed = |status: NvrtcError, log: String| NativeError::Compile {
        source_name: source.name(),
        options: options.join(" "),
        status: status.to_string(),
        log,
    };
    let program = NvrtcProgram::create(source).map_err(|status| failed(status, String::new()))?;
    program.compile(&options).map_err(|status| failed(status, program.log()))?;
    program.machine_code().map_err(|status| failed(status, program.log()))
}

fn compile_options(source: CudaSource, target: ComputeCapability, macros: &[String]) -> Vec<String> {
    // Architecture-specific features such as wgmma require the suffix `a`.
    let suffix = match source {
        CudaSource::Attention
        | CudaSource::WgmmaPackedWeightGemm
        | CudaSource::ImplicitGemmConv
        | CudaSource::Int8Fp8Gemm
        | CudaSource::TransposedBGemm => "a",
        _ => "",
    };
    let mut options = vec![format!("--gpu-architecture={}{suffix}", target.target()), "--std=c++17".to_string()];
    options.extend(macros.iter().map(|definition| format!("-D{definition}")));
    options
}

/// Cache key with everything that determines the machine code: compiler version, options, and the text of source and
/// headers.
pub(super) fn cache_key(
    source: CudaSource,
    target: ComputeCapability,
    macros: &[String],
) -> Result<String, NativeError> {
    CudaLibrary::Nvrtc.require()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: writes two integers through valid pointers.
    let asked = unsafe { sys::nvrtcVersion(&mut major, &mut minor) }.result();
    let options = compile_options(source, target, macros).join(" ");
    asked.map_err(|status| NativeError::Compile {
        source_name: source.name(),
        options: options.clone(),
        status: status.to_string(),
        log: String::new(),
    })?;
    let headers = HEADERS.iter().flat_map(|(_, text)| text.bytes());
    let texts = checksum(source.text().bytes().chain(headers));
    Ok(format!("{} by NVRTC {major}.{minor} {options} of {texts:016x}", source.name()))
}

/// Compiles a user's source; returns the machine code and the lowered name of the kernel `entry`.
pub(super) fn compile_foreign(
    path: &str,
    text: &str,
    entry: &str,
    target: ComputeCapability,
) -> Result<(Vec<u8>, String), NativeError> {
    CudaLibrary::Nvrtc.require()?;
    let mut options = vec![format!("--gpu-architecture={}", target.target()), "--std=c++17".to_string()];
    options.extend(include_folders(path).iter().map(|folder| format!("--include-path={}", folder.display())));
    let failed = |status: &dyn std::fmt::Display, log: String| NativeError::CompileUserSource {
        path: path.to_string(),
        options: options.join(" "),
        status: status.to_string(),
        log,
    };
    let zero_byte = |what: &str| failed(&format!("{what} contains a NUL byte"), String::new());
    let source = CString::new(text).map_err(|_| zero_byte("the source"))?;
    let name = CString::new(path).map_err(|_| zero_byte("the path"))?;
    let entry = CString::new(entry).map_err(|_| zero_byte("the name of the kernel"))?;
    if options.iter().any(|option| option.contains('\0')) {
        return Err(zero_byte("a folder of headers"));
    }
    let program =
        NvrtcProgram::with_headers(&source, &name, &[], &[]).map_err(|status| failed(&status, String::new()))?;
    program.register_kernel(&entry).map_err(|status| failed(&status, program.log()))?;
    program.compile(&options).map_err(|status| failed(&status, program.log()))?;
    let lowered = program.lowered_name(&entry).map_err(|status| failed(&status, program.log()))?;
    let code = program.machine_code().map_err(|status| failed(&status, program.log()))?;
    Ok((code, lowered))
}

/// Search path for headers of a user's source: its own folder and the CUDA toolkit.
fn include_folders(path: &str) -> Vec<PathBuf> {
    let source_folder = Path::new(path).parent().map(Path::to_path_buf);
    let toolkit_roots = ["CUDA_PATH", "CUDA_HOME"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let cuda = toolkit_roots.chain([PathBuf::from("/usr/local/cuda")]).map(|root| root.join("include"));
    source_folder.into_iter().chain(cuda).filter(|folder| folder.is_dir()).collect()
}

/// NVRTC program, destroyed on drop.
struct NvrtcProgram {
    raw: sys::nvrtcProgram,
}

impl NvrtcProgram {
    fn create(source: CudaSource) -> Result<Self, NvrtcError> {
        let headers = HEADERS.map(|(_, text)| c_string(text));
        let (texts, names) = (headers.each_ref().map(|text| text.as_ptr()), HEADERS.map(|(name, _)| name.as_ptr()));
        Self::with_headers(&c_string(source.text()), &c_string(source.name()), &texts, &names)
    }

    /// Creates a program with headers; `headers` and `header_names` have equal length.
    fn with_headers(
        text: &CStr,
        name: &CStr,
        headers: &[*const c_char],
        header_names: &[*const c_char],
    ) -> Result<Self, NvrtcError> {
        assert_eq!(headers.len(), header_names.len(), "one name per header");
        let mut raw = ptr::null_mut();
        // SAFETY: every string is NUL-terminated and outlives the call, which copies it; `headers` and `header_names`
        // have the length passed; `raw` is used only if the call succeeded.
        unsafe {
            sys::nvrtcCreateProgram(
                &mut raw,
                text.as_ptr(),
                name.as_ptr(),
                headers.len() as i32,
                headers.as_ptr(),
                header_names.as_ptr(),
            )
        }
        .result()?;
        Ok(Self { raw })
    }

    /// Registers the kernel before compilation; it may be in a namespace or an instance of a template.
    fn register_kernel(&self, entry: &CStr) -> Result<(), NvrtcError> {
        // SAFETY: `raw` is a live program, and the string is NUL-terminated; the call copies it.
        unsafe { sys::nvrtcAddNameExpression(self.raw, entry.as_ptr()) }.result()
    }

    /// Returns the mangled name of a registered kernel.
    fn lowered_name(&self, entry: &CStr) -> Result<String, NvrtcError> {
        let mut lowered = ptr::null();
        // SAFETY: `raw` is a live, compiled program; on success the text is NUL-terminated and lives as long as the
        // program.
        unsafe {
            sys::nvrtcGetLoweredName(self.raw, entry.as_ptr(), &mut lowered).result()?;
            Ok(CStr::from_ptr(lowered).to_string_lossy().into_owned())
        }
    }

    fn compile(&self, options: &[String]) -> Result<(), NvrtcError> {
        // SAFETY: `raw` is a live program. The call panics on an option with a NUL byte; these options have none.
        unsafe { result::compile_program(self.raw, options) }
    }

    fn log(&self) -> String {
        // SAFETY: `raw` is a live program.
        let bytes = unsafe { result::get_program_log(self.raw) }.unwrap_or_default();
        let bytes: Vec<u8> = bytes.into_iter().map(|byte: c_char| byte as u8).collect();
        String::from_utf8_lossy(&bytes).trim_end_matches(['\0', '\n']).to_string()
    }

    fn machine_code(&self) -> Result<Vec<u8>, NvrtcError> {
        let mut len = 0;
        // SAFETY: `raw` is a live program, and the second call writes exactly the number of bytes that the first one
        // returned.
        unsafe {
            sys::nvrtcGetCUBINSize(self.raw, &mut len).result()?;
            let mut code = vec![0u8; len];
            sys::nvrtcGetCUBIN(self.raw, code.as_mut_ptr().cast()).result()?;
            Ok(code)
        }
    }
}

impl Drop for NvrtcProgram {
    fn drop(&mut self) {
        // SAFETY: created by `create` and destroyed once. An error cannot be handled here.
        let _ = unsafe { sys::nvrtcDestroyProgram(&mut self.raw) };
    }
}

/// Converts text that is part of this crate.
fn c_string(text: &str) -> CString {
    CString::new(text).expect("sources and names contain no NUL byte")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Compiles for Hopper, without requiring a GPU.
    pub(in crate::native) fn assert_compiles(source: CudaSource, macros: &[String]) {
        let hopper = ComputeCapability { major: 9, minor: 0 };
        let image = compile(source, hopper, macros).unwrap_or_else(|error| panic!("{error}"));
        assert!(image.starts_with(b"\x7fELF"));
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn user_source_is_compiled_for_the_named_kernel() {
        let source =
            "template <class T> __global__ void add(const T *a, T *b, unsigned long long n) { b[0] = a[0] + T(n); }";
        let hopper = ComputeCapability { major: 9, minor: 0 };
        let compiled = compile_foreign("add.cu", source, "add<float>", hopper);
        let (image, name) = compiled.unwrap();
        assert!(image.starts_with(b"\x7fELF") && name.contains("add"), "{name}");
        let error = compile_foreign("add.cu", source, "sub", hopper).unwrap_err().to_string();
        assert!(error.contains("add.cu") && error.contains("sub"), "{error}");
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn cache_key_covers_everything_that_affects_code() {
        let of = |source, minor, macros: &[&str]| {
            let macros: Vec<String> = macros.iter().map(|&text| text.to_owned()).collect();
            cache_key(source, ComputeCapability { major: 9, minor }, &macros)
        };
        let all = [
            of(CudaSource::Spin, 0, &[]),
            of(CudaSource::Spin, 1, &[]),
            of(CudaSource::Spin, 0, &["A=1"]),
            of(CudaSource::Spin, 0, &["A=1", "B=1"]),
            of(CudaSource::BandwidthProbe, 0, &[]),
        ];
        let all: Vec<String> = all.into_iter().map(Result::unwrap).collect();
        let mut distinct = all.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), all.len(), "{all:?}");
        assert_eq!(of(CudaSource::Spin, 0, &[]).unwrap(), all[0]);
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn compile_error_carries_the_log() {
        let macros = ["KERNEL=f", "WIDTH=1", "THREADS=32", "VECTORS_PER_THREAD=1", "ACTIVATE=relu"].map(String::from);
        let error = compile(CudaSource::Activation, ComputeCapability { major: 9, minor: 0 }, &macros).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("activation.cu") && text.contains("NVRTC_ERROR_COMPILATION"), "{text}");
        assert!(text.contains("element.cuh"), "the log names the header: {text}");
    }
}
