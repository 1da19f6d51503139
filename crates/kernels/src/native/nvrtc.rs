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

/// Defines `CudaSource` from rows of variant and file. `(since X)` names the first compute capability that the file
/// supports, `(only X)` the only one: these files use architecture-specific features such as wgmma.
macro_rules! sources {
    (@needed) => { (ComputeCapability::ANY, false) };
    (@needed since $first:ident) => { (ComputeCapability::$first, false) };
    (@needed only $only:ident) => { (ComputeCapability::$only, true) };
    ($($source:ident => $file:literal $(($($needed:ident)+))?,)*) => {
        /// CUDA C++ files of this crate. A closed set, because the safety of a launch depends on their content.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(super) enum CudaSource {
            $($source,)*
        }

        impl CudaSource {
            pub(super) fn name(self) -> &'static str {
                match self {
                    $(Self::$source => $file,)*
                }
            }

            fn text(self) -> &'static str {
                match self {
                    $(Self::$source => include_str!(concat!("cuda/", $file)),)*
                }
            }

            /// Minimum compute capability, and true if it is the only supported one.
            pub(super) fn required_gpu(self) -> (ComputeCapability, bool) {
                match self {
                    $(Self::$source => sources!(@needed $($($needed)+)?),)*
                }
            }
        }
    };
}

sources! {
    LayerNorm => "layer_norm.cu",
    Activation => "activation.cu",
    BandwidthProbe => "bandwidth_probe.cu",
    Spin => "spin.cu",
    QuantizeRows => "quantize_rows.cu" (since E4M3),
    QuantizeColumns => "quantize_columns.cu" (since E4M3),
    QuantizeColumnsTiled => "quantize_columns_tiled.cu" (since E4M3),
    QuantizeBlocks => "quantize_blocks.cu" (since E4M3),
    MxFakeQuantize => "mx_fake_quantize.cu" (since E4M3),
    TransposeBytes => "transpose_bytes.cu",
    Elementwise => "elementwise.cu",
    ScaleEpilogue => "scale_epilogue.cu",
    TransposedBGemm => "transposed_b_gemm.cu" (only WGMMA),
    PackedWeightGemm => "packed_weight_gemm.cu",
    PersistentInt4WeightGemm => "persistent_int4_weight_gemm.cu" (since CLUSTERS),
    TileWeight => "tile_weight.cu",
    WgmmaPackedWeightGemm => "wgmma_packed_weight_gemm.cu" (only WGMMA),
    DequantizeWeight => "dequantize_weight.cu",
    QuantizeInput => "quantize_input.cu" (since AMPERE),
    TensorAmax => "tensor_amax.cu" (since AMPERE),
    SmemResidentRows => "smem_resident_rows.cu" (since CLUSTERS),
    FakeQuantizeInput => "fake_quantize_input.cu",
    QuantizedGemmEpilogue => "quantized_gemm_epilogue.cu",
    Int8Fp8Gemm => "int8_fp8_gemm.cu" (only WGMMA),
    Int4Gemm => "int4_gemm.cu" (since AMPERE),
    Int4ToInt8 => "int4_to_int8.cu",
    ReorderSparseWeight => "reorder_sparse_weight.cu",
    SparseGemm => "sparse_gemm.cu" (since AMPERE),
    SparseToDense => "sparse_to_dense.cu",
    BlockSparseGemm => "block_sparse_gemm.cu" (since AMPERE),
    BlockSparseGemmSimt => "block_sparse_gemm_simt.cu",
    PairReduction => "pair_reduction.cu",
    CrossEntropy => "cross_entropy.cu",
    Swiglu => "swiglu.cu",
    SiluMulGradient => "silu_mul_gradient.cu",
    RmsNorm => "rms_norm.cu",
    RmsNormGradient => "rms_norm_gradient.cu",
    LayerNormGradient => "layer_norm_gradient.cu",
    ColumnSums => "column_sums.cu",
    Gemv => "gemv.cu",
    AffineLayerNorm => "affine_layer_norm.cu",
    Softmax => "softmax.cu",
    ShortAttention => "short_attention.cu",
    ShortAttentionMma => "short_attention_mma.cu" (since AMPERE),
    ShortAttentionQuantize => "short_attention_quantize.cu" (since AMPERE),
    ShortAttentionGradient => "short_attention_gradient.cu",
    Attention => "attention.cu" (only WGMMA),
    AmaxRowsCols => "amax_rows_cols.cu" (since E4M3),
    QuantizeRowsCols => "quantize_rows_cols.cu" (since E4M3),
    Optimizer => "optimizer.cu",
    RotateRows => "rotate_rows.cu",
    ImplicitGemmConv => "implicit_gemm_conv.cu" (only WGMMA),
    TransposeMatrices => "transpose_matrices.cu",
    RandomMatrix => "random_matrix.cu",
    OutputDigest => "output_digest.cu",
}

/// Defines `HEADERS` from file names.
macro_rules! headers {
    ($($file:literal,)*) => {
        /// Names and texts of the headers. Their order affects the cache key.
        const HEADERS: &[(&str, &str)] = &[$(($file, include_str!(concat!("cuda/", $file))),)*];
    };
}

headers! {
    "element.cuh",
    "mma_attention16.cuh",
    "mma16.cuh",
    "hopper.cuh",
    "activations.cuh",
    "norm_weight.cuh",
    "activation_grad.cuh",
    "row_statistics.cuh",
    "row_reduce.cuh",
    "online_softmax.cuh",
    "grid_reduce.cuh",
    "bf16x2.cuh",
    "e4m3.cuh",
    "input_row.cuh",
    "dynamic_quant.cuh",
    "grid_amax.cuh",
    "output_dtype.cuh",
    "packed_weight.cuh",
    "split_k.cuh",
    "float8_quant.cuh",
    "tiled_weight.cuh",
    "int4_weight.cuh",
    "sparse_weight.cuh",
    "dequantize_pairs.cuh",
    "weight_vectors.cuh",
}

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
    // The suffix enables architecture-specific features.
    let suffix = if source.required_gpu().1 { "a" } else { "" };
    let architecture = format!("--gpu-architecture={}{suffix}", target.target());
    let mut options = vec![architecture, "--std=c++17".to_string()];
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
    let program = NvrtcProgram::with_headers(&source, &name, &[]).map_err(|status| failed(&status, String::new()))?;
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
        let headers: Vec<_> = HEADERS.iter().map(|(name, text)| (c_string(name), c_string(text))).collect();
        Self::with_headers(&c_string(source.text()), &c_string(source.name()), &headers)
    }

    /// Creates a program with headers, given as (name, text).
    fn with_headers(text: &CStr, name: &CStr, headers: &[(CString, CString)]) -> Result<Self, NvrtcError> {
        let (header_names, header_texts): (Vec<_>, Vec<_>) =
            headers.iter().map(|(name, text)| (name.as_ptr(), text.as_ptr())).unzip();
        let mut raw = ptr::null_mut();
        // SAFETY: every string is NUL-terminated and outlives the call, which copies it; `header_names` and
        // `header_texts` have the length passed; `raw` is used only if the call succeeded.
        unsafe {
            sys::nvrtcCreateProgram(
                &mut raw,
                text.as_ptr(),
                name.as_ptr(),
                headers.len() as i32,
                header_texts.as_ptr(),
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
    use std::cell::RefCell;

    /// Other compute capabilities (major, minor) of the test: the oldest that the compiler supports, and one per
    /// generation.
    const OTHERS: [(u32, u32); 5] = [(7, 5), (8, 0), (8, 9), (10, 0), (12, 0)];

    /// Compiles for Hopper. The first macros of a source in a test also compile for the other GPUs that it supports.
    pub(in crate::native) fn assert_compiles(source: CudaSource, macros: &[String]) {
        thread_local! {
            static COMPILED: RefCell<Vec<CudaSource>> = const { RefCell::new(Vec::new()) };
        }
        let is_first = COMPILED.with_borrow_mut(|compiled| {
            let is_first = !compiled.contains(&source);
            compiled.push(source);
            is_first
        });
        let (minimum, only) = source.required_gpu();
        let others = OTHERS.map(|(major, minor)| ComputeCapability { major, minor }).into_iter();
        let others = others.filter(|other| is_first && !only && *other >= minimum);
        let targets = [ComputeCapability::HOPPER].into_iter().chain(others);
        targets.for_each(|target| assert_compiles_for(target, source, macros));
    }

    /// Compiles for one GPU, for macros that need more than their source.
    pub(in crate::native) fn assert_compiles_for(target: ComputeCapability, source: CudaSource, macros: &[String]) {
        let image = compile(source, target, macros).unwrap_or_else(|error| panic!("{error}"));
        assert!(image.starts_with(b"\x7fELF"));
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn user_source_is_compiled_for_the_named_kernel() {
        let source =
            "template <class T> __global__ void add(const T *a, T *b, unsigned long long n) { b[0] = a[0] + T(n); }";
        let compiled = compile_foreign("add.cu", source, "add<float>", ComputeCapability::HOPPER);
        let (image, name) = compiled.unwrap();
        assert!(image.starts_with(b"\x7fELF") && name.contains("add"), "{name}");
        let error = compile_foreign("add.cu", source, "sub", ComputeCapability::HOPPER).unwrap_err();
        assert!(matches!(&error, NativeError::CompileUserSource { path, .. } if path == "add.cu"), "{error}");
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
        let error = compile(CudaSource::Activation, ComputeCapability::HOPPER, &macros).unwrap_err();
        let NativeError::Compile { source_name: "activation.cu", status, log, .. } = &error else { panic!("{error}") };
        assert!(status.contains("NVRTC_ERROR_COMPILATION"), "{status}");
        assert!(log.contains("element.cuh"), "the log names the header: {log}");
    }
}
