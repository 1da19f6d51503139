//! Position of a value in a file.

use super::events::{EventKind, Mark, YamlEvent, YamlEvents};

/// Step from a list or map to a value in it.
#[derive(Clone, Copy)]
pub(crate) enum Step<'a> {
    /// Value of a key with one of these names.
    Key(&'a [&'a str]),
    /// Item of a list. A map in place of a list is its only item.
    Item(usize),
}

/// Position of a value, or of the innermost list or map around a missing value.
pub(super) fn position(text: &str, path: &[Step]) -> Mark {
    let start = Mark { index: 0, line: 0, column: 0 };
    let Some(mut events) = YamlEvents::new(text) else { return start };
    let root = events.find(|event| !matches!(event.kind, EventKind::Document | EventKind::Boundary));
    root.map_or(start, |root| find(&mut events, &root, path))
}

fn find(events: &mut YamlEvents, value: &YamlEvent, path: &[Step]) -> Mark {
    match (&value.kind, path) {
        (EventKind::Map { .. }, [Step::Key(names), rest @ ..]) => {
            while let Some((key, item)) = next_value(events).and_then(|key| {
                let name = skip(events, key);
                Some((name, next_value(events)?))
            }) {
                if key.is_some_and(|key| names.iter().any(|name| name.as_bytes() == key)) {
                    return find(events, &item, rest);
                }
                skip(events, item);
            }
            value.start
        }
        (EventKind::List { .. }, [Step::Item(index), rest @ ..]) => {
            for _ in 0..*index {
                let Some(item) = next_value(events) else { return value.start };
                skip(events, item);
            }
            next_value(events).map_or(value.start, |item| find(events, &item, rest))
        }
        (EventKind::Map { .. }, [Step::Item(0), rest @ ..]) => find(events, value, rest),
        _ => value.start,
    }
}

/// Next value of the current list or map; `None` at its end.
fn next_value(events: &mut YamlEvents) -> Option<YamlEvent> {
    events.next().filter(|event| !matches!(event.kind, EventKind::End))
}

/// Skips the content of a value. Returns the text of a scalar.
fn skip(events: &mut YamlEvents, value: YamlEvent) -> Option<Vec<u8>> {
    match value.kind {
        EventKind::Scalar { value, .. } => return Some(value),
        EventKind::List { .. } | EventKind::Map { .. } => {
            let mut depth = 1;
            while depth > 0
                && let Some(event) = events.next()
            {
                match event.kind {
                    EventKind::List { .. } | EventKind::Map { .. } => depth += 1,
                    EventKind::End => depth -= 1,
                    _ => {}
                }
            }
        }
        _ => {}
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_or_their_surroundings() {
        let text = "# text\nrecipes: [a]\nmodels:\n  - {x: [[1], 2]}\n  - shapes: [[1], {name: b}, [2]]\n";
        let models = Step::Key(&["model_params", "models"]);
        let shapes = Step::Key(&["shapes"]);
        for (path, line, column) in [
            (&[][..], 2, 1),
            (&[models], 4, 3),
            (&[models, Step::Item(0)], 4, 5),
            (&[models, Step::Item(1)], 5, 5),
            (&[models, Step::Item(1), shapes, Step::Item(2)], 5, 30),
            (&[models, Step::Item(1), shapes, Step::Item(3)], 5, 13),
            (&[models, Step::Item(2)], 4, 3),
            (&[Step::Key(&["none"])], 2, 1),
        ] {
            let Mark { line: at_line, column: at_column, .. } = position(text, path);
            assert_eq!((at_line + 1, at_column + 1), (line, column));
        }
        let single = position("models: {shapes: [[1]]}", &[models, Step::Item(0), shapes, Step::Item(0)]);
        assert_eq!((single.line, single.column), (0, 18));
        for empty in ["", "# nothing", "a"] {
            assert_eq!(position(empty, &[models]), Mark { index: 0, line: 0, column: 0 });
        }
    }
}
