//! Invalid input is refused before anything runs, in one line with position, value and remedy.

use crate::scene::{Scene, TIMING, find_record};
use calorimeter_case::Device;
use std::fs;

const MODEL: &str = "models: [{shapes: [{name: custom, shapes: [[8, 8, 8]]}]}]";

/// Files with the error message after the file name: complete, or its beginning if it ends with an ellipsis.
const FILES: &[(&str, &str)] = &[
    ("", ":1:1: nothing to run: models (or model_params) is missing or empty"),
    ("# nothing\n", ":1:1: nothing to run: models (or model_params) is missing or empty"),
    ("recipes: [baseline]\n\tmodels: []\n", ":2:1: found a tab: …"),
    ("recipes: [\"baseline\"\n", ":1:10: unclosed '[': expected ']' before the end of the file"),
    ("- a\n- b\n", ":1:1: expected a map with keys such as recipes and models, found a list"),
    ("hello\n", ":1:1: expected a map with keys such as recipes and models, found \"hello\""),
    (
        "recipes: [baseline]\n---\nrecipes: [baseline]\n",
        ":2:1: found a second document: expected a single one; split the file at ---",
    ),
    // Unknown keys at every level.
    ("recipees: [baseline]\nMODEL", ":1:1: unknown key \"recipees\"; did you mean \"recipes\"?; known: recipes, …"),
    (
        "recipes: [baseline]\nmodels:\n  - modle: linear\n",
        ":3:5: models[0]: unknown key \"modle\"; did you mean \"model\"?…",
    ),
    ("timing: {precison: 1%}\nMODEL", ":1:10: timing: unknown key \"precison\"; did you mean \"precision\"?…"),
    (
        "recipes: [baseline]\nmodels:\n  - timing:\n      windw: 1\n",
        ":4:7: models[0].timing: unknown key \"windw\"; did you mean \"window\"?…",
    ),
    (
        "recipes: [baseline]\nmodels:\n  - shapes:\n      - {name: pow2, max_powr: 12}\n",
        ":4:22: models[0].shapes[0]: pow2 does not take \"max_powr\"; did you mean \"max_power\"? it takes: min_power, max_power",
    ),
    // Unknown names.
    ("recipes: [baseline, int8w0]\nMODEL", ":1:21: recipes[1]: unknown recipe \"int8w0\"; did you mean \"int8wo\"?…"),
    (
        "recipes: [baseline]\nmodels: [{model: linar}]",
        ":2:18: models[0].model: unknown model \"linar\"; did you mean \"linear\"?…",
    ),
    (
        "recipes: [baseline]\nmodels: [{shapes: [{name: lama}]}]",
        ":2:27: models[0].shapes[0].name: unknown shape generator \"lama\"; did you mean \"llama\"?…",
    ),
    ("device: cuad\nMODEL", ":1:9: device: unknown device \"cuad\"; did you mean \"cuda\"?…"),
    (
        "dtype: torch.bfloat61\nMODEL",
        ":1:8: dtype: unknown dtype \"torch.bfloat61\"; did you mean \"torch.bfloat16\"?…",
    ),
    (
        "implementations: [eagre]\nMODEL",
        ":1:19: implementations[0]: unknown implementation \"eagre\"; did you mean \"eager\"?…",
    ),
    (
        "compile: max-autotun\nMODEL",
        ":1:10: compile: unknown compile mode \"max-autotun\"; did you mean \"max-autotune\"?…",
    ),
    (
        "recipes: [baseline]\nsparsities: ['None']\nMODEL",
        ":2:14: sparsities[0]: unknown sparsity \"None\"; known: semi-sparse, 2:4, block, block-{0.01..0.99}-{side}, bsr-{0.01..0.99}-{side}",
    ),
    // Invalid sizes.
    (
        "models: [{shapes: [{name: custom, shapes: [[1024, 1024]]}]}]",
        ":1:44: models[0].shapes[0].shapes[0]: a shape is [m, k, n]: found 2 numbers",
    ),
    (
        "models: [{shapes: [{name: custom, shapes: [[8, 0, 8]]}]}]",
        ":1:48: models[0].shapes[0].shapes[0][1]: k is 0: it must be a whole number from 1 to 2147483648",
    ),
    (
        "models: [{shapes: [{name: custom, shapes: [[-8, 8, 8]]}]}]",
        ":1:45: models[0].shapes[0].shapes[0][0]: m is -8: …",
    ),
    (
        "models: [{shapes: [{name: custom, shapes: [[8, 8, 8.5]]}]}]",
        ":1:51: models[0].shapes[0].shapes[0][2]: n is 8.5: …",
    ),
    (
        "models: [{shapes: [{name: pow2, min_power: 12, max_power: 10}]}]",
        ":1:20: models[0].shapes[0]: pow2: min_power 12 is above max_power 10, which leaves no shapes: …",
    ),
    (
        "recipes: [baseline]\nmodels:\n  - shapes: [[1, 2048, 8192], [1024, 1024]]\n",
        ":3:31: models[0].shapes[1]: invalid shape of 2 numbers: expected one for each axis, [m, k, n]",
    ),
    (
        "models:\n  - shapes:\n      - [8, 1024]\n    model: softmax\n",
        ":3:9: models[0].shapes[0]: invalid shape of 2 numbers: expected one for each axis, [batch, sequence, dimension]",
    ),
    ("models: {shapes: [[8, 0, 8]]}", ":1:23: models.shapes[0][1]: a size is 0: it must be a whole number from 1 to …"),
    (
        "recipes: [baseline]\nmodels: [{shapes: [[2097152, 2097152, 2097152]]}]",
        ":2:20: models[0].shapes[0]: m2097152-k2097152-n2097152 has more than 2^64 operations…",
    ),
    (
        "models: [{model: softmax, preset: quik}]",
        ":1:35: models[0].preset: unknown preset \"quik\"; did you mean \"quick\"?; known: quick, guide, full, llm",
    ),
    (
        "models: [{model: softmax, preset: quick, shapes: [[8, 8, 8]]}]",
        ":1:10: models[0]: shapes, axes and preset are mutually exclusive; keep one",
    ),
    // Syntax.
    (
        "recipes: [baseline, int8wo\nmodels:\n  - model: linear\n",
        ":1:10: unclosed '[': expected ']' before line 2, column 7",
    ),
    ("recipes: [baseline]\nname: \"a\nMODEL", ":2:7: unclosed quote: expected another \" before the end of the file"),
    // Values of the wrong type.
    ("timing: [1%]\nMODEL", ":1:9: timing: expected a map such as {precision: 2%, max_time: 1s}, found a list"),
    ("recipes: {baseline: 1}\nMODEL", ":1:10: recipes: expected a list such as [a, b], found a map"),
    (
        "recipes: [baseline]\nmodels: [linear]\n",
        ":2:10: models[0]: expected a map such as {model: linear, shapes: [[1, 2048, 8192]]}, found \"linear\"",
    ),
    (
        "models: [{shapes: [1, 2048, 8192]}]\n",
        ":1:20: models[0].shapes[0]: expected a shape such as [1, 2048, 8192], or a shape source such as {name: llama}, found 1",
    ),
    ("mode: [training]\nMODEL", ":1:7: mode: expected a single word, found a list"),
    (
        "mode: trainin\nMODEL",
        ":1:7: mode: unknown value \"trainin\"; did you mean \"training\"?; known: inference, training",
    ),
    ("seed: {a: 1}\nMODEL", ":1:7: seed: expected a whole number, found a map"),
    ("enable_profiler: \"false\"\nMODEL", ":1:18: enable_profiler: expected true or false, found \"false\""),
    (
        "recipes: [baseline]\nmodels: linear\n",
        ":2:9: models: expected a list of models, or one model, found \"linear\"",
    ),
    ("timeout: soon\nMODEL", ":1:10: timeout: invalid duration \"soon\": expected e.g. 300ms, 5s or 2m"),
    (
        "timing: {max_time: 1e19}\nMODEL",
        ":1:20: timing.max_time: invalid duration \"10000000000000000000\": expected at most 1000000000s",
    ),
    ("timing: {precision: 200%}\nMODEL", ":1:21: timing.precision: invalid fraction \"200%\"…"),
    ("mock: [{match: '('}]\nMODEL", ":1:8: mock[0]: invalid regular expression \"(\": unclosed group"),
    // Duplicate keys.
    (
        "recipes: [baseline]\nrecipes: [int8wo]\nMODEL",
        ":1:1: duplicate key \"recipes\", possibly under an alternative name; keep one",
    ),
    (
        "recipes: [baseline]\nquantizations: [int8wo]\nMODEL",
        ":1:1: duplicate key \"recipes\", possibly under an alternative name; keep one",
    ),
    (
        "recipes: [baseline]\nmodels:\n  - {model: linear, model_type: linear}\n",
        ":3:5: models[0]: duplicate key \"model\", possibly under an alternative name; keep one",
    ),
    // Nothing to run.
    ("recipes: [baseline]\nmodels: []\n", ":2:9: nothing to run: models (or model_params) is missing or empty"),
    (
        "recipes: []\nMODEL",
        ":1:1: recipes (or quantization_config_recipe_names) is missing or empty; expected e.g. [baseline, int8wo]",
    ),
    ("recipes: [baseline]\nmodels: [{model: linear}]\n", ": models[0]: shapes (or matrix_shapes) is missing or empty"),
    ("recipes: [baseline]\nimplementations: []\nMODEL", ": models[0]: implementations is empty"),
    (
        "recipes: [baseline]\nmodels: [{shapes: [{name: csv, path: nowhere.csv}]}]",
        ":2:20: models[0].shapes[0]: cannot read nowhere.csv: No such file or directory…",
    ),
    // Contradictory or excessive requests.
    (
        "mode: training\nrecipes: [baseline]\nmodels: [{model: linear_bias, shapes: [{name: custom, shapes: [[8, 8, 8]]}]}]",
        ":3:10: models[0]: mode: training: linear_bias cannot be trained; available: linear, ln_linear_relu, …",
    ),
    (
        "mode: training\nrecipes: [float8dq-row]\nscaling_type_input: disabled\nscaling_type_weight: disabled\nscaling_type_grad_output: disabled\nMODEL",
        ":1:1: scaling_type_input, _weight and _grad_output: all disabled, which leaves nothing of float8dq-row; use baseline",
    ),
    (
        "mode: training\nrecipes: [float8dq-tensor]\nscaling_granularity: rowwise\nMODEL",
        ":1:1: scaling_granularity: float8dq-tensor has one scale per tensor; use the recipe float8dq-row…",
    ),
    (
        "mode: training\nrecipes: [baseline]\nsparsities: [block]\nMODEL",
        ":4:10: models[0]: mode: training: block-0.9-64: training does not support sparsity",
    ),
    (
        "recipes: [baseline]\ntiming: {max_windows: 100001}\nMODEL",
        ": models[0]: timing: invalid max_windows 100001: expected at most 100000…",
    ),
    (
        "recipes: [baseline]\ntiming: {min_windows: 9, max_windows: 8}\nMODEL",
        ": models[0]: timing: invalid window limits: min_windows 9, max_windows 8…",
    ),
];

#[test]
fn invalid_files_are_refused_with_position() {
    for (file, message) in FILES {
        let scene = Scene::with(&file.replace("MODEL", MODEL));
        let ended = scene.run("run c.yml --out out");
        let expected = format!("c.yml{message}");
        let matches = match expected.split_once('…') {
            Some((start, "")) => ended.error().starts_with(start),
            _ => ended.error() == expected,
        };
        assert!(matches, "{file:?}\n{}\ninstead of\n{expected}", ended.error());
        assert!(ended.stdout.is_empty() && !scene.path("out").exists());
    }
}

#[test]
fn binary_and_oversized_files_are_refused() {
    let scene = Scene::new();
    scene.write("latin1.yml", b"recipes: [\xe9]\n");
    let long = "x".repeat(100_000);
    scene.write("name.yml", format!("recipes: [{long}]\n"));
    scene.write("key.yml", format!("? {long}\n: 1\n"));
    scene.write("list.yml", format!("recipes: [{}bogus]\n{MODEL}\n", "baseline, ".repeat(10_000)));
    scene.write("numbers.yml", format!("recipes: [{}]\n", "int4wo-128".repeat(10_000)));
    scene.write("deep.yml", "[".repeat(100_000));
    let sizes: Vec<String> = (1..=100_000u32).map(|m| m.to_string()).collect();
    scene.write("million.yml", format!("models: [{{shapes: [{{name: decode, m: [{}]}}]}}]\n", sizes.join(",")));
    for (arguments, message) in [
        ("missing.yml", "cannot read missing.yml: No such file"),
        (".", "cannot read .: Is a directory"),
        ("latin1.yml", "cannot read latin1.yml: stream did not contain valid UTF-8"),
        ("name.yml", "name.yml:1:11: recipes[0]: unknown recipe \"xxx"),
        ("key.yml", "key.yml:1:3: unknown key \"xxx"),
        ("list.yml", "list.yml:1:100011: recipes[10000]: unknown recipe \"bogus\"; known: baseline"),
        ("numbers.yml", "numbers.yml:1:11: recipes[0]: unknown recipe \"int4wo-128int4wo-128"),
        ("deep.yml", "deep.yml: lists and maps nested deeper than 64; check for unclosed brackets"),
        ("million.yml", "million.yml:1:20: models[0].shapes[0]: decode would make 2500000 entries, more than 1000000"),
    ] {
        let ended = scene.run(&format!("run {arguments} --out out"));
        assert!(ended.error().starts_with(message) && ended.error().len() < 4000, "{}", ended.error());
    }
}

const GOOD: &str = "recipes: [baseline]\ndevice: mock\nimplementations: [eager]\n";

fn valid_scene() -> Scene {
    Scene::with(&format!("{GOOD}{TIMING}\n{MODEL}\n"))
}

#[test]
fn unwritable_output_folders_are_refused_before_running() {
    let scene = valid_scene();
    scene.write("file", "");
    for out in ["file", "file/below", "/proc/calorimeter"] {
        let ended = scene.run(&format!("run c.yml --out {out}"));
        assert!(ended.error().starts_with(&format!("cannot write to the directory {out}: ")), "{ended:?}");
        let ended = scene.run(&format!("ci --config c.yml --output {out}/results.json"));
        assert!(ended.error().starts_with(&format!("cannot write to the directory {out}: ")), "{ended:?}");
    }
    assert!(!scene.path("results").exists());
}

#[test]
fn unknown_command_line_names_are_refused() {
    let scene = valid_scene();
    for (arguments, message) in [
        ("--filter (", "--filter: invalid regular expression \"(\": unclosed group"),
        ("--filter cuda", "--filter \"cuda\" matches none of the 1 cases; see their ids with --dry-run"),
        ("--device cuda:97", "device cuda:97 not found; available: "),
    ] {
        let ended = scene.run(&format!("run c.yml --out out {arguments}"));
        assert!(ended.error().starts_with(message), "{ended:?}");
        assert!(!scene.path("out").exists());
    }
    assert!(scene.run("run").error().starts_with("no configuration file"));
    for arguments in ["--device cuad", "--implementations eagre", "--precision 0", "--timeout soon", "--bogus"] {
        let ended = scene.run(&format!("run c.yml {arguments}"));
        ended.expect_code(2);
        assert!(ended.stderr.starts_with("error: ") && ended.stdout.is_empty(), "{ended:?}");
    }
}

#[test]
fn absent_devices_can_be_planned_and_overridden() {
    let scene = Scene::with(&format!("{}{TIMING}\n{MODEL}\n", GOOD.replace("mock", "cuda:97")));
    let error = scene.run("run c.yml --out out").error().to_owned();
    assert!(error.starts_with("device cuda:97 not found; available: ") && error.contains("cpu ("), "{error}");
    assert!(!scene.path("out").exists());
    let plan = scene.run("run c.yml --dry-run --format jsonl");
    assert_eq!(plan.expect_code(0).objects()[0]["device"], "cuda:97");
    assert_eq!(scene.run("run c.yml --out out --device mock --format jsonl").records()[0].case.device, Device::Mock(0));
}

#[test]
fn unsupported_combinations_are_records_not_errors() {
    let scene = Scene::with(&format!(
        "recipes: [baseline]\ndevice: mock\nimplementations: [eager]\n{TIMING}
models: [{{model: transformer_block, shapes: [{{name: custom, shapes: [[1, 12, 12], [1, 16, 16]]}}]}}]\n"
    ));
    let records = scene.run("run c.yml --out out --format jsonl").expect_code(0).records();
    let ended = ["k12", "k16"].map(|size| {
        let outcome = &find_record(&records, size).outcome;
        (outcome.status.as_str(), outcome.reason.as_deref())
    });
    let why = "transformer_block needs k to be a multiple of its 8 heads; k is 12";
    assert_eq!(ended, [("unsupported", Some(why)), ("ok", None)]);
}

#[test]
fn failed_starts_keep_an_existing_dashboard() {
    let scene = Scene::with(&format!("recipes: [int8wo]\ndevice: mock\n{TIMING}\n{MODEL}\n"));
    scene.run("ci --config c.yml --output x.json").expect_code(0);
    let before = fs::read_to_string(scene.path("x.json")).unwrap();
    assert!(before.contains("Fwd Speedup (x)"), "{before}");
    scene.run("ci --config missing.yml --output x.json").error();
    scene.run("ci --config c.yml --output x.json --device cuda:97").error();
    assert!(fs::read_to_string(scene.path("x.json")).unwrap() == before);
}
