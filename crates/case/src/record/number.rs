//! What is left out of the JSON.

/// The one place where infinities and NaN become absent.
pub fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

pub(super) fn no_number(value: &Option<f64>) -> bool {
    value.and_then(finite).is_none()
}

pub(super) fn is_zero(value: &u32) -> bool {
    *value == 0
}
