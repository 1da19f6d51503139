//! Files of torchao's runner: planned cases.

use crate::scene::{Scene, fixture};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// Plan of a fixture; must be reproducible.
fn plan(file: &str) -> Vec<Value> {
    let command = format!("run {} --dry-run --format jsonl", fixture(&format!("torchao/{file}")).display());
    let (scene, again) = (Scene::new(), Scene::new());
    let ended = scene.run(&command);
    assert_eq!(ended.expect_code(0).stdout, again.run(&command).stdout);
    ended.objects()
}

fn planned(config: &str) -> Vec<Value> {
    Scene::with(config).run("run c.yml --dry-run --format jsonl").expect_code(0).objects()
}

/// Short description of a case.
fn case_text(case: &Value) -> String {
    let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
    let [m, k, n] = ["m", "k", "n"].map(|axis| case["shape"][axis].as_u64().unwrap());
    let sparsity = case["sparsity"].as_str().map_or_else(String::new, |sparsity| format!("+{sparsity}"));
    let implied = if case["implied"] == true { " implied" } else { "" };
    format!("{}{sparsity} {} {} {m} {k} {n}{implied}", text("recipe"), text("workload"), text("implementation"))
}

fn case_texts(cases: &[Value]) -> Vec<String> {
    cases.iter().map(case_text).collect()
}

/// All recipes at all shapes, in file order.
fn product(recipes: &[(&str, &str)], shapes: &[(&str, [u64; 3])], implementations: &[&str]) -> Vec<String> {
    let mut expected = Vec::new();
    for (workload, [m, k, n]) in shapes {
        for (recipe, implied) in recipes {
            for implementation in implementations {
                expected.push(format!("{recipe} {workload} {implementation} {m} {k} {n}{implied}"));
            }
        }
    }
    expected
}

const ALL: [&str; 4] = ["eager", "fused", "cube", "native"];

/// Every recipe runs in burn, unless this build lacks the backend; the reason names its feature. Unsupported cases have
/// a reason, and all cases have their facts.
fn has_reasons(cases: &[Value]) {
    for case in cases {
        assert_eq!(case["status"] == "unsupported", case["reason"].is_string(), "{case}");
        if case["implementation"] == "eager" {
            let lacks_backend = case["device"] == "cuda:0" && !cfg!(feature = "cuda");
            let reason = case["reason"].as_str();
            assert_eq!(reason.is_some(), lacks_backend, "{case}");
            assert!(reason.is_none_or(|reason| reason.ends_with("build with `--features cuda`")), "{case}");
        }
        assert!(case["flops"].as_u64() > Some(0) && case["bytes"].as_u64() > Some(0), "{case}");
        for key in ["id", "mode", "regime", "device", "dtype"] {
            assert!(case[key].is_string(), "{case}");
        }
    }
    let ids: BTreeSet<&str> = cases.iter().map(|case| case["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), cases.len());
}

#[test]
fn first_schema_plans_recipes_times_shapes() {
    let cases = plan("benchmark_config.L1.yml");
    let recipes = [("baseline", ""), ("int4wo-32", ""), ("int4wo-128", "")];
    let sigmoid = "ln_linear_sigmoid";
    let compiled = [("linear", [1024, 1024, 1024]), (sigmoid, [2048, 4096, 1024]), (sigmoid, [4096, 4096, 1024])];
    let mut expected = product(&recipes, &compiled, &ALL);
    expected.extend(product(&recipes, &[("linear", [4096, 4096, 1024])], &["eager"]));
    assert_eq!(case_texts(&cases), expected);
    has_reasons(&cases);
    let devices: Vec<(&Value, &Value)> = cases.iter().map(|case| (&case["device"], &case["dtype"])).collect();
    assert!(devices[..36].iter().all(|d| *d == (&"cuda:0".into(), &"bf16".into())));
    assert!(devices[36..].iter().all(|d| *d == (&"cpu".into(), &"f32".into())));
}

/// Shapes of the fifth and eighth schema example, derived by hand from torchao's generators.
fn shapes() -> Vec<(&'static str, [u64; 3])> {
    let [a, b, c] = [1 << 14, 1 << 15, 1 << 16];
    let sweep =
        [[a, a, a], [a, a, b], [a, a, c], [a, b, b], [a, b, c], [a, c, c], [b, b, b], [b, b, c], [b, c, c], [c, c, c]];
    let mut shapes: Vec<(&str, [u64; 3])> = sweep.map(|shape| ("linear", shape)).to_vec();
    shapes.push(("ln_linear_sigmoid", [2048, 4096, 1024]));
    shapes.push(("transformer_block", [2048, 4096, 1024]));
    let last = [
        [16384, 8192, 1280],
        [16384, 1024, 8192],
        [16384, 8192, 7168],
        [16384, 3584, 8192],
        [1024, 1024, 1024],
        [2048, 2048, 2048],
        [4096, 4096, 4096],
        [1024, 1024, 1024],
        [1536, 1536, 1536],
        [2048, 2048, 2048],
        [3072, 3072, 3072],
    ];
    shapes.extend(last.map(|shape| ("linear", shape)));
    shapes
}

const QUANTIZED: [&str; 4] = ["int8wo", "int8dq", "float8dq-tensor", "float8wo"];

#[test]
fn use_torch_compile_adds_the_baseline() {
    let cases = plan("benchmark_config.L5.yml");
    let recipes: Vec<(&str, &str)> = ["baseline"].iter().chain(&QUANTIZED).map(|&recipe| (recipe, "")).collect();
    assert_eq!(case_texts(&cases), product(&recipes, &shapes(), &ALL));
    has_reasons(&cases);
}

#[test]
fn last_schema_implies_the_baseline() {
    let cases = plan("benchmark_config.L8.yml");
    let recipes: Vec<(&str, &str)> =
        [("baseline", " implied")].into_iter().chain(QUANTIZED.map(|recipe| (recipe, ""))).collect();
    assert_eq!(case_texts(&cases), product(&recipes, &shapes(), &ALL));
    has_reasons(&cases);
    assert!(cases.iter().all(|case| case["profiler"] == true && case["memory_profiler"] == true));
}

#[test]
fn training_files_plan_every_pass() {
    let cases = plan("training_benchmark_config.yml");
    let passes = ["linear_forward", "linear_backward", "linear_forward_backward", "linear_adamw", "linear_adamw_step"];
    let sizes = [[1024, 1024, 1024], [2048, 4096, 1024], [4096, 4096, 1024], [16384, 16384, 16384]];
    let mut expected = Vec::new();
    for pass in passes {
        // torchao measured the baseline with every recipe; an optimizer has no other recipe. The file requests fast
        // accumulation.
        let both = [("baseline", ""), ("tensorwise-fast", "")];
        let recipes = if pass == "linear_adamw" { &both[..1] } else { &both };
        expected.extend(product(recipes, &sizes.map(|size| (pass, size)), &ALL));
    }
    assert_eq!(case_texts(&cases), expected);
    has_reasons(&cases);
    assert!(cases.iter().all(|case| case["mode"] == "training" && case["dtype"] == "bf16"));
    let scaled =
        cases.iter().filter(|case| case["scaling"].is_string()).all(|case| case["recipe"] == "tensorwise-fast");
    let fast = "e4m3 per tensor; gradients e5m2; sums of the output in tensor cores";
    assert!(scaled && cases[4]["scaling"] == fast, "{}", cases[4]);
}

#[test]
fn training_files_run_with_grouped_passes() {
    check_training_file("/m(16|64)-");
}

#[test]
fn large_shapes_of_training_files_run_with_grouped_passes() {
    check_training_file("/m(32|256)-");
}

/// Runs torchao's training file for two of its four shapes.
fn check_training_file(filter: &str) {
    let file = fixture("torchao/training_benchmark_config.yml");
    let scene = Scene::with("device: cpu");
    let command = format!(
        "run {} --device cpu --implementations eager --scale-shapes 1/64 --filter {filter} --max-time 20ms --out out \
         --format jsonl",
        file.display()
    );
    let ended = scene.run(&command);
    let records = ended.expect_code(0).records();
    assert_eq!(records.len(), 2 * 9);
    for record in &records {
        // The file requests fast accumulation.
        let fast = "e4m3 per tensor; gradients e5m2; sums of the output in tensor cores";
        let expected = if record.case.recipe == "baseline" { None } else { Some(fast) };
        assert_eq!(record.case.scaling.map(|scaling| scaling.as_str()), expected, "{}", record.case.id);
        assert!(record.is_ok() && record.accuracy.is_some(), "{record:?}");
        assert_eq!(record.speedup.is_some(), expected.is_some(), "{}", record.case.id);
    }
    assert!(ended.stderr.contains("repeat_n has no effect"), "{}", ended.stderr);
    let tables = fs::read_dir(scene.path("out/training")).unwrap().map(|entry| entry.unwrap().path());
    let tables: Vec<_> = tables.collect();
    assert_eq!(tables.len(), 1, "{tables:?}");
    let text = fs::read_to_string(&tables[0]).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 1 + 2 * 2, "{text}");
    let column = |name: &str| lines[0].iter().position(|head| *head == name).unwrap();
    for line in &lines[1..] {
        for name in [
            "forward_time_ms",
            "backward_time_ms",
            "total_time_ms",
            "reference_total_time_ms",
            "speedup",
            "step_time_ms",
        ] {
            assert!(line[column(name)].parse::<f64>().unwrap() > 0.0, "{name}: {line:?}");
        }
    }
    assert!(!scene.path("out/inference").exists());
}

#[test]
fn training_files_support_models_and_unscaled_operands() {
    let of = |model: &str, recipe: &str, disabled: &str| {
        planned(&format!(
            "benchmark_mode: training\nquantization_config_recipe_names: [{recipe}]\n{disabled}\nmodel_params: \
             [{{model_type: {model}, device: cpu, compile: false, matrix_shapes: [{{name: custom, shapes: [[4, 64, 32]]}}]}}]"
        ))
    };
    let cases =
        of("transformer_block", "float8dq-row", "scaling_type_input: disabled\nscaling_type_grad_output: dynamic");
    let mut expected = Vec::new();
    for pass in ["forward", "backward", "forward_backward", "adamw", "adamw_step"] {
        let pass = format!("transformer_block_{pass}");
        let recipes = [("baseline", " implied"), ("rowwise-without-input", "")];
        let recipes = if pass.ends_with("adamw") { &[("baseline", "")][..] } else { &recipes };
        expected.extend(product(recipes, &[(&pass, [4, 64, 32])], &["eager"]));
    }
    assert_eq!(case_texts(&cases), expected);
    let scaled: Vec<&Value> = cases.iter().map(|case| &case["scaling"]).filter(|scaling| scaling.is_string()).collect();
    assert_eq!(scaled, [&Value::from("e4m3 per row; powers of two; input as it is"); 4]);
    // Sixteen tokens per sequence; for a layer, rows are tokens.
    assert!(cases.iter().all(|case| case["tokens"].is_null() == (case["workload"] == "transformer_block_adamw")));
    assert_eq!((&cases[0]["tokens"], &of("ln_linear_silu", "mxfp8", "")[0]["tokens"]), (&64.into(), &4.into()));
    // Six multiply-adds per weight and token, plus two attention matmuls forward and four backward.
    assert_eq!(cases[4]["flops"], 6 * 64 * (12 * 64 * 64 + 2 * 16 * 64));
}

#[test]
fn all_torchao_syntaxes_are_equivalent() {
    let shape = "[{name: custom, shapes: [[8, 16, 32]]}]";
    let ours = format!(
        "recipes: [baseline, int8wo]\nmodels: [{{dtype: bf16, device: cpu, torch_compile_mode: max-autotune, shapes: {shape}}}]"
    );
    let expected = planned(&ours);
    assert_eq!(expected.len(), 8);
    for theirs in [
        format!(
            "benchmark_mode: inference\nquantization_config_recipe_names: [baseline, int8wo]\nmodel_params:\n  - {{high_precision_dtype: torch.bfloat16, device: cpu, torch_compile_mode: max-autotune, model_type: linear, matrix_shapes: {shape}}}"
        ),
        format!(
            "quantizations: [baseline, int8wo]\nmodel_params: {{precision: bfloat16, device: cpu, compile: \"max-autotune\", model: linear, matrix_shapes: {shape}}}"
        ),
        format!(
            "quantization_config_recipe_names: [baseline, int8wo]\nsparsity_config_recipe_names: [null]\nmodel_params: {{use_torch_compile: true, high_precision_dtype: torch.bfloat16, device: cpu, compile: max-autotune, matrix_shapes: {shape}}}"
        ),
    ] {
        assert_eq!(planned(&theirs), expected, "{theirs}");
    }
    for (word, implementations) in [
        ("compile: false", &["eager"][..]),
        ("compile: default", &["eager", "fused"]),
        ("torch_compile_mode: reduce-overhead", &["eager", "fused"]),
        ("torch_compile_mode: max-autotune, use_torch_compile: false", &["eager"]),
        ("torch_compile_mode: max-autotune-no-cudagraphs", &ALL),
        ("compile: max-autotune, implementations: [native, eager]", &["eager", "native"]),
    ] {
        let cases = planned(&format!("recipes: [baseline]\nmodels: {{device: cpu, {word}, shapes: {shape}}}"));
        let found: Vec<&str> = cases.iter().map(|case| case["implementation"].as_str().unwrap()).collect();
        assert_eq!(found, implementations, "{word}");
    }
}

#[test]
fn sparsities_pair_with_supporting_recipes() {
    for (recipes, sparsities, expected) in [
        ("[baseline, int8wo]", "[semi-sparse]", &["baseline", "baseline+semi-sparse", "int8wo"][..]),
        ("[baseline, marlin]", "['2:4']", &["baseline", "baseline+semi-sparse", "marlin", "marlin+semi-sparse"]),
        ("[int8wo]", "[block]", &["baseline implied", "int8wo", "baseline+block-0.9-64"]),
        ("[float8dq-row]", "[null, semi-sparse]", &["baseline implied", "float8dq-row", "float8dq-row+semi-sparse"]),
        ("[baseline]", "[null]", &["baseline"]),
    ] {
        let cases = planned(&format!(
            "quantization_config_recipe_names: {recipes}\nsparsity_config_recipe_names: {sparsities}
models: [{{device: cpu, implementations: [eager], shapes: [{{name: custom, shapes: [[8, 64, 64]]}}]}}]"
        ));
        let found: Vec<String> =
            case_texts(&cases).iter().map(|line| line.replace(" linear eager 8 64 64", "")).collect();
        assert_eq!(found, expected, "{recipes} with {sparsities}");
        for case in &cases {
            let dense_marlin = case["recipe"] == "marlin" && case["sparsity"].is_null();
            assert_eq!(case["status"] == "unsupported", dense_marlin, "{case}");
        }
    }
}
