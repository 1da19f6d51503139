//! The JSON Schema accepts what the program accepts, and rejects unknown names.

use crate::accelerator_v2_dialect::version_2_files;
use crate::scene::{Scene, fixture};
use crate::schema_validator::accepts;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn schema() -> Value {
    serde_json::from_str(&Scene::new().run("schema").expect_code(0).stdout).unwrap()
}

fn parsed(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap()
}

/// YAML files of a folder.
fn files(folder: &Path) -> Vec<String> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let yaml = paths.filter(|path| path.extension().is_some_and(|ending| ending == "yml" || ending == "yaml"));
    yaml.map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Code blocks in YAML that are whole files.
fn examples(page: &str) -> Vec<String> {
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split_once("\n```").map(|(block, _)| block));
    let whole = |block: &&str| {
        let keys: Value = serde_yaml::from_str(block).unwrap_or_default();
        ["models", "model_params", "benchmarks"].iter().any(|key| keys.get(key).is_some())
    };
    blocks.filter(whole).map(str::to_owned).collect()
}

#[test]
fn shipped_and_documented_files_are_accepted() {
    let (schema, root) = (schema(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let configs = [files(&root.join("configs")), files(&root.join("configs/results"))].concat();
    assert!(configs.len() >= 20);
    let version_2 = version_2_files().iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let peers = [files(&fixture("torchao")), files(&fixture("accelerator")), version_2].concat();
    assert!(peers.len() >= 39);
    let page = |name: &str| examples(&fs::read_to_string(root.join("docs/src").join(name)).unwrap());
    let shown = ["config.md", "suites.md", "torchao.md", "mock.md", "foreign.md", "accelerator.md"].map(page);
    assert!(shown.iter().all(|examples| !examples.is_empty()));
    let shown = shown.concat();
    for text in configs.iter().chain(&peers).chain(&shown) {
        assert!(accepts(&schema, &parsed(text)), "{text}");
    }
}

const SHAPES: &str = "shapes: [{name: custom, shapes: [[8, 8, 8]]}]";

/// Files in which SHAPES stands for a list of shapes, and their validity.
const FILES: &[(&str, bool)] = &[
    ("recipes: [baseline, int8wo, int4wo-32-hqq, uintx-3-100, float8dq, float8dq-row]\nmodels: [{SHAPES}]", true),
    ("recipes: [int8_rowwise, gemlitewo-4, gemlitewo-8-128]\nmodels: {SHAPES}", true),
    ("sparsities: [null, semi-sparse, '2:4', block, bsr-0.75-32]\nmodels: [{SHAPES}]", true),
    ("recipes: [baseline]\nmodels: [{model: ln_linear_HardSwish, dtype: torch.bfloat16, SHAPES}]", true),
    ("recipes: [baseline]\ncompile: false\ndevice: mps\nmodels: [{SHAPES}]", true),
    ("models: [{model: softmax, axes: {batch: 8, sequence: [16, 32], dimension: 64}}]", true),
    (
        "models: [{model: softmax, axes: [{batch: 8, sequence: 16, dimension: {start: 8, end: 64, multiplier: 2}}]}]",
        true,
    ),
    ("recipes: [baseline]\nmodels: [{shapes: [[1, 2048, 8192], {name: llama}, [8, 8, 8]]}]", true),
    ("models: [{model: softmax, shapes: [[8, 16, 64]]}]", true),
    ("benchmarks: [{benchmark_name: add, num_runs: 3, benchmark_params: [{m: 8, n: SAME_AS_m}], anything: 1}]", true),
    (
        "benchmarks: [{benchmark_name: add, benchmark_sweep_params: [{m_range: {start: 1, end: 8, multiplier: 2}, n_list: [1, 2], dtype: [bfloat16, fp8]}]}]",
        true,
    ),
    (
        "benchmarks: [{name: swiglu, model: LLM-200B, dim: 64, sweep: {batch: {start: 1, end: 4}, mode: [fwd, bwd]}}]",
        true,
    ),
    ("global: {num_runs: 3}\nhardware: {peak_tflops: 1, hbm_bw: {1024: 2.5}}\nbenchmarks: [{name: rope}]", true),
    // Unknown names.
    ("recipes: [int8w0]\nmodels: [{SHAPES}]", false),
    ("recipes: [int4wo-33]\nmodels: [{SHAPES}]", false),
    ("recipes: [uintx-9-64]\nmodels: [{SHAPES}]", false),
    ("recipes: [xint8wo]\nmodels: [{SHAPES}]", false),
    ("recipes: [baseline]\nsparsities: [block-0.9-064]\nmodels: [{SHAPES}]", false),
    ("recipes: [baseline]\nmodels: [{model: linar, SHAPES}]", false),
    ("recipes: [baseline]\nmodels: [{model: ln_linear_tanh, SHAPES}]", false),
    ("models: [{model: sotfmax, axes: {batch: 8, sequence: 16, dimension: 64}}]", false),
    ("recipes: [baseline]\ndtype: bf61\nmodels: [{SHAPES}]", false),
    ("recipes: [baseline]\ndevice: cuad\nmodels: [{SHAPES}]", false),
    ("recipes: [baseline]\nregimes: [device-warm]\nmodels: [{SHAPES}]", false),
    ("recipes: [baseline]\ncompile: max-autotun\nmodels: [{SHAPES}]", false),
    ("recipes: [baseline]\nmodels: [{shapes: [{name: lama}]}]", false),
    ("benchmarks: [{benchmark_name: ad, benchmark_params: [{m: 8, n: 8}]}]", false),
    ("benchmarks: [{benchmark_name: add, benchmark_params: [{m: 8, n: 8, dtype: bfloat61}]}]", false),
    // Unknown keys and invalid values.
    ("recipes: [baseline]\nmodels: [{shapes: [[8, 0, 8]]}]", false),
    ("recipes: [baseline]\nmodels: [{shapes: [[8, 8.5, 8]]}]", false),
    ("recipes: [baseline]\nmodels: [{shapes: [8, 8, 8]}]", false),
    ("recipees: [baseline]\nmodels: [{SHAPES}]", false),
    ("recipes: [baseline]\nmodels: [{SHAPES, modle: linear}]", false),
    ("recipes: [baseline]", false),
    ("recipes: [baseline]\nmodels: linear", false),
    ("recipes: [baseline]\nenable_profiler: 'yes'\nmodels: [{SHAPES}]", false),
    ("models: [{model: softmax, axes: [8, 16, 64]}]", false),
    ("benchmarks: []", false),
    ("benchmarks: [{benchmark_params: [{m: 8, n: 8}]}]", false),
    ("benchmarks: [{name: rmsnormm}]", false),
    ("benchmarks: [{name: rmsnorm, model: LLM-1B}]", false),
    ("benchmarks: [{name: rmsnorm, dimm: 8}]", false),
    ("benchmarks: [{name: rmsnorm, sweep: {dim: []}}]", false),
    ("benchmarks: [{name: rmsnorm, mode: sideways}]", false),
    ("globl: {}\nbenchmarks: [{name: rmsnorm}]", false),
    ("global: {dtype: bfloat61}\nbenchmarks: [{name: rmsnorm}]", false),
    ("hardware: {peak: 1}\nbenchmarks: [{name: rmsnorm}]", false),
    ("benchmarks: [{benchmark_name: add, benchmark_params: [{m: [1, 2], n: 1}]}]", false),
];

#[test]
fn schema_and_program_agree() {
    let schema = schema();
    for (text, right) in FILES {
        let text = text.replace("SHAPES", SHAPES);
        assert_eq!(accepts(&schema, &parsed(&text)), *right, "{text}");
        let ended = Scene::with(&text).run("run c.yml --dry-run --device mock");
        assert_eq!(ended.code, Some(if *right { 0 } else { 2 }), "{text}: {ended:?}");
    }
}
