//! Serde and JSON Schema for types that are written as a name.

/// Implements `Serialize`, `Deserialize` and `JsonSchema` through `Display` and `FromStr`. The error is raised while
/// the text is visited, so that a YAML reader can add the line and column of the name itself.
macro_rules! written_as_a_name {
    ($type:ty, $title:literal, $expecting:literal, $names:expr) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Name;
                impl serde::de::Visitor<'_> for Name {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<$type, E> {
                        name.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Name)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $title.into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let names: Vec<String> = $names;
                schemars::json_schema!({ "type": "string", "examples": names, "description": $expecting })
            }
        }
    };
}

pub(crate) use written_as_a_name;
