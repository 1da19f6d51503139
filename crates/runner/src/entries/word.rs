//! Serde and JSON Schema for types that are written as one word.

/// Implements serde and JSON Schema through `FromStr` and `Display`. Errors carry the position of the word. A bare
/// `true` or `false` is accepted as a word.
macro_rules! word {
    ($type:ident, $expecting:literal, $schema:expr) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Word;
                impl serde::de::Visitor<'_> for Word {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<$type, E> {
                        word.parse().map_err(E::custom)
                    }

                    fn visit_bool<E: serde::de::Error>(self, word: bool) -> Result<$type, E> {
                        word.to_string().parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Word)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut schema: schemars::Schema = $schema;
                schema.insert("description".into(), $expecting.into());
                schema
            }
        }
    };
}

pub(crate) use word;
