//! The range of some numbers.

/// The least and greatest of some numbers; none if one of them is not finite.
#[inline(always)]
pub(crate) fn extremes(values: &[f32]) -> Option<(f32, f32)> {
    // Integers that are ordered as the floats are: comparisons of floats, with their NaNs, are not vectorized.
    let key = |x: f32| (x.to_bits() as i32) ^ (((x.to_bits() as i32) >> 31) & i32::MAX);
    let number = |key: i32| f32::from_bits((key ^ ((key >> 31) & i32::MAX)) as u32);
    let (mut low, mut high) = (i32::MAX, i32::MIN);
    for &x in values {
        low = low.min(key(x));
        high = high.max(key(x));
    }
    let (low, high) = (number(low), number(high));
    // Infinities and NaNs of either sign lie beyond the finite numbers in this order.
    (low.is_finite() && high.is_finite()).then_some((low, high))
}
