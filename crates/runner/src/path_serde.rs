//! Paths in JSON: a string if they are UTF-8, otherwise a list of bytes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(untagged)]
enum SerializedPath {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<SerializedPath> for PathBuf {
    fn from(written: SerializedPath) -> Self {
        match written {
            SerializedPath::Text(text) => text.into(),
            SerializedPath::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }
    }
}

pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => text.serialize(serializer),
        None => path.as_os_str().as_bytes().serialize(serializer),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    SerializedPath::deserialize(deserializer).map(PathBuf::from)
}

/// Serialization of optional paths.
pub(crate) mod option {
    use super::{Deserialize, Deserializer, PathBuf, SerializedPath, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        match path {
            Some(path) => super::serialize(path, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<SerializedPath>::deserialize(deserializer)?.map(PathBuf::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Both {
        #[serde(with = "super")]
        one: PathBuf,
        #[serde(with = "super::option", default)]
        other: Option<PathBuf>,
    }

    #[test]
    fn every_path_round_trips() {
        let odd = PathBuf::from(OsString::from_vec(vec![b'a', 0xff, b'/', b'b']));
        for (one, other, json) in [
            ("a/b".into(), None, r#"{"one":"a/b","other":null}"#),
            (odd.clone(), Some(odd), r#"{"one":[97,255,47,98],"other":[97,255,47,98]}"#),
        ] {
            let both = Both { one, other };
            assert_eq!(serde_json::to_string(&both).unwrap(), json);
            assert_eq!(serde_json::from_str::<Both>(json).unwrap(), both);
        }
        assert_eq!(serde_json::from_str::<Both>(r#"{"one":"a"}"#).unwrap().other, None);
    }
}
