//! Minimum and maximum of a slice.

/// Returns minimum and maximum; `None` if a value is not finite.
#[inline(always)]
pub(crate) fn min_max(values: &[f32]) -> Option<(f32, f32)> {
    // Maps floats to integers of equal order: comparisons of floats, which handle NaN, are not vectorized.
    let key = |x: f32| (x.to_bits() as i32) ^ (((x.to_bits() as i32) >> 31) & i32::MAX);
    let number = |key: i32| f32::from_bits((key ^ ((key >> 31) & i32::MAX)) as u32);
    let (mut low, mut high) = (i32::MAX, i32::MIN);
    for &x in values {
        low = low.min(key(x));
        high = high.max(key(x));
    }
    let (low, high) = (number(low), number(high));
    // In this order infinities and NaNs of either sign lie outside the range of finite values.
    (low.is_finite() && high.is_finite()).then_some((low, high))
}
