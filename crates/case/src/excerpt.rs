//! Shortening of long texts.

/// Shortens a text to its first and last `length` characters; texts of up to twice that length are unchanged.
///
/// ```
/// assert_eq!(calorimeter_case::excerpt("0123456789", 2), "01 […] 89");
/// ```
pub fn excerpt(text: &str, length: usize) -> String {
    let characters = text.chars().count();
    if characters <= 2 * length {
        return text.to_owned();
    }
    let head: String = text.chars().take(length).collect();
    let tail: String = text.chars().skip(characters - length).collect();
    format!("{head} […] {tail}")
}
