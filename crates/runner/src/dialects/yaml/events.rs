//! Events of libyaml, one at a time. serde's reader loads a whole document before it returns any.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// Parsing event.
pub enum YamlEvent {
    /// Start of a list.
    List { anchor: Option<Vec<u8>> },
    /// Start of a map.
    Map { anchor: Option<Vec<u8>> },
    /// End of the innermost list or map.
    End,
    /// Scalar with its length in bytes.
    Scalar { anchor: Option<Vec<u8>>, bytes: u64 },
    /// Reference to an anchor.
    Alias(Vec<u8>),
    /// Start or end of a document.
    DocumentBoundary,
}

/// Events up to the end of a text, or to the first syntax error, which serde's reader reports.
pub struct YamlEvents<'a> {
    parser: NonNull<unsafe_libyaml::yaml_parser_t>,
    text: PhantomData<&'a str>,
}

impl<'a> YamlEvents<'a> {
    pub fn new(text: &'a str) -> Option<Self> {
        let parser = NonNull::from(Box::leak(Box::new(MaybeUninit::<unsafe_libyaml::yaml_parser_t>::uninit()))).cast();
        let events = Self { parser, text: PhantomData };
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
            let found = match (*event).type_ {
                unsafe_libyaml::YAML_NO_EVENT | unsafe_libyaml::YAML_STREAM_END_EVENT => None,
                unsafe_libyaml::YAML_SEQUENCE_START_EVENT => {
                    Some(YamlEvent::List { anchor: anchor_name(data.sequence_start.anchor) })
                }
                unsafe_libyaml::YAML_MAPPING_START_EVENT => {
                    Some(YamlEvent::Map { anchor: anchor_name(data.mapping_start.anchor) })
                }
                unsafe_libyaml::YAML_SEQUENCE_END_EVENT | unsafe_libyaml::YAML_MAPPING_END_EVENT => {
                    Some(YamlEvent::End)
                }
                unsafe_libyaml::YAML_SCALAR_EVENT => {
                    Some(YamlEvent::Scalar { anchor: anchor_name(data.scalar.anchor), bytes: data.scalar.length })
                }
                unsafe_libyaml::YAML_ALIAS_EVENT => anchor_name(data.alias.anchor).map(YamlEvent::Alias),
                _ => Some(YamlEvent::DocumentBoundary),
            };
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
