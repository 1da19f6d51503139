//! Compiling our CUDA C++ with NVRTC.

use std::{
    ffi::{CStr, CString, c_char},
    path::{Path, PathBuf},
    ptr,
};

use cudarc::nvrtc::{
    result::{self, NvrtcError},
    sys,
};

use super::{ComputeCapability, NativeError, checksum::checksum, libraries::Library};

/// The CUDA C++ files of this crate. A closed set, because the safety of a launch rests on what they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Source {
    LayerNorm,
    Activation,
    Traffic,
    Spin,
    QuantizeRows,
    QuantizeColumns,
    QuantizeAnyColumns,
    QuantizeBlocks,
    MicroNumbers,
    TransposeBytes,
    Elementwise,
    ScaleProduct,
    TurnedProduct,
    PackedProduct,
    StreamedProduct,
    TileCodes,
    TiledProduct,
    UnpackWeight,
    QuantizeInput,
    LargestInput,
    HeldInput,
    RoundInput,
    FinishProduct,
    ByteProduct,
    HalfByteProduct,
    WidenHalfBytes,
    OrderSparse,
    SparseProduct,
    UnpackSparse,
    BlockProduct,
    BlockProductFloat,
    PairSum,
    CrossEntropy,
    HalvedSwiglu,
    SiluMulGradient,
    RmsNorm,
    RmsNormGradient,
    LayerNormGradient,
    ColumnSums,
    RowsByVector,
    AffineLayerNorm,
    Softmax,
    ShortAttention,
    ShortAttentionTiles,
    ShortAttentionCodes,
    ShortAttentionGradient,
    Attention,
    LargestOfLines,
    CodesOfLines,
    Optimizer,
    Circle,
    ImageProduct,
    TransposeMatrices,
    Places,
    Look,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Self::LayerNorm => "layer_norm.cu",
            Self::Activation => "activation.cu",
            Self::Traffic => "traffic.cu",
            Self::Spin => "spin.cu",
            Self::QuantizeRows => "quantize_rows.cu",
            Self::QuantizeColumns => "quantize_columns.cu",
            Self::QuantizeAnyColumns => "quantize_any_columns.cu",
            Self::QuantizeBlocks => "quantize_blocks.cu",
            Self::MicroNumbers => "micro_numbers.cu",
            Self::TransposeBytes => "transpose_bytes.cu",
            Self::Elementwise => "elementwise.cu",
            Self::ScaleProduct => "scale_product.cu",
            Self::TurnedProduct => "turned_product.cu",
            Self::PackedProduct => "packed_product.cu",
            Self::StreamedProduct => "streamed_product.cu",
            Self::TileCodes => "tile_codes.cu",
            Self::TiledProduct => "tiled_product.cu",
            Self::UnpackWeight => "unpack_weight.cu",
            Self::QuantizeInput => "quantize_input.cu",
            Self::LargestInput => "largest_input.cu",
            Self::HeldInput => "held_input.cu",
            Self::RoundInput => "round_input.cu",
            Self::FinishProduct => "finish_product.cu",
            Self::ByteProduct => "byte_product.cu",
            Self::HalfByteProduct => "half_byte_product.cu",
            Self::WidenHalfBytes => "widen_half_bytes.cu",
            Self::OrderSparse => "order_sparse.cu",
            Self::SparseProduct => "sparse_product.cu",
            Self::UnpackSparse => "unpack_sparse.cu",
            Self::BlockProduct => "block_product.cu",
            Self::BlockProductFloat => "block_product_float.cu",
            Self::PairSum => "pair_sum.cu",
            Self::CrossEntropy => "cross_entropy.cu",
            Self::HalvedSwiglu => "halved_swiglu.cu",
            Self::SiluMulGradient => "silu_mul_gradient.cu",
            Self::RmsNorm => "rms_norm.cu",
            Self::RmsNormGradient => "rms_norm_gradient.cu",
            Self::LayerNormGradient => "layer_norm_gradient.cu",
            Self::ColumnSums => "column_sums.cu",
            Self::RowsByVector => "rows_by_vector.cu",
            Self::AffineLayerNorm => "affine_layer_norm.cu",
            Self::Softmax => "softmax.cu",
            Self::ShortAttention => "short_attention.cu",
            Self::ShortAttentionTiles => "short_attention_tiles.cu",
            Self::ShortAttentionCodes => "short_attention_codes.cu",
            Self::ShortAttentionGradient => "short_attention_gradient.cu",
            Self::Attention => "attention.cu",
            Self::LargestOfLines => "largest_of_lines.cu",
            Self::CodesOfLines => "codes_of_lines.cu",
            Self::Optimizer => "optimizer.cu",
            Self::Circle => "circle.cu",
            Self::ImageProduct => "image_product.cu",
            Self::TransposeMatrices => "transpose_matrices.cu",
            Self::Places => "places.cu",
            Self::Look => "look.cu",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::LayerNorm => include_str!("cuda/layer_norm.cu"),
            Self::Activation => include_str!("cuda/activation.cu"),
            Self::Traffic => include_str!("cuda/traffic.cu"),
            Self::Spin => include_str!("cuda/spin.cu"),
            Self::QuantizeRows => include_str!("cuda/quantize_rows.cu"),
            Self::QuantizeColumns => include_str!("cuda/quantize_columns.cu"),
            Self::QuantizeAnyColumns => include_str!("cuda/quantize_any_columns.cu"),
            Self::QuantizeBlocks => include_str!("cuda/quantize_blocks.cu"),
            Self::MicroNumbers => include_str!("cuda/micro_numbers.cu"),
            Self::TransposeBytes => include_str!("cuda/transpose_bytes.cu"),
            Self::Elementwise => include_str!("cuda/elementwise.cu"),
            Self::ScaleProduct => include_str!("cuda/scale_product.cu"),
            Self::TurnedProduct => include_str!("cuda/turned_product.cu"),
            Self::PackedProduct => include_str!("cuda/packed_product.cu"),
            Self::StreamedProduct => include_str!("cuda/streamed_product.cu"),
            Self::TileCodes => include_str!("cuda/tile_codes.cu"),
            Self::TiledProduct => include_str!("cuda/tiled_product.cu"),
            Self::UnpackWeight => include_str!("cuda/unpack_weight.cu"),
            Self::QuantizeInput => include_str!("cuda/quantize_input.cu"),
            Self::LargestInput => include_str!("cuda/largest_input.cu"),
            Self::HeldInput => include_str!("cuda/held_input.cu"),
            Self::RoundInput => include_str!("cuda/round_input.cu"),
            Self::FinishProduct => include_str!("cuda/finish_product.cu"),
            Self::ByteProduct => include_str!("cuda/byte_product.cu"),
            Self::HalfByteProduct => include_str!("cuda/half_byte_product.cu"),
            Self::WidenHalfBytes => include_str!("cuda/widen_half_bytes.cu"),
            Self::OrderSparse => include_str!("cuda/order_sparse.cu"),
            Self::SparseProduct => include_str!("cuda/sparse_product.cu"),
            Self::UnpackSparse => include_str!("cuda/unpack_sparse.cu"),
            Self::BlockProduct => include_str!("cuda/block_product.cu"),
            Self::BlockProductFloat => include_str!("cuda/block_product_float.cu"),
            Self::PairSum => include_str!("cuda/pair_sum.cu"),
            Self::CrossEntropy => include_str!("cuda/cross_entropy.cu"),
            Self::HalvedSwiglu => include_str!("cuda/halved_swiglu.cu"),
            Self::SiluMulGradient => include_str!("cuda/silu_mul_gradient.cu"),
            Self::RmsNorm => include_str!("cuda/rms_norm.cu"),
            Self::RmsNormGradient => include_str!("cuda/rms_norm_gradient.cu"),
            Self::LayerNormGradient => include_str!("cuda/layer_norm_gradient.cu"),
            Self::ColumnSums => include_str!("cuda/column_sums.cu"),
            Self::RowsByVector => include_str!("cuda/rows_by_vector.cu"),
            Self::AffineLayerNorm => include_str!("cuda/affine_layer_norm.cu"),
            Self::Softmax => include_str!("cuda/softmax.cu"),
            Self::ShortAttention => include_str!("cuda/short_attention.cu"),
            Self::ShortAttentionTiles => include_str!("cuda/short_attention_tiles.cu"),
            Self::ShortAttentionCodes => include_str!("cuda/short_attention_codes.cu"),
            Self::ShortAttentionGradient => include_str!("cuda/short_attention_gradient.cu"),
            Self::Attention => include_str!("cuda/attention.cu"),
            Self::LargestOfLines => include_str!("cuda/largest_of_lines.cu"),
            Self::CodesOfLines => include_str!("cuda/codes_of_lines.cu"),
            Self::Optimizer => include_str!("cuda/optimizer.cu"),
            Self::Circle => include_str!("cuda/circle.cu"),
            Self::ImageProduct => include_str!("cuda/image_product.cu"),
            Self::TransposeMatrices => include_str!("cuda/transpose_matrices.cu"),
            Self::Places => include_str!("cuda/places.cu"),
            Self::Look => include_str!("cuda/look.cu"),
        }
    }
}

/// What the sources include, by name.
const HEADERS: [(&CStr, &str); 24] = [
    (c"element.cuh", include_str!("cuda/element.cuh")),
    (c"sixteen_tokens.cuh", include_str!("cuda/sixteen_tokens.cuh")),
    (c"halves.cuh", include_str!("cuda/halves.cuh")),
    (c"hopper.cuh", include_str!("cuda/hopper.cuh")),
    (c"activations.cuh", include_str!("cuda/activations.cuh")),
    (c"gain.cuh", include_str!("cuda/gain.cuh")),
    (c"slopes.cuh", include_str!("cuda/slopes.cuh")),
    (c"row_statistics.cuh", include_str!("cuda/row_statistics.cuh")),
    (c"rows.cuh", include_str!("cuda/rows.cuh")),
    (c"tally.cuh", include_str!("cuda/tally.cuh")),
    (c"total.cuh", include_str!("cuda/total.cuh")),
    (c"bf16_pairs.cuh", include_str!("cuda/bf16_pairs.cuh")),
    (c"e4m3.cuh", include_str!("cuda/e4m3.cuh")),
    (c"input_row.cuh", include_str!("cuda/input_row.cuh")),
    (c"input_codes.cuh", include_str!("cuda/input_codes.cuh")),
    (c"largest_of_all.cuh", include_str!("cuda/largest_of_all.cuh")),
    (c"output.cuh", include_str!("cuda/output.cuh")),
    (c"packed.cuh", include_str!("cuda/packed.cuh")),
    (c"shares.cuh", include_str!("cuda/shares.cuh")),
    (c"line_codes.cuh", include_str!("cuda/line_codes.cuh")),
    (c"tiled_codes.cuh", include_str!("cuda/tiled_codes.cuh")),
    (c"half_byte_codes.cuh", include_str!("cuda/half_byte_codes.cuh")),
    (c"sparse_codes.cuh", include_str!("cuda/sparse_codes.cuh")),
    (c"packed_pairs.cuh", include_str!("cuda/packed_pairs.cuh")),
];

/// Compiles to machine code, not PTX: a driver older than the compiler can then still load it.
///
/// `macros` are definitions such as `WIDTH=8`.
pub(super) fn compile(source: Source, target: ComputeCapability, macros: &[String]) -> Result<Vec<u8>, NativeError> {
    Library::Nvrtc.require()?;
    let options = options(source, target, macros);
    let failed = |status: NvrtcError, log: String| NativeError::Compile {
        source_name: source.name(),
        options: options.join(" "),
        status: status.to_string(),
        log,
    };
    let program = Program::create(source).map_err(|status| failed(status, String::new()))?;
    program.compile(&options).map_err(|status| failed(status, program.log()))?;
    program.machine_code().map_err(|status| failed(status, program.log()))
}

fn options(source: Source, target: ComputeCapability, macros: &[String]) -> Vec<String> {
    // What belongs to one generation alone is asked for by a letter.
    let own = match source {
        Source::Attention
        | Source::TiledProduct
        | Source::ImageProduct
        | Source::ByteProduct
        | Source::TurnedProduct => "a",
        _ => "",
    };
    let mut options = vec![format!("--gpu-architecture={}{own}", target.target()), "--std=c++17".to_string()];
    options.extend(macros.iter().map(|definition| format!("-D{definition}")));
    options
}

/// All that the machine code depends on: the compiler, its options, and every text that it may read.
pub(super) fn identity(source: Source, target: ComputeCapability, macros: &[String]) -> Result<String, NativeError> {
    Library::Nvrtc.require()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both numbers are there to be written.
    let asked = unsafe { sys::nvrtcVersion(&mut major, &mut minor) }.result();
    let options = options(source, target, macros).join(" ");
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

/// A source that is not ours, compiled for its kernel of this name; answers the machine code, and what the kernel is called
/// in it.
pub(super) fn compile_foreign(
    path: &str,
    text: &str,
    entry: &str,
    target: ComputeCapability,
) -> Result<(Vec<u8>, String), NativeError> {
    Library::Nvrtc.require()?;
    let mut options = vec![format!("--gpu-architecture={}", target.target()), "--std=c++17".to_string()];
    options.extend(include_folders(path).iter().map(|folder| format!("--include-path={}", folder.display())));
    let failed = |status: &dyn std::fmt::Display, log: String| NativeError::CompileForeign {
        path: path.to_string(),
        options: options.join(" "),
        status: status.to_string(),
        log,
    };
    let zero_byte = |what: &str| failed(&format!("{what} has a zero byte"), String::new());
    let source = CString::new(text).map_err(|_| zero_byte("the source"))?;
    let name = CString::new(path).map_err(|_| zero_byte("its path"))?;
    let entry = CString::new(entry).map_err(|_| zero_byte("the name of the kernel"))?;
    if options.iter().any(|option| option.contains('\0')) {
        return Err(zero_byte("a folder of headers"));
    }
    let program = Program::of(&source, &name, &[], &[]).map_err(|status| failed(&status, String::new()))?;
    program.name_kernel(&entry).map_err(|status| failed(&status, program.log()))?;
    program.compile(&options).map_err(|status| failed(&status, program.log()))?;
    let lowered = program.lowered(&entry).map_err(|status| failed(&status, program.log()))?;
    let code = program.machine_code().map_err(|status| failed(&status, program.log()))?;
    Ok((code, lowered))
}

/// Where the headers of a foreign source are looked for: beside it, and where CUDA's own are.
fn include_folders(path: &str) -> Vec<PathBuf> {
    let beside = Path::new(path).parent().map(Path::to_path_buf);
    let told = ["CUDA_PATH", "CUDA_HOME"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let cuda = told.chain([PathBuf::from("/usr/local/cuda")]).map(|root| root.join("include"));
    beside.into_iter().chain(cuda).filter(|folder| folder.is_dir()).collect()
}

/// An NVRTC program, destroyed on drop.
struct Program {
    raw: sys::nvrtcProgram,
}

impl Program {
    fn create(source: Source) -> Result<Self, NvrtcError> {
        let headers = HEADERS.map(|(_, text)| c_string(text));
        let (texts, names) = (headers.each_ref().map(|text| text.as_ptr()), HEADERS.map(|(name, _)| name.as_ptr()));
        Self::of(&c_string(source.text()), &c_string(source.name()), &texts, &names)
    }

    /// A program with headers: as many texts as names.
    fn of(
        text: &CStr,
        name: &CStr,
        headers: &[*const c_char],
        header_names: &[*const c_char],
    ) -> Result<Self, NvrtcError> {
        assert_eq!(headers.len(), header_names.len(), "every header has a name");
        let mut raw = ptr::null_mut();
        // SAFETY: every string is terminated and outlives the call, which copies them; there are as many headers as
        // names, and as many as is said; `raw` is only used if the call succeeded.
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

    /// Says before compiling which kernel will be asked for, be it in a namespace or one of a template.
    fn name_kernel(&self, entry: &CStr) -> Result<(), NvrtcError> {
        // SAFETY: `raw` is a live program, and the string is terminated; the call copies it.
        unsafe { sys::nvrtcAddNameExpression(self.raw, entry.as_ptr()) }.result()
    }

    /// What such a kernel is called in the machine code.
    fn lowered(&self, entry: &CStr) -> Result<String, NvrtcError> {
        let mut lowered = ptr::null();
        // SAFETY: `raw` is a live program that was compiled; on success the text is terminated and lives as long as it does.
        unsafe {
            sys::nvrtcGetLoweredName(self.raw, entry.as_ptr(), &mut lowered).result()?;
            Ok(CStr::from_ptr(lowered).to_string_lossy().into_owned())
        }
    }

    fn compile(&self, options: &[String]) -> Result<(), NvrtcError> {
        // SAFETY: `raw` is a live program. The call panics on an option with a zero byte, and ours have none.
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
        // SAFETY: `raw` is a live program, and the second call writes exactly as many bytes as the first one promised.
        unsafe {
            sys::nvrtcGetCUBINSize(self.raw, &mut len).result()?;
            let mut code = vec![0u8; len];
            sys::nvrtcGetCUBIN(self.raw, code.as_mut_ptr().cast()).result()?;
            Ok(code)
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created by `create` and destroyed once. Nothing can be done about a refusal.
        let _ = unsafe { sys::nvrtcDestroyProgram(&mut self.raw) };
    }
}

/// For text that is part of this crate.
fn c_string(text: &str) -> CString {
    CString::new(text).expect("the sources and their names hold no zero byte")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Compiles for a GPU that need not be there. Says so when NVRTC itself is not.
    pub(in crate::native) fn assert_compiles(source: Source, macros: &[String]) {
        if Library::Nvrtc.require().is_err() {
            println!("NVRTC is not installed: {} was not compiled", source.name());
            return;
        }
        let hopper = ComputeCapability { major: 9, minor: 0 };
        let image = compile(source, hopper, macros).unwrap_or_else(|error| panic!("{error}"));
        assert!(image.starts_with(b"\x7fELF"));
    }

    #[test]
    fn a_foreign_source_is_compiled_for_the_kernel_that_was_named() {
        let source =
            "template <class T> __global__ void add(const T *a, T *b, unsigned long long n) { b[0] = a[0] + T(n); }";
        let hopper = ComputeCapability { major: 9, minor: 0 };
        let compiled = compile_foreign("add.cu", source, "add<float>", hopper);
        if Library::Nvrtc.require().is_err() {
            assert!(compiled.unwrap_err().to_string().contains("libnvrtc.so"));
            return;
        }
        let (image, name) = compiled.unwrap();
        assert!(image.starts_with(b"\x7fELF") && name.contains("add"), "{name}");
        let error = compile_foreign("add.cu", source, "sub", hopper).unwrap_err().to_string();
        assert!(error.contains("add.cu") && error.contains("sub"), "{error}");
    }

    #[test]
    fn everything_that_changes_machine_code_is_in_its_identity() {
        let of = |source, minor, macros: &[&str]| {
            let macros: Vec<String> = macros.iter().map(|&text| text.to_owned()).collect();
            identity(source, ComputeCapability { major: 9, minor }, &macros)
        };
        if Library::Nvrtc.require().is_err() {
            assert!(of(Source::Spin, 0, &[]).unwrap_err().to_string().contains("libnvrtc.so"));
            return;
        }
        let all = [
            of(Source::Spin, 0, &[]),
            of(Source::Spin, 1, &[]),
            of(Source::Spin, 0, &["A=1"]),
            of(Source::Spin, 0, &["A=1", "B=1"]),
            of(Source::Traffic, 0, &[]),
        ];
        let all: Vec<String> = all.into_iter().map(Result::unwrap).collect();
        let mut unlike = all.clone();
        unlike.sort();
        unlike.dedup();
        assert_eq!(unlike.len(), all.len(), "{all:?}");
        assert_eq!(of(Source::Spin, 0, &[]).unwrap(), all[0]);
    }

    #[test]
    fn a_source_that_does_not_compile_comes_back_with_the_compilers_log() {
        let error = compile(Source::Activation, ComputeCapability { major: 9, minor: 0 }, &[]).unwrap_err();
        if Library::Nvrtc.require().is_err() {
            assert!(error.to_string().contains("libnvrtc.so"), "{error}");
            return;
        }
        let text = error.to_string();
        assert!(text.contains("activation.cu") && text.contains("NVRTC_ERROR_COMPILATION"), "{text}");
        assert!(text.contains("element.cuh"), "the log names the place: {text}");
    }
}
