//! CPU kernel for a weight in the format of a treatment.

use crate::ZooError;
use calorimeter_kernels::host::{FloatProduct, Int4Rows, Int8Product, Int8Rows, Numbers, Weights};
use calorimeter_recipes::format::{Format, Grouping, Method, Zero};
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::{Dtype, Element, Products, Quantized, Treatment, Weight};

/// Weight of a linear layer with its kernel.
#[derive(Clone)]
pub enum Layer {
    /// Float input; float or quantized weight.
    Floats(FloatProduct),
    /// Quantized weight; the input is quantized in this format.
    Codes(Int8Product, Format),
}

/// Supported storage of a weight.
enum Kind {
    Plain,
    Int8,
    /// Quantized weight; the input is quantized in this format.
    Int8Dynamic(Format),
    /// Groups of this size.
    Int4(usize),
}

/// Checks that there is a kernel for an input of `m` rows and `k` columns; the error lists supported recipes.
pub fn accepts(treatment: &Treatment, m: usize, k: usize) -> Result<(), String> {
    kind(treatment, m, k).map(|_| ())
}

fn kind(treatment: &Treatment, m: usize, k: usize) -> Result<Kind, String> {
    let kept = |element: Element| matches!(element, Element::Float(Dtype::F32 | Dtype::Bf16));
    let Treatment { dtype, weight, products, sparsity, .. } = *treatment;
    let kind = match (weight, treatment.input(m), products) {
        (None, None, _) => Some(Kind::Plain),
        (Some(weight), input, Products::Codes(_)) if is_int8_rows(weight) && kept(weight.scale) => match input {
            None => Some(Kind::Int8),
            Some(input) => is_int8_rows(input).then_some(Kind::Int8Dynamic(input)),
        },
        (Some(weight), None, Products::Numbers) => {
            match (weight.element, weight.method, weight.grouping, weight.zero) {
                (
                    Element::Unsigned(4),
                    Method::Tinygemm { .. } | Method::Hqq(_),
                    Grouping::Block(group @ (32 | 64 | 128 | 256)),
                    Zero::InUnits(zero),
                ) if kept(weight.scale) && kept(zero) => Some(Kind::Int4(group as usize)),
                _ => None,
            }
        }
        _ => None,
    };
    match kind {
        Some(Kind::Int8Dynamic(_)) if k > Int8Product::MOST => Err(format!(
            "`native` on the CPU accumulates quantized products in 32 bits, which limits k to {}; k is {k}",
            Int8Product::MOST
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
    let Format { element, grouping, method, zero, two_of_four, .. } = format;
    let symmetric = matches!(method, Method::Symmetric { .. }) && zero == Zero::None;
    element == Element::Signed(8) && grouping == Grouping::Row && symmetric && !two_of_four
}

impl Layer {
    /// Quantizes a weight for inputs of `m` rows.
    pub fn new(weight: &Weight, treatment: &Treatment, m: usize) -> Result<Self, ZooError> {
        let (n, k) = (weight.n(), weight.k());
        treatment.check(n, k)?;
        let kind = kind(treatment, m, k).map_err(ZooError::Unsupported)?;
        let floats = |weights| Self::Floats(FloatProduct::new(weights, n, k));
        let Some(quantized) = treatment.quantize(weight)? else {
            return Ok(floats(Weights::Floats(stored(weight.values(), Element::Float(treatment.dtype)))));
        };
        let Quantized { format, codes, scales, zeros, .. } = quantized;
        let scales = stored(&scales, format.scale);
        Ok(match kind {
            Kind::Int8Dynamic(input) => Self::Codes(Int8Product::new(&codes, scales), input),
            Kind::Int4(group) => {
                let zeros = stored(&zeros, format.zero.element().unwrap_or(format.scale));
                floats(Weights::Int4(Int4Rows { codes, scales, zeros, group }))
            }
            Kind::Plain | Kind::Int8 => floats(Weights::Int8(Int8Rows { codes, scales })),
        })
    }

    /// Multiplies rows of `k` elements with the weight.
    pub fn run(&self, x: &[f32], k: usize, y: &mut [f32]) {
        match self {
            Self::Floats(product) => product.run(x, y),
            Self::Codes(product, format) => {
                let Quantized { codes, scales, .. } = quantize(x, k, *format);
                product.run(&codes, &scales, y);
            }
        }
    }

    /// Bytes of the weight.
    pub fn weight_bytes(&self) -> usize {
        match self {
            Self::Floats(product) => product.weight_bytes(),
            Self::Codes(product, _) => product.weight_bytes(),
        }
    }

    /// Name of the kernel for `m` rows.
    pub fn kernel(&self, m: usize) -> String {
        match self {
            Self::Floats(product) => product.kernel(m),
            Self::Codes(product, _) => format!("rows quantized; then {}", product.kernel(m)),
        }
    }
}

/// Converts values to bf16 or f32.
pub fn stored(numbers: &[f32], element: Element) -> Numbers {
    match element {
        Element::Float(Dtype::Bf16) => Numbers::bf16(numbers),
        _ => Numbers::F32(numbers.to_vec()),
    }
}
