//! Commands and exit codes.

use crate::scene::{Scene, TABLES, TIMING, fixture};
use std::time::Instant;

#[test]
fn presets_are_sizes_of_operators_and_models() {
    let config = "device: cpu\nrecipes: [baseline]\nmodels: [{model: [softmax], preset: quick}]";
    for (model, ids) in [
        ("softmax", ["batch1-sequence128-dimension256", "batch8-sequence128-dimension1000"]),
        ("linear", ["m128-k128-n128", "m256-k256-n256"]),
        ("conv2d_relu", ["size56", "size28"]),
    ] {
        let plan = Scene::with(&config.replace("[softmax]", model)).run("run c.yml --dry-run");
        let plan = plan.expect_code(0);
        assert!(ids.iter().all(|id| plan.stdout.contains(id)), "{plan:?}");
    }
}

#[test]
fn informational_commands_print_to_stdout() {
    let scene = Scene::new();
    for (arguments, contains) in [
        ("--help", "Usage: calorimeter <COMMAND>"),
        ("--help", "View results:"),
        ("--version", "calorimeter "),
        ("run --help", "Exit codes:"),
        ("run --help", "Every case ends as one record"),
        ("run -h", "--dry-run"),
        ("accuracy --help", "--implementations"),
        ("ci --help", "--output"),
        ("compare --help", "Exit codes:"),
        ("report --help", "Exit codes:"),
        ("merge --help", "Exit codes:"),
        ("render --help", "Usage: calorimeter render <DIR>"),
        ("calibrate --help", "--fusion-patterns"),
        ("list", "baseline"),
        ("list models", "transformer_block"),
        ("list models", "swiglu_mlp"),
        ("list recipes", "int8wo"),
        ("list shapes", "small_sweep"),
        ("list implementations", "native"),
        ("list devices", "cpu"),
        ("doctor", "You can benchmark: "),
        ("doctor", "Devices, in order of preference:"),
        ("peaks", "no stored peaks: "),
        ("peaks --format json", "[]"),
        ("peaks --help", "Exit codes:"),
        ("schema", "\"recipes\": {"),
        ("man", ".TH calorimeter"),
        ("man run", ".TH calorimeter-run"),
        ("man run", "Every case ends as one record"),
        ("man compare", "no case became slower"),
        ("completions bash", "complete -F"),
        ("completions zsh", "#compdef calorimeter"),
        ("completions fish", "complete -c calorimeter"),
    ] {
        let ended = scene.run(arguments);
        ended.expect_code(0);
        assert!(ended.stdout.contains(contains), "{arguments}: {ended:?}");
        assert!(ended.stderr.is_empty(), "{arguments}: {ended:?}");
    }
    assert!(std::fs::read_dir(scene.path(".")).unwrap().next().is_none(), "informational commands write no files");
}

#[test]
fn quickstart_runs_without_a_file() {
    let scene = Scene::new();
    let planned = |name: &str| scene.run(&format!("run {name} --device mock --dry-run --format jsonl")).objects();
    let bundled = planned("quickstart");
    let configs = fixture("../../../../configs");
    assert!(!bundled.is_empty() && bundled == planned(&format!("{}/quickstart.yml", configs.display())));
    scene.run("run quickstart --device mock --out out").expect_code(0);
    assert_eq!(scene.journal("out").records.len(), bundled.len());
    let resumed = scene.run("run --resume out --device mock");
    assert!(resumed.expect_code(0).stderr.contains("results.csv"), "{resumed:?}");
    // A folder of this name is ignored; a file takes precedence.
    std::fs::create_dir(scene.path("quickstart")).unwrap();
    assert_eq!(planned("quickstart"), bundled);
    std::fs::remove_dir(scene.path("quickstart")).unwrap();
    scene.write("quickstart", "recipes: [baseline]\nmodels: [{shapes: [{name: custom, shapes: [[8, 8, 8]]}]}]\n");
    assert!(planned("quickstart").len() < bundled.len());
}

#[test]
fn init_writes_a_file_once() {
    let scene = Scene::new();
    for (arguments, file) in [("init", "calorimeter.yml"), ("init own.yml", "own.yml")] {
        scene.run(arguments).expect_code(0);
        let before = std::fs::read_to_string(scene.path(file)).unwrap();
        assert!(!scene.run(&format!("run {file} --device mock --dry-run --format jsonl")).objects().is_empty());
        let refused = scene.run(arguments);
        assert!(refused.error().starts_with(file), "{refused:?}");
        assert_eq!(std::fs::read_to_string(scene.path(file)).unwrap(), before);
    }
    scene.run("init nowhere/calorimeter.yml").expect_code(2);
}

#[test]
fn missing_runs_are_one_line() {
    let scene = Scene::new();
    for arguments in ["watch nosuch", "report nosuch", "render nosuch", "compare nosuch", "compare nosuch out"] {
        let ended = scene.run(arguments);
        assert!(ended.error().contains("nosuch") && !ended.stderr.contains("note: "), "{arguments}: {ended:?}");
        assert!(!ended.stderr.contains("--resume"), "{arguments}: {ended:?}");
    }
}

#[test]
fn exit_code_reflects_the_worst_outcome() {
    let noisy = "{match: int8wo, noise: 0.9}";
    for (rules, arguments, code) in [
        ("", "", 0),
        (noisy, "", 0),
        (noisy, "--strict", 4),
        ("{match: int8wo, fault: error}", "", 5),
        ("{match: int8wo, fault: abort}", "--strict", 5),
        ("{match: int8wo, fault: hang}", "--timeout 1s", 5),
        ("{match: int8wo, fault: mismatch}", "", 3),
        ("{match: int8wo.*m8-, fault: mismatch}, {match: int8wo, fault: abort}", "--strict", 3),
    ] {
        let scene = Scene::with(&format!(
            "recipes: [baseline, int8wo, marlin]\ndevice: mock\nimplementations: [eager]\n{TIMING}\nmock: [{rules}]
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8], [16, 16, 16]]}}]}}]\n"
        ));
        scene.run(&format!("run c.yml --out out {arguments}")).expect_code(code);
        // Files are written regardless of the exit code.
        assert_eq!(scene.derived_files("out").len(), 1 + TABLES.len());
    }
}

#[test]
fn timings_cover_the_whole_run() {
    let scene =
        Scene::with(&format!("recipes: [baseline]\ndevice: mock\n{TIMING}\nmodels: [{{shapes: [{{name: pow2}}]}}]\n"));
    let start = Instant::now();
    let ended = scene.run("run c.yml --out out --timings");
    let elapsed = start.elapsed().as_secs_f64();
    let (_, table) = ended.expect_code(0).stderr.split_once("wall time by stage\n").unwrap();
    let rows = table.lines().take_while(|line| line.ends_with('%'));
    let seconds: Vec<f64> =
        rows.map(|line| line.rsplit_once(" s ").unwrap().0.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    let (total, stages) = seconds.split_last().unwrap();
    assert!(stages.len() > 2 && (stages.iter().sum::<f64>() - total).abs() < 0.01 * seconds.len() as f64, "{table}");
    assert!(*total <= elapsed && *total > 0.2 * elapsed, "{elapsed} s\n{table}");
}

#[test]
fn closed_stdout_does_not_stop_a_run() {
    let scene =
        Scene::with(&format!("recipes: [baseline]\ndevice: mock\n{TIMING}\nmodels: [{{shapes: [{{name: pow2}}]}}]\n"));
    let mut running = scene.start("run c.yml --out out");
    drop(running.child.stdout.take());
    running.wait().expect_code(0);
    assert!(scene.journal("out").summary.is_some());
}

#[test]
fn command_line_overrides_dtype_recipes_and_shapes() {
    let scene = Scene::with(
        "device: mock\nimplementations: [eager]\nrecipes: [baseline, int8wo]
models:
  - {shapes: [{name: llama}]}
  - {model: softmax, axes: {batch: [1], sequence: [8], dimension: [16]}}",
    );
    let output = |options: &str| scene.run(&format!("run c.yml --dry-run {options}")).expect_code(0).stdout.clone();
    let cases = |options: &str| -> Vec<String> {
        let output = output(options);
        output.lines().map_while(|line| Some(line.split_once("  ")?.0.to_owned())).collect()
    };
    assert_eq!(
        cases("--dtype f32 --recipes int4wo-64 --shapes 1x64x128"),
        [
            "inference/linear/baseline/eager/mock/f32/m1-k64-n128",
            "inference/linear/int4wo-64/eager/mock/f32/m1-k64-n128",
            "ops/softmax/baseline/eager/mock/f32/batch1-sequence8-dimension16",
        ]
    );
    let generated = cases("--shapes llama,8x64x64 --scale-shapes 1/64");
    assert_eq!(
        generated.len(),
        2 * (1 + cases("").iter().filter(|id| id.contains("/baseline/eager/mock/bf16/m")).count()) + 1
    );
    for (options, message) in [
        ("--dtype int8", "int8"),
        ("--recipes int8w0", "\"int8wo\""),
        ("--shapes 1x2", "1x2"),
        ("--shapes 0x2x3", "m"),
        ("--shapes lama", "\"llama\""),
    ] {
        let refused = scene.run(&format!("run c.yml {options}"));
        assert!(refused.expect_code(2).stderr.contains(message), "{refused:?}");
    }
    scene.write(
        "ops.yml",
        "device: mock\nmodels: [{model: softmax, axes: {batch: [1], sequence: [8], dimension: [16]}}]",
    );
    for (option, message) in [("--recipes int8wo", "no entry takes recipes"), ("--shapes 8x8x8", "the axes m, k and n")]
    {
        let refused = scene.run(&format!("run ops.yml {option}"));
        assert!(refused.expect_code(2).stderr.contains(message), "{refused:?}");
    }
}

#[test]
fn operator_aliases_are_accepted() {
    let scene = Scene::new();
    let operators = |command: &str| -> Vec<String> {
        let output = scene.run(&format!("{command} --dry-run --device mock")).expect_code(0).stdout.clone();
        let cases = output.lines().map_while(|line| Some(line.split('/').nth(1)?.to_owned()));
        let mut operators: Vec<String> = cases.take_while(|word| word.starts_with(char::is_lowercase)).collect();
        operators.dedup();
        operators
    };
    assert_eq!(
        operators("ops --ops LayerNorm,GELU,Swish,Loss,CrossEntropy"),
        ["layer_norm", "gelu", "silu", "mse_loss", "cross_entropy"]
    );
    // `attention` is also an operator of another suite.
    let attention = ["qk_scores", "qk_softmax", "full_attention", "attention_4d", "attention_4d_causal"];
    assert_eq!(operators("fusion --patterns attention"), attention);
    assert_eq!(
        operators("fusion --patterns conv,LayerNorm_Linear"),
        ["conv2d_relu", "conv2d_bn", "conv2d_bn_relu", "ln_linear"]
    );
    assert_eq!(operators("gemm --ops attention"), ["attention"]);
    let unknown = scene.run("ops --ops layernrom");
    let output = &unknown.expect_code(2).stderr;
    assert!(output.contains("\"layer_norm\""), "{output}");
    assert!(output.trim_end().ends_with(" more") && output.len() < 200, "{output}");
}
