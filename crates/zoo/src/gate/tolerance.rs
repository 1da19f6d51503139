//! How far a right output may be from its reference.

use super::Bias;
use calorimeter_recipes::Dtype;
use calorimeter_recipes::format::Format;

/// How far a correct output may be from its reference.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tolerance {
    /// Bound of the relative error in the Euclidean norm.
    pub rel_l2: f64,
    /// Bound of one element's error, relative to the larger of its reference and the reference's root mean square.
    pub element: f64,
    /// How far the slope of the output on its reference may be from one, besides chance. Codes have none: a step of theirs
    /// is wider than what a slope is to show.
    pub slope: Option<f64>,
    /// Whether both factors of its products were computed, and none was given: the values of a column then share errors as those
    /// of a row do.
    pub both_computed: bool,
    /// How many products the shortest sums have whose factors were computed, where that is known: all columns share their errors.
    pub computed: Option<u64>,
}

/// Unit roundoff of the accumulators: every implementation sums in f32.
const ACCUMULATOR: f64 = 1.0 / (1u64 << 24) as f64;

/// How far TF32, the f32 operand type of tensor cores, is from f32: what does not fit is cut off, not rounded.
const TF32: f64 = 1.0 / (1u64 << 10) as f64;

/// How much louder than what a typical step is told for a row's largest number is, in the norm of all and for a single value.
const LOUDEST: [f64; 2] = [2.0, 4.0];

impl Tolerance {
    /// For outputs rounded `roundings` times in a row to a dtype, after sums of `depth` products.
    pub fn new(dtype: Dtype, roundings: u32, depth: u64) -> Self {
        // Independent rounding errors add in quadrature; so do those of a sum's steps.
        let rounding = dtype.unit_roundoff() * f64::from(roundings).sqrt();
        let summing = ACCUMULATOR * (depth as f64).sqrt();
        // An error is at most about three times its root mean square, one element among millions about twice that.
        Self {
            rel_l2: 1.5 * rounding + 4.0 * summing,
            element: 4.0 * rounding + 16.0 * summing,
            // One rounding that cuts off, and sums that err one way.
            slope: Some(dtype.unit_roundoff() + 4.0 * summing),
            both_computed: false,
            computed: None,
        }
    }

    /// The same where factors of so many products were computed and rounded.
    pub fn of_computed(self, factors: u64) -> Self {
        Self { computed: Some(factors), ..self }
    }

    /// The same for an output that is stored as codes, whose steps are so many times as wide.
    pub fn of_codes(self, times: f64) -> Self {
        Self { rel_l2: times * self.rel_l2, element: times * self.element, slope: None, ..self }
    }

    /// The same where inputs of `layers` layers in a row, `width` numbers wide, are quantized after errors of this size.
    /// Those that come to lie on the other side of a boundary are off by a whole step: on the whole that is the geometric
    /// mean of a rounding and a step, and in one row it may be a single step among `width` numbers. Where a scale is the
    /// tensor's and the reference does not know the `whole`, its largest value may be elsewhere: all are off by a step.
    pub fn with_requantized(self, before: f64, layers: u32, width: u64, format: Format, whole: bool) -> Self {
        let step = format.typical_step();
        let known = whole || !format.looks_at_the_whole_tensor();
        let crossed = if known { (before * step).sqrt() } else { step };
        let error = |single: f64| (crossed + single / (width as f64).sqrt()) * f64::from(layers).sqrt();
        // A largest number that lies on a border is louder than others, and so may be what it is multiplied by.
        let [on_the_whole, most] = if format.splits_its_largest() { LOUDEST } else { [1.0; 2] };
        Self {
            rel_l2: self.rel_l2 + error(on_the_whole * step),
            element: self.element + 6.0 * error(most * step),
            ..self
        }
    }

    /// The same for gradients behind a function whose slope jumps: of numbers with errors of this size half of such a share lies
    /// on the other side, each off by a whole slope. On the whole that adds up to the root of the share, and in one row it may
    /// be a single number among `width`.
    pub fn with_kinks(self, before: f64, width: u64) -> Self {
        let error = (before / 2.0).sqrt();
        Self {
            rel_l2: self.rel_l2 + error,
            element: self.element + 6.0 * (error + 1.0 / (width as f64).sqrt()),
            ..self
        }
    }

    /// The same where `layers` layers in a row add up `depth` products in the registers of tensor cores. Hopper's keep 14 bits,
    /// and cut off the rest of the sum every 32 products, always toward zero.
    pub fn with_fast_sums(self, layers: u32, depth: u64) -> Self {
        let error = fast_sums(layers, depth);
        Self {
            rel_l2: self.rel_l2 + error,
            element: self.element + 6.0 * error,
            slope: self.slope.map(|slope| slope + cut_off(depth) * f64::from(layers)),
            ..self
        }
    }

    /// The same where both operands of every product were rounded to TF32, in `products` layers in a row.
    pub fn with_tf32(self, products: u32) -> Self {
        let rounding = tf32_rounding(products);
        Self {
            rel_l2: self.rel_l2 + 1.5 * rounding,
            element: self.element + 4.0 * rounding,
            // Both operands lose half a step. What a bias and an activation leave of a sum may be a third of it.
            slope: self.slope.map(|slope| slope + 3.0 * TF32 * f64::from(products)),
            ..self
        }
    }
}

/// What sums of `depth` products lose in the registers of tensor cores, always toward zero.
fn cut_off(depth: u64) -> f64 {
    depth as f64 / 32.0 / f64::from(1u32 << 14)
}

/// The error of `layers` layers in a row that add up `depth` products there.
pub(crate) fn fast_sums(layers: u32, depth: u64) -> f64 {
    (cut_off(depth) + 1.0 / f64::from(1u32 << 12)) * f64::from(layers).sqrt()
}

/// The error of `products` layers in a row with both operands of every product rounded to TF32.
pub(crate) fn tf32_rounding(products: u32) -> f64 {
    TF32 * f64::from(2 * products).sqrt()
}

impl Bias {
    /// For outputs in a dtype after layers in a row whose sums have so many products.
    pub fn new(dtype: Dtype, depths: &[u64]) -> Self {
        // One of the roundings to the dtype may cut off, and tensor cores cut off each step of their sums.
        let sums = ACCUMULATOR * depths.iter().sum::<u64>() as f64;
        Self {
            floor: dtype.unit_roundoff() + sums,
            depth: depths.iter().copied().min().unwrap_or(1),
            both_computed: false,
        }
    }

    /// The same where such sums are made in the registers of tensor cores.
    pub fn with_fast_sums(self, depths: &[u64]) -> Self {
        Self { floor: self.floor + depths.iter().map(|&depth| cut_off(depth)).sum::<f64>(), ..self }
    }

    /// The same where inputs are quantized after they were computed: a row that hangs on its largest number alone may be off
    /// by half of one of its codes.
    pub fn with_requantized(self, format: Format) -> Self {
        let half = if format.splits_its_largest() { 1.0 / f64::from(1u32 << format.bits()) } else { 0.0 };
        Self { floor: self.floor + half, ..self }
    }

    /// The same where operands are cut to TF32: both lose half a step, and so on in `layers` layers in a row.
    pub fn with_tf32(self, layers: u32) -> Self {
        Self { floor: self.floor + TF32 * f64::from(layers), ..self }
    }
}
