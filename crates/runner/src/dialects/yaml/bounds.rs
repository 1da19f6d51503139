//! Limits of configuration files, checked before parsing. The parser needs far more memory than the text, time
//! quadratic in the nesting depth, and as much space as its aliases expand to.

use super::events::{Event, Events};
use std::collections::HashMap;

/// Maximum size of a file in bytes, also with all aliases expanded.
pub const MOST_BYTES: u64 = 4 << 20;
/// Maximum nesting depth; our own files use eight levels.
const MOST_DEEP: usize = 64;
/// Maximum keys of a map; the parser compares them pairwise.
const MOST_KEYS: u64 = 1000;
/// Maximum directives; the parser compares them pairwise.
const MOST_DIRECTIVES: usize = 16;

/// List or map that has not ended.
struct Open {
    anchor: Option<Vec<u8>>,
    /// Length of the text before it.
    before: u64,
    /// Number of keys and values so far, for maps.
    held: Option<u64>,
}

/// Checks the limits; the error names the exceeded one and a remedy. Syntax errors are left to the parser.
pub fn check(text: &str) -> Result<(), String> {
    if text.len() as u64 > MOST_BYTES {
        return Err(format!("file larger than {} MiB; list shapes in a CSV file", MOST_BYTES >> 20));
    }
    if text.lines().filter(|line| line.starts_with('%')).count() > MOST_DIRECTIVES {
        return Err(format!("more than {MOST_DIRECTIVES} directives (lines that start with %); remove them"));
    }
    let (mut open, mut length) = (Vec::<Open>::new(), 0u64);
    // Length of each anchored value with its own aliases expanded.
    let mut anchored: HashMap<Vec<u8>, u64> = HashMap::new();
    for event in Events::of(text).into_iter().flatten() {
        let begins = !matches!(event, Event::End | Event::Between);
        if let Some(Open { held: Some(held), .. }) = open.last_mut().filter(|_| begins) {
            *held += 1;
            if *held > 2 * MOST_KEYS {
                return Err(format!("map with more than {MOST_KEYS} keys; split it"));
            }
        }
        let before = length;
        match event {
            Event::List { anchor } => open.push(Open { anchor, before, held: None }),
            Event::Map { anchor } => open.push(Open { anchor, before, held: Some(0) }),
            Event::End => {
                if let Some(Open { anchor: Some(anchor), before, .. }) = open.pop() {
                    anchored.insert(anchor, length - before);
                }
            }
            Event::Scalar { anchor, bytes } => {
                length = length.saturating_add(bytes);
                anchored.extend(anchor.map(|anchor| (anchor, bytes)));
            }
            Event::Alias(anchor) => {
                length = length.saturating_add(anchored.get(&anchor).copied().unwrap_or(0));
            }
            Event::Between => {}
        }
        // Separator between values.
        length = length.saturating_add(begins.into());
        if open.len() > MOST_DEEP {
            return Err(format!("lists and maps nested deeper than {MOST_DEEP}; check for unclosed brackets"));
        }
        if length > MOST_BYTES {
            let max = MOST_BYTES >> 20;
            return Err(format!("file larger than {max} MiB with aliases expanded; use fewer aliases"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_take_all_memory_or_time_is_refused() {
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
