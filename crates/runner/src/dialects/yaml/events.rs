//! What libyaml finds in a text, one thing after the other: serde's reader takes a whole document before it gives any.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// One thing in a text.
pub enum Event {
    /// A list begins.
    List { anchor: Option<Vec<u8>> },
    /// A map begins.
    Map { anchor: Option<Vec<u8>> },
    /// The innermost list or map ends.
    End,
    /// A value of so many bytes.
    Scalar { anchor: Option<Vec<u8>>, bytes: u64 },
    /// What the anchor stands at, once more.
    Alias(Vec<u8>),
    /// The beginning or end of a document.
    Between,
}

/// The things in a text up to its end, or to the first mistake, which is left to serde's reader.
pub struct Events<'a> {
    parser: NonNull<unsafe_libyaml::yaml_parser_t>,
    text: PhantomData<&'a str>,
}

impl<'a> Events<'a> {
    pub fn of(text: &'a str) -> Option<Self> {
        let parser = NonNull::from(Box::leak(Box::new(MaybeUninit::<unsafe_libyaml::yaml_parser_t>::uninit()))).cast();
        let events = Self { parser, text: PhantomData };
        // SAFETY: the parser points to itself, so it stays where it was allocated; it reads the text, which outlives it. If
        // it cannot be initialized it is as if it were zeroed, which may be deleted.
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

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let mut event = MaybeUninit::<unsafe_libyaml::yaml_event_t>::uninit();
        // SAFETY: the parser is initialized. It fills in the event, zeroed where it finds none; of its data that part is
        // read which its kind says is there, and it is deleted once.
        unsafe {
            let event = event.as_mut_ptr();
            if unsafe_libyaml::yaml_parser_parse(self.parser.as_ptr(), event).fail {
                return None;
            }
            let data = &(*event).data;
            let found = match (*event).type_ {
                unsafe_libyaml::YAML_NO_EVENT | unsafe_libyaml::YAML_STREAM_END_EVENT => None,
                unsafe_libyaml::YAML_SEQUENCE_START_EVENT => {
                    Some(Event::List { anchor: name(data.sequence_start.anchor) })
                }
                unsafe_libyaml::YAML_MAPPING_START_EVENT => {
                    Some(Event::Map { anchor: name(data.mapping_start.anchor) })
                }
                unsafe_libyaml::YAML_SEQUENCE_END_EVENT | unsafe_libyaml::YAML_MAPPING_END_EVENT => Some(Event::End),
                unsafe_libyaml::YAML_SCALAR_EVENT => {
                    Some(Event::Scalar { anchor: name(data.scalar.anchor), bytes: data.scalar.length })
                }
                unsafe_libyaml::YAML_ALIAS_EVENT => name(data.alias.anchor).map(Event::Alias),
                _ => Some(Event::Between),
            };
            unsafe_libyaml::yaml_event_delete(event);
            found
        }
    }
}

/// # Safety
/// The pointer is null, or to bytes that end with a zero.
unsafe fn name(anchor: *const u8) -> Option<Vec<u8>> {
    // SAFETY: the caller has seen to it.
    (!anchor.is_null()).then(|| unsafe { CStr::from_ptr(anchor.cast()) }.to_bytes().to_vec())
}

impl Drop for Events<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `of`, deleted once; the memory is of a box of this type.
        unsafe {
            unsafe_libyaml::yaml_parser_delete(self.parser.as_ptr());
            drop(Box::from_raw(self.parser.cast::<MaybeUninit<unsafe_libyaml::yaml_parser_t>>().as_ptr()));
        }
    }
}
