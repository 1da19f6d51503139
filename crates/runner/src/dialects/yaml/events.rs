//! Events of libyaml, one at a time. serde's reader loads a whole document before it returns any.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// Parsing event.
pub(super) struct YamlEvent {
    pub kind: EventKind,
    /// First character.
    pub start: Mark,
    /// End, exclusive.
    pub end: Mark,
}

/// Kind of a parsing event.
pub(super) enum EventKind {
    /// Start of a list.
    List { anchor: Option<Vec<u8>>, has_brackets: bool },
    /// Start of a map.
    Map { anchor: Option<Vec<u8>>, has_brackets: bool },
    /// End of the innermost list or map.
    End,
    /// Scalar with its content.
    Scalar { anchor: Option<Vec<u8>>, value: Vec<u8>, is_quoted: bool },
    /// Reference to an anchor.
    Alias(Vec<u8>),
    /// Start of a document.
    Document,
    /// End of a document, start or end of the text.
    Boundary,
}

/// Position in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// Number of characters before it.
    pub index: usize,
    /// Line, from 0.
    pub line: u64,
    /// Column in characters, from 0.
    pub column: u64,
}

/// Syntax error, as libyaml reports it.
pub(super) struct SyntaxProblem {
    /// Description.
    pub problem: String,
    /// Place where parsing stopped.
    pub at: Mark,
    /// Enclosing construct and its start.
    pub context: Option<(String, Mark)>,
}

/// Events up to the end of a text, or to the first syntax error, which [`YamlEvents::problem`] describes.
pub(super) struct YamlEvents<'a> {
    parser: NonNull<unsafe_libyaml::yaml_parser_t>,
    text: &'a str,
}

impl<'a> YamlEvents<'a> {
    pub(super) fn new(text: &'a str) -> Option<Self> {
        let parser = NonNull::from(Box::leak(Box::new(MaybeUninit::<unsafe_libyaml::yaml_parser_t>::uninit()))).cast();
        let events = Self { parser, text };
        // SAFETY: the parser contains pointers to itself, so its allocation never moves. It reads `text`, which
        // outlives it. If initialization fails, the parser is zeroed, and deleting it is allowed.
        unsafe {
            let parser = events.parser.as_ptr();
            if unsafe_libyaml::yaml_parser_initialize(parser).fail {
                return None;
            }
            unsafe_libyaml::yaml_parser_set_encoding(parser, unsafe_libyaml::YAML_UTF8_ENCODING);
            unsafe_libyaml::yaml_parser_set_input_string(parser, text.as_ptr(), text.len() as u64);
        }
        Some(events)
    }

    /// Syntax error that ended the events.
    pub(super) fn problem(&self) -> Option<SyntaxProblem> {
        // SAFETY: the parser is initialized. Its texts are null, or constants that end in zero.
        unsafe {
            let parser = self.parser.as_ref();
            let problem = constant_text(parser.problem).filter(|_| parser.error != unsafe_libyaml::YAML_NO_ERROR)?;
            let at = match parser.error {
                // Invalid characters are found before they are counted.
                unsafe_libyaml::YAML_READER_ERROR => mark_of_byte(self.text, parser.problem_offset),
                // At its end, libyaml has started a line that the text does not have.
                _ if parser.problem_mark.index as usize >= self.text.chars().count() => {
                    mark_of_byte(self.text, self.text.len() as u64)
                }
                _ => Mark::from(parser.problem_mark),
            };
            let context = constant_text(parser.context).map(|context| (context, Mark::from(parser.context_mark)));
            Some(SyntaxProblem { problem, at, context })
        }
    }
}

impl From<unsafe_libyaml::yaml_mark_t> for Mark {
    fn from(mark: unsafe_libyaml::yaml_mark_t) -> Self {
        Self { index: mark.index as usize, line: mark.line, column: mark.column }
    }
}

/// Position of a byte offset.
fn mark_of_byte(text: &str, offset: u64) -> Mark {
    let before = &text.as_bytes()[..text.len().min(offset as usize)];
    let before = String::from_utf8_lossy(before);
    let (line, last) = (before.matches('\n').count(), before.rsplit('\n').next().unwrap_or_default());
    Mark { index: before.chars().count(), line: line as u64, column: last.chars().count() as u64 }
}

/// Copies a text.
///
/// # Safety
///
/// `text` is null, or points to a zero-terminated string.
unsafe fn constant_text(text: *const std::ffi::c_char) -> Option<String> {
    // SAFETY: guaranteed by the caller.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

impl Iterator for YamlEvents<'_> {
    type Item = YamlEvent;

    fn next(&mut self) -> Option<YamlEvent> {
        let mut event = MaybeUninit::<unsafe_libyaml::yaml_event_t>::uninit();
        // SAFETY: the parser is initialized. It writes the event, or zeros it on failure. Only the union member that
        // the event's type selects is read, and the event is deleted once.
        unsafe {
            let event = event.as_mut_ptr();
            if unsafe_libyaml::yaml_parser_parse(self.parser.as_ptr(), event).fail {
                return None;
            }
            let data = &(*event).data;
            let kind = match (*event).type_ {
                unsafe_libyaml::YAML_NO_EVENT | unsafe_libyaml::YAML_STREAM_END_EVENT => None,
                unsafe_libyaml::YAML_SEQUENCE_START_EVENT => Some(EventKind::List {
                    anchor: anchor_name(data.sequence_start.anchor),
                    has_brackets: data.sequence_start.style == unsafe_libyaml::YAML_FLOW_SEQUENCE_STYLE,
                }),
                unsafe_libyaml::YAML_MAPPING_START_EVENT => Some(EventKind::Map {
                    anchor: anchor_name(data.mapping_start.anchor),
                    has_brackets: data.mapping_start.style == unsafe_libyaml::YAML_FLOW_MAPPING_STYLE,
                }),
                unsafe_libyaml::YAML_SEQUENCE_END_EVENT | unsafe_libyaml::YAML_MAPPING_END_EVENT => {
                    Some(EventKind::End)
                }
                unsafe_libyaml::YAML_SCALAR_EVENT => Some(EventKind::Scalar {
                    anchor: anchor_name(data.scalar.anchor),
                    value: std::slice::from_raw_parts(data.scalar.value, data.scalar.length as usize).to_vec(),
                    is_quoted: matches!(
                        data.scalar.style,
                        unsafe_libyaml::YAML_SINGLE_QUOTED_SCALAR_STYLE
                            | unsafe_libyaml::YAML_DOUBLE_QUOTED_SCALAR_STYLE
                    ),
                }),
                unsafe_libyaml::YAML_ALIAS_EVENT => anchor_name(data.alias.anchor).map(EventKind::Alias),
                unsafe_libyaml::YAML_DOCUMENT_START_EVENT => Some(EventKind::Document),
                _ => Some(EventKind::Boundary),
            };
            let (start, end) = (Mark::from((*event).start_mark), Mark::from((*event).end_mark));
            let found = kind.map(|kind| YamlEvent { kind, start, end });
            unsafe_libyaml::yaml_event_delete(event);
            found
        }
    }
}

/// Copies the name of an anchor.
///
/// # Safety
///
/// `anchor` is null, or points to a zero-terminated string.
unsafe fn anchor_name(anchor: *const u8) -> Option<Vec<u8>> {
    // SAFETY: guaranteed by the caller.
    (!anchor.is_null()).then(|| unsafe { CStr::from_ptr(anchor.cast()) }.to_bytes().to_vec())
}

impl Drop for YamlEvents<'_> {
    fn drop(&mut self) {
        // SAFETY: created by `new`, deleted once; the memory was allocated as a box of this type.
        unsafe {
            unsafe_libyaml::yaml_parser_delete(self.parser.as_ptr());
            drop(Box::from_raw(self.parser.cast::<MaybeUninit<unsafe_libyaml::yaml_parser_t>>().as_ptr()));
        }
    }
}
