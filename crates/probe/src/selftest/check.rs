//! Result of a check.

use serde::Serialize;

/// Property that times depend on, or a setting that users should know.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// Name of the check.
    pub name: &'static str,
    /// True if it passes; `None` if it does not apply, is inconclusive or only informs.
    pub passed: Option<bool>,
    /// Measured value, or the reason why the check does not apply.
    pub found: String,
    /// Expected result.
    pub wanted: &'static str,
    /// Recommendation for a setting that is not ideal but does not invalidate times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<&'static str>,
}
