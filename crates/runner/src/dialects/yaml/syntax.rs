//! Syntax errors in terms of the text: unclosed brackets and quotes, tabs, special characters.

use super::events::{EventKind, Mark, SyntaxProblem, YamlEvents};

/// Syntax error with the position of its cause, such as the bracket that is not closed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub at: Mark,
    pub cause: SyntaxCause,
}

/// Cause of a syntax error.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SyntaxCause {
    /// List or map without a closing bracket.
    #[error("unclosed {opening:?}: expected {:?} before {end}", closing(*.opening))]
    UnclosedBracket { opening: char, end: EndPlace },
    /// Text without a closing quote.
    #[error("unclosed quote: expected another {quote} before {end}")]
    UnclosedQuote { quote: char, end: EndPlace },
    /// Tab where YAML requires spaces.
    #[error("found a tab: YAML allows no tabs in indentation; use spaces")]
    Tab,
    /// Character that YAML reserves.
    #[error("found {0:?}, which cannot start a value; put the value in quotes")]
    ReservedCharacter(char),
    /// More than one document.
    #[error("found a second document: expected a single one; split the file at ---")]
    SecondDocument,
    /// Other error, in the words of libyaml.
    #[error("{0}")]
    Other(String),
}

/// Place before which a construct must be closed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EndPlace {
    Text { line: u64, column: u64 },
    EndOfFile,
}

impl std::fmt::Display for EndPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text { line, column } => write!(f, "line {line}, column {column}"),
            Self::EndOfFile => f.write_str("the end of the file"),
        }
    }
}

/// Checks the syntax of a text.
pub(super) fn check(text: &str) -> Result<(), SyntaxError> {
    let Some(mut events) = YamlEvents::new(text) else { return Ok(()) };
    // Start of each list or map that has not ended, with its opening bracket, if any.
    let mut open: Vec<Option<Mark>> = Vec::new();
    let mut multiline_quote = None;
    let mut documents = 0;
    for event in events.by_ref() {
        multiline_quote = None;
        match event.kind {
            EventKind::List { has_brackets, .. } | EventKind::Map { has_brackets, .. } => {
                open.push(Some(event.start).filter(|_| has_brackets));
            }
            EventKind::End => drop(open.pop()),
            EventKind::Scalar { is_quoted: true, .. } if event.start.line < event.end.line => {
                multiline_quote = Some(event.start);
            }
            EventKind::Document if documents > 0 => {
                return Err(SyntaxError { at: event.start, cause: SyntaxCause::SecondDocument });
            }
            EventKind::Document => documents += 1,
            EventKind::Scalar { .. } | EventKind::Alias(_) | EventKind::Boundary => {}
        }
    }
    let Some(problem) = events.problem() else { return Ok(()) };
    // A map of one pair within a list starts without a bracket.
    let opened = open.into_iter().rev().flatten().find(|start| matches!(char_at(text, *start), Some('[' | '{')));
    Err(explain(text, problem, multiline_quote, opened))
}

/// Derives the cause from the place where parsing stopped, the quoted text of several lines before it, and the
/// innermost open bracket.
fn explain(text: &str, problem: SyntaxProblem, multiline_quote: Option<Mark>, opened: Option<Mark>) -> SyntaxError {
    let SyntaxProblem { problem, at, context } = problem;
    let stopped = char_at(text, at);
    let end = match stopped {
        Some(_) => EndPlace::Text { line: at.line + 1, column: at.column + 1 },
        None => EndPlace::EndOfFile,
    };
    let unclosed = context.as_ref().map(|(_, start)| *start).filter(|start| stopped.is_none() && is_open(text, *start));
    if let Some(start) = unclosed.or(multiline_quote)
        && let Some(quote) = char_at(text, start)
    {
        return SyntaxError { at: start, cause: SyntaxCause::UnclosedQuote { quote, end } };
    }
    match (stopped, opened) {
        (Some('\t'), _) => SyntaxError { at, cause: SyntaxCause::Tab },
        (Some(reserved @ ('@' | '`' | '%')), _) => SyntaxError { at, cause: SyntaxCause::ReservedCharacter(reserved) },
        // An error in the line of the bracket is more likely an error of that line.
        (_, Some(start)) if stopped.is_none() || start.line < at.line => {
            let opening = char_at(text, start).unwrap_or('[');
            SyntaxError { at: start, cause: SyntaxCause::UnclosedBracket { opening, end } }
        }
        _ => {
            let context = context.map_or_else(String::new, |(context, start)| {
                format!(" {context} that starts at line {}, column {}", start.line + 1, start.column + 1)
            });
            SyntaxError { at, cause: SyntaxCause::Other(problem + &context) }
        }
    }
}

/// True if a quote starts here and is not closed.
fn is_open(text: &str, start: Mark) -> bool {
    let mut rest = text.chars().skip(start.index).peekable();
    let Some(quote @ ('"' | '\'')) = rest.next() else { return false };
    while let Some(c) = rest.next() {
        match c {
            '\\' if quote == '"' => drop(rest.next()),
            '\'' if quote == '\'' && rest.peek() == Some(&'\'') => drop(rest.next()),
            c if c == quote => return false,
            _ => {}
        }
    }
    true
}

fn char_at(text: &str, mark: Mark) -> Option<char> {
    text.chars().nth(mark.index)
}

fn closing(opening: char) -> char {
    if opening == '[' { ']' } else { '}' }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line and column of an error, from 1, and its cause.
    fn error(text: &str) -> (u64, u64, SyntaxCause) {
        let SyntaxError { at, cause } = check(text).unwrap_err();
        (at.line + 1, at.column + 1, cause)
    }

    fn before(line: u64, column: u64) -> EndPlace {
        EndPlace::Text { line, column }
    }

    #[test]
    fn unclosed_brackets_and_quotes_are_reported_where_they_open() {
        let bracket = |opening, end| SyntaxCause::UnclosedBracket { opening, end };
        let quote = |quote, end| SyntaxCause::UnclosedQuote { quote, end };
        for (text, line, column, cause) in [
            ("recipes: [a, b\nmodels:\n  - model: linear\n", 1, 10, bracket('[', before(2, 7))),
            ("recipes: [a, b\nmodels: linear\nseed: 1\n", 1, 10, bracket('[', before(2, 7))),
            ("recipes: [a\n", 1, 10, bracket('[', EndPlace::EndOfFile)),
            ("recipes: [a", 1, 10, bracket('[', EndPlace::EndOfFile)),
            ("models:\n  - {model: linear, shapes: [[1, 2, 3]]\nseed: 1\n", 2, 5, bracket('{', before(3, 1))),
            ("name: \"a\nmodels: []\n", 1, 7, quote('"', EndPlace::EndOfFile)),
            ("name: 'it''s\nmodels: []\n", 1, 7, quote('\'', EndPlace::EndOfFile)),
            ("recipes: [\"a, b]\nmodels: [{name: \"x\"}]\n", 1, 11, quote('"', before(2, 18))),
            ("name: \"a\nmodels: [{name: \"x\"}]\n", 1, 7, quote('"', before(2, 18))),
        ] {
            assert_eq!(error(text), (line, column, cause), "{text}");
        }
    }

    #[test]
    fn tabs_and_reserved_characters_are_named() {
        for (text, line, column, cause) in [
            ("recipes: [a]\n\tmodels: []\n", 2, 1, SyntaxCause::Tab),
            ("models:\n\t- model: linear\n", 2, 1, SyntaxCause::Tab),
            ("models:\n  - model: linear\n\tseed: 1\n", 3, 1, SyntaxCause::Tab),
            ("recipes: [a,\n\t@b]\n", 2, 2, SyntaxCause::ReservedCharacter('@')),
            ("name: `a`\n", 1, 7, SyntaxCause::ReservedCharacter('`')),
            ("a: 1\n---\nb: 1\n", 2, 1, SyntaxCause::SecondDocument),
        ] {
            assert_eq!(error(text), (line, column, cause), "{text}");
        }
    }

    #[test]
    fn other_errors_keep_their_place() {
        for (text, line, column) in [
            ("a: b: c\n", 1, 5),
            ("a: [b, c}\n", 1, 9),
            ("models: [{shapes: [[1, 2, 3]}]\n", 1, 29),
            ("a: \u{7}\n", 1, 4),
            ("a: 'b'c\n", 1, 7),
            ("a: 1\nb", 2, 2),
        ] {
            let (at_line, at_column, cause) = error(text);
            assert!(matches!(cause, SyntaxCause::Other(_)), "{cause:?}");
            assert_eq!((at_line, at_column), (line, column), "{text}: {cause}");
        }
        for valid in ["", "# none\n", "a: 1\n", "---\na: 1\n...\n", "a: 'it''s'\nb: [\"\\\"\"]\n", "a:\tb\n"] {
            assert_eq!(check(valid), Ok(()));
        }
    }
}
