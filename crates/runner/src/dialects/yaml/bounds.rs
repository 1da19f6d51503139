//! Limits of configuration files, checked before parsing. The parser needs far more memory than the text, time
//! quadratic in the nesting depth, and as much space as its aliases expand to.

use super::events::{EventKind, YamlEvents};
use std::collections::HashMap;

/// Maximum size of a file in bytes, also with all aliases expanded.
pub(crate) const MAX_FILE_BYTES: u64 = 4 << 20;
/// Maximum nesting depth; our own files use eight levels.
const MAX_DEPTH: usize = 64;
/// Maximum keys of a map; the parser compares them pairwise.
const MAX_KEYS: u64 = 1000;
/// Maximum directives; the parser compares them pairwise.
const MAX_DIRECTIVES: usize = 16;

/// List or map that has not ended.
struct OpenNode {
    anchor: Option<Vec<u8>>,
    /// Length of the text before it.
    start: u64,
    /// Number of keys and values so far, for maps.
    children: Option<u64>,
}

/// Checks the limits; the error names the exceeded one and a remedy. Syntax errors are reported by `syntax`.
pub(super) fn check(text: &str) -> Result<(), String> {
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("file larger than {} MiB; list shapes in a CSV file", MAX_FILE_BYTES >> 20));
    }
    if text.lines().filter(|line| line.starts_with('%')).count() > MAX_DIRECTIVES {
        return Err(format!("more than {MAX_DIRECTIVES} directives (lines that start with %); remove them"));
    }
    let (mut open, mut length) = (Vec::<OpenNode>::new(), 0u64);
    // Length of each anchored value with its own aliases expanded.
    let mut anchored: HashMap<Vec<u8>, u64> = HashMap::new();
    for event in YamlEvents::new(text).into_iter().flatten() {
        let begins = !matches!(event.kind, EventKind::End | EventKind::Document | EventKind::Boundary);
        if let Some(OpenNode { children: Some(held), .. }) = open.last_mut().filter(|_| begins) {
            *held += 1;
            if *held > 2 * MAX_KEYS {
                return Err(format!("map with more than {MAX_KEYS} keys; split it"));
            }
        }
        let before = length;
        match event.kind {
            EventKind::List { anchor, .. } => open.push(OpenNode { anchor, start: before, children: None }),
            EventKind::Map { anchor, .. } => open.push(OpenNode { anchor, start: before, children: Some(0) }),
            EventKind::End => {
                if let Some(OpenNode { anchor: Some(anchor), start: before, .. }) = open.pop() {
                    anchored.insert(anchor, length - before);
                }
            }
            EventKind::Scalar { anchor, value, .. } => {
                let bytes = value.len() as u64;
                length = length.saturating_add(bytes);
                anchored.extend(anchor.map(|anchor| (anchor, bytes)));
            }
            EventKind::Alias(anchor) => {
                length = length.saturating_add(anchored.get(&anchor).copied().unwrap_or(0));
            }
            EventKind::Document | EventKind::Boundary => {}
        }
        // Separator between values.
        length = length.saturating_add(begins.into());
        if open.len() > MAX_DEPTH {
            return Err(format!("lists and maps nested deeper than {MAX_DEPTH}; check for unclosed brackets"));
        }
        if length > MAX_FILE_BYTES {
            let max = MAX_FILE_BYTES >> 20;
            return Err(format!("file larger than {max} MiB with aliases expanded; use fewer aliases"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversized_and_deeply_nested_files_are_refused() {
        let doubled = |times: usize| {
            let pairs = (1..times).map(|at| format!("a{at}: &a{at} [*a{0}, *a{0}]\n", at - 1));
            format!("a0: &a0 [1234567]\n{}", pairs.collect::<String>())
        };
        let keys = |count: usize| (0..count).map(|key| format!("k{key}: 1\n")).collect::<String>();
        for (text, message) in [
            (format!("a: {}", "[".repeat(100_000)), "lists and maps nested deeper than 64"),
            ("{a: ".repeat(65), "lists and maps nested deeper than 64"),
            ("- ".repeat(65), "lists and maps nested deeper than 64"),
            (doubled(30), "file larger than 4 MiB with aliases expanded"),
            (keys(1001), "map with more than 1000 keys"),
            ("%TAG !a! b\n".repeat(17), "more than 16 directives"),
            ("[1,".repeat(2 << 20), "file larger than 4 MiB"),
        ] {
            let error = check(&text).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
        let text = "[1]".repeat(100_000);
        for fine in [&format!("a: {}1{}", "[".repeat(63), "]".repeat(63)), &doubled(15), &keys(1000), "a: [", &text] {
            assert_eq!(check(fine), Ok(()));
        }
        assert_eq!(check(&format!("[{}]", "1,".repeat((2 << 20) - 2))), Ok(()));
    }
}
