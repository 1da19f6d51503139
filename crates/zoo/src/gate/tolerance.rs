//! Error bounds of correct outputs.

use super::Bias;
use calorimeter_recipes::Dtype;
use calorimeter_recipes::format::Format;

/// Error bounds of a correct output.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tolerance {
    /// Maximum relative L2 error.
    pub rel_l2: f64,
    /// Maximum error of an element, relative to the larger of its reference and the expected magnitude.
    pub element: f64,
    /// Allowed deviation of the slope (output against reference) from 1, apart from random errors. `None` for quantized
    /// outputs, whose steps are wider than the deviation to be detected.
    pub slope: Option<f64>,
    /// True if both factors of the matmul were computed rather than given, so that values of a column share errors as
    /// values of a row do.
    pub both_computed: bool,
    /// Terms of the shortest dot product with computed factors, if known. Their errors are common to all columns.
    pub computed_depth: Option<u64>,
}

/// Unit roundoff of the accumulators: every implementation accumulates in f32.
const ACCUMULATOR: f64 = 1.0 / (1u64 << 24) as f64;

/// Relative step of TF32, the f32 operand type of tensor cores, which truncates instead of rounding.
const TF32: f64 = 1.0 / (1u64 << 10) as f64;

/// Factors by which the amax of a row exceeds the typical step, for the norm and for a single element.
const AMAX_FACTORS: [f64; 2] = [2.0, 4.0];

impl Tolerance {
    /// Tolerance of outputs rounded `roundings` times to a dtype, after dot products of `depth` terms.
    pub fn new(dtype: Dtype, roundings: u32, depth: u64) -> Self {
        // Independent rounding errors add in quadrature, and so do the steps of an accumulation.
        let rounding = dtype.unit_roundoff() * f64::from(roundings).sqrt();
        let summing = ACCUMULATOR * (depth as f64).sqrt();
        // An error is at most about three times its root mean square, for one element among millions about six times.
        Self {
            rel_l2: 1.5 * rounding + 4.0 * summing,
            element: 4.0 * rounding + 16.0 * summing,
            // One truncation, and accumulation errors of one sign.
            slope: Some(dtype.unit_roundoff() + 4.0 * summing),
            both_computed: false,
            computed_depth: None,
        }
    }

    /// Tolerance if `factors` terms of each dot product were computed and rounded.
    pub fn with_computed_factors(self, factors: u64) -> Self {
        Self { computed_depth: Some(factors), ..self }
    }

    /// Tolerance of a quantized output whose steps are `times` as wide.
    pub fn with_quantized_output(self, times: f64) -> Self {
        Self { rel_l2: times * self.rel_l2, element: times * self.element, slope: None, ..self }
    }

    /// Tolerance if inputs of `layers` consecutive layers, `width` elements wide, are quantized after errors of size
    /// `before`.
    ///
    /// Elements that cross a quantization boundary are off by a whole step. On average the error is the geometric mean
    /// of the earlier error and a step; in one row it may be a single step among `width` elements. If the scale belongs
    /// to the tensor and the reference does not compute the `whole` tensor, its amax may be elsewhere and all elements
    /// are off by a step.
    pub fn with_requantized(self, before: f64, layers: u32, width: u64, format: Format, whole: bool) -> Self {
        let step = format.typical_step();
        let known = whole || !format.needs_tensor_amax();
        let crossed = if known { (before * step).sqrt() } else { step };
        let error = |single: f64| (crossed + single / (width as f64).sqrt()) * f64::from(layers).sqrt();
        // An amax on a boundary is larger than other elements, and so may be the weight that it is multiplied by.
        let [on_the_whole, most] = if format.has_amax_between_values() { AMAX_FACTORS } else { [1.0; 2] };
        Self {
            rel_l2: self.rel_l2 + error(on_the_whole * step),
            element: self.element + 6.0 * error(most * step),
            ..self
        }
    }

    /// Tolerance of gradients of a function with a discontinuous derivative.
    ///
    /// Half of the elements with errors of size `before` fall on the wrong side of the discontinuity, each off by the
    /// whole derivative. The norm grows by the root of their share; in one row it may be a single element among
    /// `width`.
    pub fn with_kinks(self, before: f64, width: u64) -> Self {
        let error = (before / 2.0).sqrt();
        Self {
            rel_l2: self.rel_l2 + error,
            element: self.element + 6.0 * (error + 1.0 / (width as f64).sqrt()),
            ..self
        }
    }

    /// Tolerance with fast accumulation in `layers` consecutive layers of depth `depth`.
    ///
    /// Hopper's tensor cores accumulate 14 bits and truncate toward zero every 32 terms.
    pub fn with_fast_accumulation(self, layers: u32, depth: u64) -> Self {
        let error = fast_accumulation_error(layers, depth);
        Self {
            rel_l2: self.rel_l2 + error,
            element: self.element + 6.0 * error,
            slope: self.slope.map(|slope| slope + truncation_error(depth) * f64::from(layers)),
            ..self
        }
    }

    /// Tolerance with both operands of every matmul rounded to TF32, in `products` consecutive matmuls.
    pub fn with_tf32(self, products: u32) -> Self {
        let rounding = tf32_error(products);
        Self {
            rel_l2: self.rel_l2 + 1.5 * rounding,
            element: self.element + 4.0 * rounding,
            // Both operands lose half a step on average. After bias and activation a third of a sum may remain.
            slope: self.slope.map(|slope| slope + 3.0 * TF32 * f64::from(products)),
            ..self
        }
    }
}

/// Relative truncation of a dot product of `depth` terms with fast accumulation, always toward zero.
fn truncation_error(depth: u64) -> f64 {
    depth as f64 / 32.0 / f64::from(1u32 << 14)
}

/// Error of `layers` consecutive layers of depth `depth` with fast accumulation.
pub(crate) fn fast_accumulation_error(layers: u32, depth: u64) -> f64 {
    (truncation_error(depth) + 1.0 / f64::from(1u32 << 12)) * f64::from(layers).sqrt()
}

/// Error of `products` consecutive matmuls with both operands rounded to TF32.
pub(crate) fn tf32_error(products: u32) -> f64 {
    TF32 * f64::from(2 * products).sqrt()
}

impl Bias {
    /// Bias limit of outputs after consecutive layers with dot products of these depths.
    pub fn new(dtype: Dtype, depths: &[u64]) -> Self {
        // One of the roundings to the dtype may truncate, and tensor cores truncate each accumulation step.
        let sums = ACCUMULATOR * depths.iter().sum::<u64>() as f64;
        Self {
            floor: dtype.unit_roundoff() + sums,
            depth: depths.iter().copied().min().unwrap_or(1),
            both_computed: false,
        }
    }

    /// Bias limit with fast accumulation in layers of these depths.
    pub fn with_fast_accumulation(self, depths: &[u64]) -> Self {
        Self { floor: self.floor + depths.iter().map(|&depth| truncation_error(depth)).sum::<f64>(), ..self }
    }

    /// Bias limit if inputs are quantized after they were computed: a row dominated by its amax may be off by half a
    /// step.
    pub fn with_requantized(self, format: Format) -> Self {
        let half = if format.has_amax_between_values() { 1.0 / f64::from(1u32 << format.bits()) } else { 0.0 };
        Self { floor: self.floor + half, ..self }
    }

    /// Bias limit if both operands are truncated to TF32 in `layers` consecutive layers: each loses half a step on
    /// average.
    pub fn with_tf32(self, layers: u32) -> Self {
        Self { floor: self.floor + TF32 * f64::from(layers), ..self }
    }
}
