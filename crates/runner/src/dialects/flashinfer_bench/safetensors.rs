//! Position of a tensor in a safetensors file: 8 bytes with the length of a header, the header as JSON, and the data.

use calorimeter_case::Element;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum length of a header, as in other readers of the format.
const MAX_HEADER_BYTES: u64 = 100_000_000;
/// First bytes of a file that Git LFS has not downloaded.
const LFS_POINTER: &[u8; 8] = b"version ";

#[derive(Deserialize)]
struct TensorHeader {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

/// Name of an element type in a header.
fn dtype_name(dtype: &str) -> Option<&'static str> {
    let names = [
        ("float32", "F32"),
        ("float16", "F16"),
        ("bfloat16", "BF16"),
        ("float8_e4m3fn", "F8_E4M3"),
        ("float8_e5m2", "F8_E5M2"),
        ("int64", "I64"),
        ("int32", "I32"),
        ("int16", "I16"),
        ("int8", "I8"),
        ("uint8", "U8"),
        ("bool", "BOOL"),
    ];
    names.into_iter().find(|(known, _)| *known == dtype).map(|(_, name)| name)
}

/// First byte of a tensor in a file. Fails if shape or dtype differ from the expected ones.
pub(super) fn offset(path: &Path, key: &str, dtype: &str, element: Element, shape: &[u64]) -> Result<u64, String> {
    let at = |why: String| format!("{}: {why}", path.display());
    let mut file = File::open(path).map_err(|error| at(error.to_string()))?;
    let size = file.metadata().map_err(|error| at(error.to_string()))?.len();
    let mut length = [0; 8];
    file.read_exact(&mut length).map_err(|error| at(error.to_string()))?;
    if length == *LFS_POINTER {
        return Err(at("the file is a pointer of Git LFS; download it with `git lfs pull`".into()));
    }
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER_BYTES.min(size) {
        return Err(at(format!("invalid header of {length} bytes: expected a safetensors file")));
    }
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header).map_err(|error| at(error.to_string()))?;
    let mut tensors: BTreeMap<String, Value> =
        serde_json::from_slice(&header).map_err(|error| at(format!("invalid header: {error}")))?;
    let tensor = tensors.remove(key).ok_or_else(|| {
        let known: Vec<&str> = tensors.keys().map(String::as_str).filter(|name| *name != "__metadata__").collect();
        at(format!("missing tensor {key:?}; the file contains {}", known.join(", ")))
    })?;
    let tensor: TensorHeader =
        serde_json::from_value(tensor).map_err(|error| at(format!("tensor {key:?}: {error}")))?;
    if tensor.shape != shape || Some(&*tensor.dtype) != dtype_name(dtype) {
        let TensorHeader { dtype: found, shape: has, .. } = tensor;
        return Err(at(format!("tensor {key:?} is {found} {has:?}: expected {dtype} {shape:?}")));
    }
    let bytes = shape.iter().product::<u64>() * u64::from(element.bits()) / 8;
    let [start, end] = tensor.data_offsets;
    let data = 8 + length;
    match end.checked_sub(start) {
        Some(found) if found == bytes && data.checked_add(end).is_some_and(|end| end <= size) => Ok(data + start),
        _ => Err(at(format!("tensor {key:?}: invalid data_offsets [{start}, {end}] for {bytes} bytes"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::Dtype;

    #[test]
    fn tensors_are_found_and_checked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.safetensors");
        let write = |header: &str, data: &[u8]| {
            let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat();
            std::fs::write(&path, bytes).unwrap();
        };
        let header = r#"{"__metadata__":{},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]}}"#;
        write(header, &[0; 12]);
        let f32 = Element::Float(Dtype::F32);
        let find = |key: &str, dtype: &str, shape: &[u64]| offset(&path, key, dtype, f32, shape);
        assert_eq!(find("a", "float32", &[2, 1]), Ok(8 + header.len() as u64 + 4));
        assert!(find("b", "float32", &[2, 1]).unwrap_err().contains("contains a"));
        assert!(find("a", "float32", &[2]).unwrap_err().contains("expected float32 [2]"));
        assert!(find("a", "float16", &[2, 1]).unwrap_err().contains("expected float16"));
        write(header, &[0; 11]);
        assert!(find("a", "float32", &[2, 1]).unwrap_err().contains("data_offsets"));
        std::fs::write(&path, "version https://git-lfs.github.com/spec/v1\n").unwrap();
        assert!(find("a", "float32", &[2, 1]).unwrap_err().contains("git lfs pull"));
        std::fs::write(&path, [255; 20]).unwrap();
        assert!(find("a", "float32", &[2, 1]).unwrap_err().contains("invalid header"));
    }
}
