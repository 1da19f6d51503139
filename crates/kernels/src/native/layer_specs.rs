//! Specifications of layers as the CUDA kernels read them: parsed once from [`LayerSpec`], which is the only public
//! description of a layer.

use crate::format::{Grouping, MxScaling, QuantMethod, ZeroPoint};
use crate::layer::Rejection;
use crate::{
    Activation, Dtype, Element, Float8Accumulation, Format, LayerSpec, MatmulMode, PrecisionHint, Prologue, Sparsity,
};

/// Layer whose weight is dequantized by the GEMM, or before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PackedSpec {
    /// Dtype of x and y.
    pub(super) kind: Dtype,
    /// Storage format of the weight.
    pub(super) weight: Format,
    /// Microscaling format or NVFP4 that x is fake-quantized to.
    pub(super) input: Option<Format>,
    /// True if each row of x has a scale, applied to the accumulators.
    pub(super) has_input_scales: bool,
}

/// Layer whose input is quantized at run time, and multiplied by a weight of 8-bit or 4-bit values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DynamicSpec {
    /// Dtype of x and y.
    pub(super) kind: Dtype,
    /// Storage format of the weight.
    pub(super) weight: Format,
    /// Format of the quantized input.
    pub(super) input: Format,
    /// Accumulation of e4m3 products; integer accumulators are exact.
    pub(super) accumulation: Float8Accumulation,
    /// Prologue p, applied to x before quantization.
    pub(super) prologue: Prologue,
    /// Activation f of the epilogue.
    pub(super) activation: Option<Activation>,
    /// True if a matrix of the shape of y is added last.
    pub(super) has_addend: bool,
}

/// Layer with a 2:4 sparse weight. Prologue and activation are fused only with a quantized input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SparseSpec {
    /// Dtype of x and y.
    pub(super) kind: Dtype,
    /// Storage of the nonzero weights.
    pub(super) weight: SparseWeight,
    /// True if a matrix of the shape of y is added last.
    pub(super) has_addend: bool,
}

/// Storage of the nonzero weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SparseWeight {
    /// Floats of the dtype of the layer.
    Float,
    /// Symmetric int4 with one scale of the dtype of the layer per 128 elements along k, zeros included.
    Int4,
    /// 8-bit values that are multiplied by a quantized input.
    Dynamic(DynamicSpec),
}

/// Formats of packed weights, as the kernels for few rows access them.
pub(super) trait PackedFormat: Copy {
    /// Name in kernel names.
    fn name(self) -> String;
    /// Elements along k that share a scale; `None` for one scale per row.
    fn group(self) -> Option<usize>;
    /// Words per vector access of a thread: 16 bytes, or the words of 32 values.
    fn vector_words(self) -> usize;
    /// Values per vector access.
    fn values_per_vector(self) -> usize;
}

impl PackedFormat for Format {
    fn name(self) -> String {
        let number = match self.element {
            Element::Signed(bits) => format!("int{bits}"),
            Element::Unsigned(bits) => format!("uint{bits}"),
            float => float.to_string(),
        };
        self.group().map_or(number.clone(), |group| format!("{number}_{group}"))
    }

    fn group(self) -> Option<usize> {
        match self.grouping {
            Grouping::Block(group) => Some(group as usize),
            Grouping::Row | Grouping::Tensor => None,
        }
    }

    fn vector_words(self) -> usize {
        match self.bits() {
            8 => 4,
            bits => bits as usize,
        }
    }

    fn values_per_vector(self) -> usize {
        self.vector_words() * 32 / self.bits() as usize
    }
}

/// Rejects layers with a prologue or an activation, for kernels that only multiply.
pub(super) fn require_gemm_only(spec: &LayerSpec) -> Result<(), Rejection> {
    if spec.prologue == Prologue::None && spec.activation.is_none() {
        Ok(())
    } else {
        Err(Rejection::Spec("a layer without prologue and activation"))
    }
}

impl PackedSpec {
    /// Returns the specification, if kernels can dequantize the weight: a value depends on the quantized value, and on
    /// scale and zero point of its group.
    pub(super) fn parse(spec: &LayerSpec) -> Result<Self, Rejection> {
        require_gemm_only(spec)?;
        let (Some(weight), None) = (spec.weight, spec.sparsity) else {
            return Err(Rejection::Spec("a quantized, dense weight"));
        };
        let is_nvfp4 = weight.method == QuantMethod::Nvfp4;
        let is_fake_quantized = is_nvfp4 || weight.method == QuantMethod::Mx(MxScaling::Ceil);
        let input_fits = match spec.input {
            None => !is_nvfp4,
            Some(input) => input == weight && is_fake_quantized && spec.matmul == MatmulMode::Values,
        };
        if !input_fits {
            return Err(Rejection::Spec("an input that is not quantized, or is rounded to the format of the weight"));
        }
        let values_fit = match (weight.element, weight.zero) {
            (Element::Unsigned(1..=8), ZeroPoint::BeforeScale(_) | ZeroPoint::AfterScale(_)) => {
                weight.group().is_some()
            }
            (Element::Signed(2..=8) | Element::E4m3 | Element::E3m2 | Element::E2m1, ZeroPoint::None) => true,
            _ => false,
        };
        let zeros_fit = match weight.zero {
            ZeroPoint::None | ZeroPoint::BeforeScale(Element::Unsigned(1..=8)) => true,
            ZeroPoint::BeforeScale(zero) | ZeroPoint::AfterScale(zero) => matches!(zero, Element::Float(_)),
        };
        let scales_fit = matches!(weight.scale, Element::Float(_) | Element::E8m0 | Element::E4m3);
        let has_one_level = !matches!(weight.method, QuantMethod::Unquantized | QuantMethod::Qqq);
        let groups_fit = match weight.grouping {
            Grouping::Row => true,
            Grouping::Block(group) => {
                group > 0 && i32::try_from(group).is_ok() && (group * weight.bits()).is_multiple_of(32)
            }
            Grouping::Tensor => false,
        };
        if values_fit && zeros_fit && scales_fit && has_one_level && groups_fit && !weight.sparse_2to4 {
            Ok(Self { kind: spec.dtype, weight, input: spec.input, has_input_scales: false })
        } else {
            Err(Rejection::Spec("values of up to 8 bits with one scale per row, or per group of whole 32-bit words"))
        }
    }
}

impl DynamicSpec {
    /// Largest k for which an i32 accumulator cannot overflow: each term is at most 127 * 128 in magnitude.
    pub(super) const MAX_INT8_K: usize = i32::MAX as usize / (127 * 128);
    /// Values that share a group scale.
    pub(super) const GROUP_SIZE: usize = 128;

    /// Returns the specification, if the kernels quantize the input and multiply the values of the weight.
    pub(super) fn parse(spec: &LayerSpec) -> Result<Self, Rejection> {
        let (Some(weight), Some(input)) = (spec.weight, spec.input) else {
            return Err(Rejection::Spec("a quantized weight and a quantized input"));
        };
        if spec.sparsity.is_some() || weight.sparse_2to4 {
            return Err(Rejection::Spec("a dense weight"));
        }
        let kind = spec.dtype;
        let same_dtype = [weight, input].iter().all(|format| format.compute_dtype == kind);
        let no_zeros = [weight, input].iter().all(|format| format.zero == ZeroPoint::None);
        let scale = |format: Format, dtype| format.scale == Element::Float(dtype);
        let int8_input = |smallest: i16| {
            let in_range = matches!(input.method, QuantMethod::Symmetric { min, max: 127, .. } if min == smallest);
            input.element == Element::Signed(8) && input.grouping == Grouping::Row && in_range
        };
        let is_symmetric = matches!(weight.method, QuantMethod::Symmetric { .. }) && weight.grouping == Grouping::Row;
        let supported = match (weight.element, weight.method) {
            // For f16 the kernels hold scales, and products with inverse scales, in f32.
            (Element::Signed(8), _) => {
                let of_input = if kind == Dtype::F16 { Dtype::F32 } else { kind };
                int8_input(-127) && is_symmetric && scale(weight, kind) && scale(input, of_input)
            }
            (Element::Signed(4), QuantMethod::Qqq) => {
                let grouped = weight.grouping == Grouping::Block(Self::GROUP_SIZE as u32);
                int8_input(-127) && grouped && scale(weight, kind) && scale(input, Dtype::F32)
            }
            (Element::Signed(4), _) => {
                int8_input(-128) && is_symmetric && scale(weight, Dtype::F32) && scale(input, Dtype::F32)
            }
            (Element::E4m3, QuantMethod::Floats { .. }) => {
                // The kernels do not bound the scale of the input from below.
                let input_fits = input.element == Element::E4m3 && input.method == QuantMethod::Floats { epsilon: 0.0 };
                let grouping_fits = matches!(weight.grouping, Grouping::Row | Grouping::Tensor);
                input_fits
                    && grouping_fits
                    && weight.grouping == input.grouping
                    && scale(weight, Dtype::F32)
                    && scale(input, Dtype::F32)
            }
            _ => false,
        };
        if !(supported && same_dtype && no_zeros) {
            return Err(Rejection::Spec("int8 or int4 values with an int8 input, or e4m3 values with an e4m3 input"));
        }
        let accumulation = match spec.precision_hint {
            Some(PrecisionHint::FastAccumulation) => Float8Accumulation::Fast,
            Some(PrecisionHint::Tf32) | None => Float8Accumulation::Promoted,
        };
        let LayerSpec { prologue, activation, has_addend, .. } = *spec;
        Ok(Self { kind, weight, input, accumulation, prologue, activation, has_addend })
    }

    /// Checks that the accumulators of the tensor cores are accurate enough for rows of `k` values.
    pub(super) fn check_accumulators(self, k: usize) -> Result<(), Rejection> {
        if self.is_e4m3() && self.kind == Dtype::F32 {
            return Err(Rejection::Accuracy(
                "tensor cores accumulate e4m3 products in about 14 bits, too few for f32 outputs: use bf16 or f16",
            ));
        }
        match self.max_exact_k() {
            Some(max) if k > max => Err(Rejection::Size { what: "k (accumulated in 32 bits)", max, value: k }),
            _ => Ok(()),
        }
    }

    /// Largest k with exact accumulators; `None` for floating-point values.
    pub(super) fn max_exact_k(self) -> Option<usize> {
        match self.weight.element {
            Element::E4m3 => None,
            // Products are scaled by 16 during accumulation.
            Element::Signed(4) if !self.is_grouped() => Some(i32::MAX as usize / (128 * 128)),
            _ => Some(Self::MAX_INT8_K),
        }
    }

    /// True if values are e4m3.
    pub(super) fn is_e4m3(self) -> bool {
        self.weight.element == Element::E4m3
    }

    /// True if weight values have 4 bits.
    pub(super) fn is_int4(self) -> bool {
        self.weight.element == Element::Signed(4)
    }

    /// True if int4 values times their group scales are rounded to int8.
    pub(super) fn is_grouped(self) -> bool {
        self.weight.method == QuantMethod::Qqq
    }

    /// True if weight and input have one scale each.
    pub(super) fn is_per_tensor(self) -> bool {
        self.input.grouping == Grouping::Tensor
    }

    /// Name of the format in kernel names.
    pub(super) fn format_name(self) -> &'static str {
        match (self.weight.element, self.is_grouped()) {
            (Element::E4m3, _) => "e4m3",
            (Element::Signed(4), true) => "int4_groups",
            (Element::Signed(4), false) => "int4",
            _ => "int8",
        }
    }
}

impl SparseSpec {
    /// Returns the specification, if the kernels multiply a 2:4 sparse weight in these formats.
    pub(super) fn parse(spec: &LayerSpec) -> Result<Self, Rejection> {
        if spec.sparsity != Some(Sparsity::SemiStructured) {
            return Err(Rejection::Spec("a 2:4 sparse weight"));
        }
        if spec.precision_hint.is_some() {
            return Err(Rejection::Spec("full precision"));
        }
        let weight = match (spec.weight, spec.input) {
            (None, None) => SparseWeight::Float,
            (Some(weight), None) => {
                let dtype = Element::Float(spec.dtype);
                let fits = weight.element == Element::Signed(4)
                    && weight.grouping == Grouping::Block(DynamicSpec::GROUP_SIZE as u32)
                    && matches!(weight.method, QuantMethod::Symmetric { .. })
                    && (weight.scale, weight.zero) == (dtype, ZeroPoint::None);
                if !fits {
                    return Err(Rejection::Spec("symmetric int4 in groups of 128"));
                }
                SparseWeight::Int4
            }
            _ => {
                let dynamic = DynamicSpec::parse(&LayerSpec { sparsity: None, ..*spec })?;
                if dynamic.is_int4() {
                    return Err(Rejection::Spec("nonzero values of 8 bits"));
                }
                SparseWeight::Dynamic(dynamic)
            }
        };
        if !matches!(weight, SparseWeight::Dynamic(_)) {
            require_gemm_only(spec)?;
        }
        Ok(Self { kind: spec.dtype, weight, has_addend: spec.has_addend })
    }

    /// Specification of the dense layer with a quantized input; `None` if the input is not quantized.
    pub(super) fn dynamic(self) -> Option<DynamicSpec> {
        match self.weight {
            SparseWeight::Dynamic(dynamic) => Some(dynamic),
            SparseWeight::Float | SparseWeight::Int4 => None,
        }
    }

    /// Activation f of the epilogue.
    pub(super) fn activation(self) -> Option<Activation> {
        self.dynamic().and_then(|dynamic| dynamic.activation)
    }

    /// Bits of a nonzero weight.
    pub(super) fn bits(self) -> usize {
        match self.weight {
            SparseWeight::Float => 8 * self.kind.width(),
            SparseWeight::Int4 => 4,
            SparseWeight::Dynamic(_) => 8,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Formats of the tests.
    pub(in crate::native) mod formats {
        use super::*;

        pub(in crate::native) fn int8(dtype: Dtype) -> Format {
            Format::symmetric(8, Grouping::Row, dtype, dtype)
        }

        pub(in crate::native) fn e4m3() -> Format {
            Format::float8(Element::E4m3, Grouping::Row, Dtype::F32)
        }

        /// uint4 with scales and zero points of a dtype.
        pub(in crate::native) fn int4(group: usize, dtype: Dtype) -> Format {
            Format::tinygemm(Grouping::Block(group as u32), dtype)
        }
    }

    pub(in crate::native) fn weight_only(kind: Dtype, weight: Format) -> PackedSpec {
        PackedSpec { kind, weight, input: None, has_input_scales: false }
    }

    /// Every specification without epilogue, with one scale per row and with one per tensor.
    pub(in crate::native) fn dynamic_specs() -> impl Iterator<Item = DynamicSpec> {
        let before = [Prologue::None, Prologue::LayerNorm, Prologue::RmsNorm, Prologue::Activation(Activation::Gelu)];
        let formats = |kind: Dtype, grouping: Grouping| {
            let int8_input = |scale| {
                let method = QuantMethod::Symmetric { min: -127, max: 127, epsilon: 1e-5 };
                Format::symmetric(8, grouping, kind, scale).with_method(method)
            };
            let scale = if kind == Dtype::F16 { Dtype::F32 } else { kind };
            let e4m3 = Format::float8(Element::E4m3, grouping, kind);
            let grouped = Format::qqq(Grouping::Block(DynamicSpec::GROUP_SIZE as u32), kind);
            let symmetric = |bits, scale| Format::symmetric(bits, grouping, kind, scale);
            [
                (symmetric(8, kind), int8_input(scale)),
                (e4m3, e4m3),
                (symmetric(4, Dtype::F32), symmetric(8, Dtype::F32)),
                (grouped, int8_input(Dtype::F32)),
            ]
        };
        let kinds = Dtype::ALL.into_iter().flat_map(|kind| [0, 1, 2, 3].map(|format| (kind, format)));
        let groupings = kinds.flat_map(|it| [Grouping::Row, Grouping::Tensor].map(|grouping| (it, grouping)));
        groupings.flat_map(move |((kind, format), grouping)| {
            let (weight, input) = formats(kind, grouping)[format];
            let accumulation = Float8Accumulation::Promoted;
            let (activation, has_addend) = (None, false);
            before.map(|prologue| DynamicSpec { kind, weight, input, accumulation, prologue, activation, has_addend })
        })
    }

    fn dynamic(weight: Format, input: Format) -> LayerSpec {
        LayerSpec::dynamic(weight.compute_dtype, weight, input, MatmulMode::QuantizedValues(weight.compute_dtype))
    }

    #[test]
    fn a_changed_epsilon_of_an_integer_input_is_supported() {
        let spec = dynamic_specs().next().unwrap();
        for epsilon in [1e-5, 1e-4, f32::EPSILON] {
            let method = QuantMethod::Symmetric { min: -127, max: 127, epsilon };
            let layer = dynamic(spec.weight.with_method(method), spec.input.with_method(method));
            assert_eq!(DynamicSpec::parse(&layer).map(|spec| spec.input.method), Ok(method));
        }
        let float = Format::float8(Element::E4m3, Grouping::Row, Dtype::Bf16);
        assert!(DynamicSpec::parse(&dynamic(float, float)).is_ok());
        let bounded = float.with_method(QuantMethod::Floats { epsilon: 1e-6 });
        assert!(DynamicSpec::parse(&dynamic(bounded, float)).is_ok(), "the weight is quantized on the host");
        let rejection = DynamicSpec::parse(&dynamic(float, bounded)).unwrap_err();
        assert!(matches!(rejection, Rejection::Spec(_)), "the kernel has no lower bound: {rejection}");
    }

    #[test]
    fn unsupported_formats_and_groups_are_rejected() {
        let check = |format| PackedSpec::parse(&LayerSpec::weight_only(Dtype::Bf16, format));
        let int4 = formats::int4(32, Dtype::Bf16);
        for group in [0, 1, 31, 44] {
            assert!(matches!(check(formats::int4(group, Dtype::Bf16)), Err(Rejection::Spec(_))), "{group}");
        }
        let unknown = [
            Format { grouping: Grouping::Row, ..int4 },
            Format { grouping: Grouping::Tensor, ..formats::int8(Dtype::Bf16) },
            Format { zero: ZeroPoint::None, ..int4 },
            Format { element: Element::E5m2, ..formats::e4m3() },
            Format { scale: Element::E2m1, ..int4 },
            Format { sparse_2to4: true, ..int4 },
        ];
        for format in unknown {
            assert!(matches!(check(format), Err(Rejection::Spec(_))), "{format:?}");
        }
        for spec in super::super::packed_weight::tests::all_specs() {
            let layer = match spec.input {
                None => LayerSpec::weight_only(spec.kind, spec.weight),
                Some(input) => LayerSpec::dynamic(spec.kind, spec.weight, input, MatmulMode::Values),
            };
            assert_eq!(PackedSpec::parse(&layer), Ok(spec));
        }
    }

    #[test]
    fn integer_sums_bound_k() {
        for spec in dynamic_specs() {
            let accurate = |k| spec.check_accumulators(k);
            match spec.max_exact_k() {
                Some(max) => {
                    let largest_product = if spec.is_int4() && !spec.is_grouped() { 128 * 128 } else { 127 * 128 };
                    assert_eq!((max, accurate(max)), (i32::MAX as usize / largest_product, Ok(())));
                    let rejected_size = accurate(max + 1).map_err(|rejection| match rejection {
                        Rejection::Size { max, value, .. } => (max, value),
                        other => panic!("{other}"),
                    });
                    assert_eq!(rejected_size, Err((max, max + 1)));
                }
                None if spec.kind == Dtype::F32 => assert!(matches!(accurate(4096), Err(Rejection::Accuracy(_)))),
                None => assert_eq!(accurate(4096), Ok(())),
            }
        }
    }
}
