//! CPU kernel for a weight in the format of a treatment.

use crate::ZooError;
use calorimeter_kernels::host::{FloatGemm, FloatVec, HostGemmWeight, Int4Weight, Int8Gemm, Int8Weight};
use calorimeter_recipes::format::{Format, Grouping, QuantMethod, ZeroPoint};
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::{Dtype, Element, MatmulMode, QuantConfig, QuantizedTensor, Weight};

/// Weight of a linear layer with its kernel.
#[derive(Clone)]
pub enum HostLayer {
    /// Float input; float or quantized weight.
    Floats(FloatGemm),
    /// Quantized weight; the input is quantized in this format.
    Quantized(Int8Gemm, Format),
}

/// Supported storage of a weight.
enum WeightKind {
    Plain,
    Int8,
    /// Quantized weight; the input is quantized in this format.
    Int8Dynamic(Format),
    /// Groups of this size.
    Int4(usize),
}

/// Checks that there is a kernel for an input of `m` rows and `k` columns; the error lists supported recipes.
pub fn accepts(treatment: &QuantConfig, m: usize, k: usize) -> Result<(), String> {
    kind(treatment, m, k).map(|_| ())
}

fn kind(treatment: &QuantConfig, m: usize, k: usize) -> Result<WeightKind, String> {
    let kept = |element: Element| matches!(element, Element::Float(Dtype::F32 | Dtype::Bf16));
    let QuantConfig { dtype, weight, matmul: products, sparsity, .. } = *treatment;
    let kind = match (weight, treatment.input_format(m), products) {
        (None, None, _) => Some(WeightKind::Plain),
        (Some(weight), input, MatmulMode::QuantizedValues(_)) if is_int8_rows(weight) && kept(weight.scale) => {
            match input {
                None => Some(WeightKind::Int8),
                Some(input) => is_int8_rows(input).then_some(WeightKind::Int8Dynamic(input)),
            }
        }
        (Some(weight), None, MatmulMode::Values) => {
            match (weight.element, weight.method, weight.grouping, weight.zero) {
                (
                    Element::Unsigned(4),
                    QuantMethod::Tinygemm { .. } | QuantMethod::Hqq(_),
                    Grouping::Block(group @ (32 | 64 | 128 | 256)),
                    ZeroPoint::AfterScale(zero),
                ) if kept(weight.scale) && kept(zero) => Some(WeightKind::Int4(group as usize)),
                _ => None,
            }
        }
        _ => None,
    };
    match kind {
        Some(WeightKind::Int8Dynamic(_)) if k > Int8Gemm::MAX_K => Err(format!(
            "`native` on the CPU accumulates quantized products in 32 bits, which limits k to {}; k is {k}",
            Int8Gemm::MAX_K
        )),
        Some(kind) if kept(Element::Float(dtype)) && sparsity.is_none() => Ok(kind),
        _ => Err(
            "`native` on the CPU supports the baseline, int8wo, int8dq, int8dq_prefill_wo_decode and int4wo-* in this \
                  version, in f32 and bf16 without sparsity; `eager` runs the others"
                .into(),
        ),
    }
}

/// True for symmetric int8 with one scale per row.
fn is_int8_rows(format: Format) -> bool {
    let Format { element, grouping, method, zero, sparse_2to4: two_of_four, .. } = format;
    let symmetric = matches!(method, QuantMethod::Symmetric { .. }) && zero == ZeroPoint::None;
    element == Element::Signed(8) && grouping == Grouping::Row && symmetric && !two_of_four
}

impl HostLayer {
    /// Quantizes a weight for inputs of `m` rows.
    pub fn new(weight: &Weight, treatment: &QuantConfig, m: usize) -> Result<Self, ZooError> {
        let (n, k) = (weight.n(), weight.k());
        treatment.check(n, k)?;
        let kind = kind(treatment, m, k).map_err(ZooError::Unsupported)?;
        let floats = |weights| Self::Floats(FloatGemm::new(weights, n, k));
        let Some(quantized) = treatment.quantize(weight)? else {
            return Ok(floats(HostGemmWeight::Floats(to_dtype(weight.values(), Element::Float(treatment.dtype)))));
        };
        let QuantizedTensor { format, codes, scales, zeros, .. } = quantized;
        let scales = to_dtype(&scales, format.scale);
        Ok(match kind {
            WeightKind::Int8Dynamic(input) => Self::Quantized(Int8Gemm::new(&codes, scales), input),
            WeightKind::Int4(group) => {
                let zeros = to_dtype(&zeros, format.zero.element().unwrap_or(format.scale));
                floats(HostGemmWeight::Int4(Int4Weight { codes, scales, zeros, group }))
            }
            WeightKind::Plain | WeightKind::Int8 => floats(HostGemmWeight::Int8(Int8Weight { codes, scales })),
        })
    }

    /// Multiplies rows of `k` elements with the weight.
    pub fn run(&self, x: &[f32], k: usize, y: &mut [f32]) {
        match self {
            Self::Floats(product) => product.run(x, y),
            Self::Quantized(product, format) => {
                let QuantizedTensor { codes, scales, .. } = quantize(x, k, *format);
                product.run(&codes, &scales, y);
            }
        }
    }

    /// Bytes of the weight.
    pub fn weight_bytes(&self) -> usize {
        match self {
            Self::Floats(product) => product.weight_bytes(),
            Self::Quantized(product, _) => product.weight_bytes(),
        }
    }

    /// Name of the kernel for `m` rows.
    pub fn kernel(&self, m: usize) -> String {
        match self {
            Self::Floats(product) => product.kernel(m),
            Self::Quantized(product, _) => format!("rows quantized; then {}", product.kernel(m)),
        }
    }
}

/// Converts values to bf16 or f32.
pub fn to_dtype(numbers: &[f32], element: Element) -> FloatVec {
    match element {
        Element::Float(Dtype::Bf16) => FloatVec::bf16(numbers),
        _ => FloatVec::F32(numbers.to_vec()),
    }
}
