//! What a check comes to.

use serde::Serialize;

/// One thing that must hold if times are to be believed, or that a reader of them should know.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// What.
    pub name: &'static str,
    /// Whether it holds; absent where it does not apply to the device, nobody can say, or it is a matter of taste.
    pub passed: Option<bool>,
    /// The figure that was found, or why it does not apply.
    pub found: String,
    /// What it should be.
    pub wanted: &'static str,
    /// What to do about it, where it makes no time wrong and is still not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<&'static str>,
}
