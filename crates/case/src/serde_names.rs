//! Serde and JSON Schema implementations for types that are written as a name.

/// Implements `Serialize`, `Deserialize` and, with the feature `schema`, `JsonSchema` through `Display` and `FromStr`.
/// Errors are raised inside the visitor, so that a YAML reader can add the line and column of the name.
#[macro_export]
macro_rules! written_as_a_name {
    ($type:ty, $title:literal, $expecting:expr, $names:expr) => {
        $crate::serde_by_name!($type, $expecting);

        $crate::schema_by_name!($type, $title, $expecting, $names, "string");
    };
}

/// Serde part of [`written_as_a_name`].
#[doc(hidden)]
#[macro_export]
macro_rules! serde_by_name {
    ($type:ty, $expecting:expr) => {
        impl $crate::__private::serde::Serialize for $type {
            fn serialize<S: $crate::__private::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> $crate::__private::serde::Deserialize<'de> for $type {
            fn deserialize<D: $crate::__private::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct NameVisitor;
                impl $crate::__private::serde::de::Visitor<'_> for NameVisitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_str<E: $crate::__private::serde::de::Error>(self, name: &str) -> Result<$type, E> {
                        name.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(NameVisitor)
            }
        }
    };
}

/// JSON Schema part of [`written_as_a_name`].
#[cfg(feature = "schema")]
#[doc(hidden)]
#[macro_export]
macro_rules! schema_by_name {
    ($type:ty, $title:literal, $expecting:expr, $names:expr, $json:expr) => {
        impl $crate::__private::schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $title.into()
            }

            fn json_schema(_: &mut $crate::__private::schemars::SchemaGenerator) -> $crate::__private::schemars::Schema {
                let names: Vec<String> = $names;
                $crate::__private::schemars::json_schema!({
                    "type": $json, "examples": names, "description": $expecting
                })
            }
        }
    };
}

/// Empty without the feature `schema`.
#[cfg(not(feature = "schema"))]
#[doc(hidden)]
#[macro_export]
macro_rules! schema_by_name {
    ($type:ty, $title:literal, $expecting:expr, $names:expr, $json:expr) => {};
}
