//! What the autotuner decided, read from the files in which it keeps its decisions.

use calorimeter_zoo::Implementation;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The decisions for products of so many rows, output columns and depth, in words: each with the candidate that was
/// fastest. Empty where nothing was tuned, or where no folder is kept.
pub fn decisions(folder: Option<&Path>, products: &[[u64; 3]], implementation: Implementation) -> Vec<String> {
    let kind = match implementation {
        Implementation::Eager => "kernel-matmul",
        Implementation::Fused => "matmul",
        Implementation::Cube | Implementation::Native => return Vec::new(),
    };
    let mut decisions = Vec::new();
    if products.is_empty() {
        return decisions;
    }
    // A line is long and most are about other products: what cannot be about these is not parsed.
    let hints: Vec<String> = products.iter().map(|[m, _, _]| format!("\"m\":{m},")).collect();
    for file in folder.map(files).unwrap_or_default() {
        let about_products = file.file_name().is_some_and(|name| name.to_string_lossy().contains(kind));
        let Ok(text) = (if about_products { fs::read_to_string(&file) } else { continue }) else { continue };
        for line in text.lines().filter(|line| hints.iter().any(|hint| line.contains(hint))) {
            decisions.extend(decision(line, products));
        }
    }
    decisions.sort();
    decisions.dedup();
    decisions
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// One line of such a file, if it is about one of the products.
fn decision(line: &str, products: &[[u64; 3]]) -> Option<String> {
    let entry: Value = serde_json::from_str(line).ok()?;
    let key = &entry["key"]["key"];
    // Fused operations wrap the key of their product.
    let definition = if key["matmul_key"].is_object() { &key["matmul_key"] } else { key }.get("definition")?;
    let [m, n, k] = ["m", "n", "k"].map(|axis| definition[axis].as_u64());
    products.contains(&[m?, n?, k?]).then_some(())?;
    let value = &entry["value"];
    let fastest = value["fastest_index"].as_u64()?;
    let outcome = value["results"].as_array()?.iter().find_map(|result| {
        let outcome = &result["outcome"]["Ok"];
        (outcome["index"].as_u64() == Some(fastest)).then_some(outcome)
    })?;
    let elem = definition["elem_lhs"]["Scalar"]["Float"].as_str().unwrap_or("").to_lowercase();
    Some(format!("m{}-k{}-n{} {elem}: {}", m?, k?, n?, outcome["name"].as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EAGER: &str = r#"{"key":{"key":{"definition":{"m":64,"n":256,"k":128,"elem_lhs":{"Scalar":{"Float":"F32"}}}},
        "checksum":"e6"},"value":{"fastest_index":5,"results":[{"outcome":{"Ok":{"name":"matmul_slow","index":7}}},
        {"outcome":{"Err":{"Skip":{"name":"matmul_naive"}}}},{"outcome":{"Ok":{"name":"matmul_unit","index":5}}}]}}"#;

    #[test]
    fn the_fastest_candidate_of_a_product_is_named() {
        let decided = decision(EAGER, &[[64, 256, 128]]);
        assert_eq!(decided.as_deref(), Some("m64-k128-n256 f32: matmul_unit"));
        assert_eq!(decision(EAGER, &[[64, 128, 256]]), None);
        let fused = EAGER.replacen("{\"key\":{\"definition\"", "{\"key\":{\"matmul_key\":{\"definition\"", 1);
        let fused = fused.replacen("}}}},\n", "}}}}},\n", 1);
        assert_eq!(decision(&fused, &[[64, 256, 128]]), decided);
        assert_eq!(decision("{\"key\":", &[[64, 256, 128]]), None);
    }
}
