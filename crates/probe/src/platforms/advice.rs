//! Advice of `doctor` about a platform.

/// Advice of `doctor` about a platform: a heading and rows, or a sentence without rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// Heading, or a sentence.
    pub heading: String,
    /// Rows of a name and a text.
    pub rows: Vec<(String, String)>,
}

impl From<String> for Advice {
    fn from(heading: String) -> Self {
        Self { heading, rows: Vec::new() }
    }
}
