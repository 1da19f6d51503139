//! Numeric values that are omitted from the JSON.

/// Returns `None` for infinities and NaN. All floats of a record pass through this function.
pub fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// True for `None`, infinities and NaN.
pub(super) fn is_not_finite(value: &Option<f64>) -> bool {
    value.and_then(finite).is_none()
}

pub(super) fn is_zero(value: &u32) -> bool {
    *value == 0
}
