//! How large a configuration file may be, found out before anything is made of it: reading takes far more memory than its
//! text, time that grows with the square of how deep it is nested, and whatever its aliases stand for.

use super::events::{Event, Events};
use std::collections::HashMap;

/// The longest text, in bytes; with every alias written out it is no longer either.
pub const MOST_BYTES: u64 = 4 << 20;
/// Our own files are nested eight deep.
const MOST_DEEP: usize = 64;
/// Keys are compared with each other.
const MOST_KEYS: u64 = 1000;
/// So are directives, of which no file here has one.
const MOST_DIRECTIVES: usize = 16;

/// A list or a map that has not ended.
struct Open {
    anchor: Option<Vec<u8>>,
    /// The length of everything before.
    before: u64,
    /// What it holds so far, of a map.
    held: Option<u64>,
}

/// Whether a text is within bounds, or what is out of them and what to do. What is no YAML is left to its reader.
pub fn check(text: &str) -> Result<(), String> {
    if text.len() as u64 > MOST_BYTES {
        return Err(format!("it is longer than {} MiB, the most that is read; list shapes in a CSV", MOST_BYTES >> 20));
    }
    if text.lines().filter(|line| line.starts_with('%')).count() > MOST_DIRECTIVES {
        return Err(format!("more than {MOST_DIRECTIVES} lines begin with %; leave them out"));
    }
    let (mut open, mut length) = (Vec::<Open>::new(), 0u64);
    // What stands at each anchor, as long as it is with its own aliases written out.
    let mut anchored: HashMap<Vec<u8>, u64> = HashMap::new();
    for event in Events::of(text).into_iter().flatten() {
        let begins = !matches!(event, Event::End | Event::Between);
        if let Some(Open { held: Some(held), .. }) = open.last_mut().filter(|_| begins) {
            *held += 1;
            if *held > 2 * MOST_KEYS {
                return Err(format!("a map has more than {MOST_KEYS} keys; make it shorter"));
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
        // What separates one from the next.
        length = length.saturating_add(begins.into());
        if open.len() > MOST_DEEP {
            return Err(format!("lists and maps are nested more than {MOST_DEEP} deep; is a bracket never closed?"));
        }
        if length > MOST_BYTES {
            let most = MOST_BYTES >> 20;
            return Err(format!("with its aliases written out it is longer than {most} MiB; use fewer of them"));
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
        for (text, says) in [
            (format!("a: {}", "[".repeat(100_000)), "lists and maps are nested more than 64 deep"),
            ("{a: ".repeat(65), "lists and maps are nested more than 64 deep"),
            ("- ".repeat(65), "lists and maps are nested more than 64 deep"),
            (doubled(30), "with its aliases written out it is longer than 4 MiB"),
            (keys(1001), "a map has more than 1000 keys"),
            ("%TAG !a! b\n".repeat(17), "more than 16 lines begin with %"),
            ("[1,".repeat(2 << 20), "it is longer than 4 MiB"),
        ] {
            let error = check(&text).unwrap_err();
            assert!(error.starts_with(says), "{error}");
        }
        let text = "[1]".repeat(100_000);
        for fine in [&format!("a: {}1{}", "[".repeat(63), "]".repeat(63)), &doubled(15), &keys(1000), "a: [", &text] {
            assert_eq!(check(fine), Ok(()));
        }
        assert_eq!(check(&format!("[{}]", "1,".repeat((2 << 20) - 2))), Ok(()));
    }
}
