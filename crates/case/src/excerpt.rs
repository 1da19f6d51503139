//! Long texts in short sentences.

/// The text, without its middle where it has more than twice so many characters.
///
/// ```
/// assert_eq!(calorimeter_case::excerpt("0123456789", 2), "01 […] 89");
/// ```
pub fn excerpt(text: &str, kept: usize) -> String {
    let characters = text.chars().count();
    if characters <= 2 * kept {
        return text.to_owned();
    }
    let head: String = text.chars().take(kept).collect();
    let tail: String = text.chars().skip(characters - kept).collect();
    format!("{head} […] {tail}")
}
