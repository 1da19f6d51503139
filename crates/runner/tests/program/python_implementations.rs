//! Implementations in Python: correct ones pass, all others cost one case each.

use crate::scene::{ProgramOutput, Scene, TIMING, find_record, wait_until};
use calorimeter_external::protocol::{Reply, Request};
use calorimeter_runner::serde_json;
use calorimeter_sinks::{Record, Status};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Python source of the fixtures.
fn fixture(name: &str) -> PathBuf {
    repository().join("crates/runner/tests/fixtures/python").join(name)
}

/// `calorimeter` with the Python package of the repository, and a Python source of the fixtures.
fn command(scene: &Scene, arguments: &str, source: &str) -> Command {
    let mut command = scene.command(arguments);
    let source = if source.ends_with(".py") { fixture(source).display().to_string() } else { source.to_owned() };
    command.args(["--python", &source]).env("PYTHONPATH", repository().join("integrations/python"));
    command
}

fn run(scene: &Scene, source: &str) -> ProgramOutput {
    ProgramOutput::with_timeout(&mut command(scene, "run c.yml --out out --format jsonl", source))
}

/// Records of runs of a few models each, so that no run reaches the time limit of the tests.
fn run_in_parts(settings: &str, models: &str, source: &str) -> Vec<Record> {
    let models: Vec<&str> = models.lines().collect();
    let part = |models: &[&str]| {
        let scene = Scene::with(&format!("{settings}models:\n{}\n", models.join("\n")));
        run(&scene, source).expect_code(0).records()
    };
    models.chunks(10).flat_map(part).collect()
}

/// Copies of 3000 elements by `eager` and some implementations.
fn copies(names: &str, timing: &str) -> Scene {
    Scene::with(&format!(
        "device: cpu\ndtype: f32\n{timing}\nmodels: [{{model: stream_copy, axes: {{elements: 3000}}, \
         implementations: [eager, {names}], timeout: 8s}}]"
    ))
}

fn record<'a>(records: &'a [Record], name: &str) -> &'a Record {
    find_record(records, &format!("/{name}/"))
}

#[test]
#[ignore = "needs Python"]
fn correct_python_implementations_are_measured() {
    let scene = copies("slice, parts, chatty, through, scratch, picky", TIMING);
    let records = run(&scene, "honest.py").expect_code(0).records();
    for name in ["slice", "parts", "chatty", "through", "scratch"] {
        let record = record(&records, name);
        assert!(record.is_ok() && record.speedup.is_some() && record.accuracy.is_some(), "{record:?}");
        assert_eq!(record.execution.stopwatch.as_deref(), Some("wall"));
        assert_eq!(record.execution.kernel.as_deref(), Some(name));
        assert!(!record.warnings.texts().join(" ").contains("two clocks"), "{:?}", record.warnings);
    }
    let picky = record(&records, "picky");
    assert_eq!(picky.outcome.status, Status::Unsupported);
    assert_eq!(picky.outcome.reason.as_deref(), Some("supports only sizes that do not exist"));
}

#[test]
#[ignore = "needs Python"]
fn wrong_and_cheating_implementations_are_refused() {
    let wrong = ["idle", "first-only", "stored", "stored-all", "unless-nan", "half", "one-wrong", "late"];
    let failing = [
        ("raises", "RuntimeError: no kernel was found"),
        ("raises-later", "ValueError: launch 3 failed"),
        ("changes-input", "the implementation changed input 0"),
        ("skips", "ns if the inputs are repeated"),
        ("exits", "exit status: 7: fatal error of a library"),
        ("returns-no-function", "must return a function, not int"),
    ];
    let names: Vec<&str> = wrong.into_iter().chain(failing.map(|(name, _)| name)).chain(["hangs"]).collect();
    let records = run(&copies(&names.join(", "), TIMING), "cheating.py").expect_code(3).records();
    assert!(record(&records, "eager").is_ok());
    for name in wrong {
        let record = record(&records, name);
        assert_eq!(record.outcome.status, Status::Mismatch, "{name}: {:?}", record.outcome);
        assert!(record.speedup.is_none(), "{name}");
    }
    for (name, expected) in failing {
        let outcome = &record(&records, name).outcome;
        assert_eq!(outcome.status, Status::Failed, "{name}: {outcome:?}");
        assert!(outcome.reason.as_deref().unwrap_or_default().contains(expected), "{name}: {outcome:?}");
    }
    let reason = record(&records, "raises").outcome.reason.clone().unwrap();
    assert!(reason.contains("cheating.py, line ") && !reason.contains("worker.py"), "{reason}");
    assert_eq!(record(&records, "hangs").outcome.status, Status::Timeout);
}

#[test]
#[ignore = "needs Python"]
fn crash_of_an_implementation_affects_no_other_implementation() {
    let records = run(&copies("plain, exits-late", TIMING), "crashing.py").expect_code(5).records();
    assert!(record(&records, "plain").is_ok() && record(&records, "eager").is_ok(), "{records:?}");
    let outcome = &record(&records, "exits-late").outcome;
    assert_eq!(outcome.status, Status::Failed, "{outcome:?}");
    assert!(outcome.reason.as_deref().is_some_and(|reason| reason.contains("exit status: 7")), "{outcome:?}");
}

#[test]
#[ignore = "needs Python"]
fn falsified_times_are_refused() {
    for (divisor, expected) in
        [("1", None), ("10", Some("ms for windows that took")), ("0.1", Some("ns for a window of"))]
    {
        let scene = copies("falsified", "timing: {max_time: 1s, precision: 0.1%}");
        let mut command = command(&scene, "run c.yml --out out --format jsonl", "clocks.py");
        let records = ProgramOutput::with_timeout(command.env("DIVISOR", divisor)).records();
        let falsified = record(&records, "falsified");
        let reason = falsified.outcome.reason.as_deref();
        match expected {
            None => assert!(falsified.is_ok(), "{falsified:?}"),
            Some(expected) => {
                assert_eq!(falsified.outcome.status, Status::Failed, "{divisor}: {falsified:?}");
                assert!(reason.is_some_and(|reason| reason.contains(expected)), "{divisor}: {reason:?}");
            }
        }
    }
}

#[test]
#[ignore = "needs Python"]
fn python_sources_that_cannot_be_used_are_usage_errors() {
    let scene = copies("mine", TIMING);
    scene.write("broken.py", "import calorimeter\ndef broken(:\n");
    scene.write("empty.py", "");
    scene.write("taken.py", implementation("softmax", "native", "cpu"));
    scene.write("misspelled.py", implementation("sofmax", "mine", "cpu"));
    scene.write("gpu.py", implementation("softmax", "mine", "vulkan"));
    let path = |name: &str| scene.path(name).display().to_string();
    let sources = [
        (path("broken.py"), "SyntaxError"),
        (path("empty.py"), "registers no implementation"),
        (path("taken.py"), "the name native belongs to a built-in implementation"),
        (path("misspelled.py"), "softmax"),
        (path("gpu.py"), "mine for softmax runs on vulkan; this version supports cpu and cuda"),
        (path("missing.py"), "cannot read"),
        ("nump".to_owned(), "expected a .py file or one of gemlite"),
    ];
    for (source, expected) in sources {
        let ended = ProgramOutput::with_timeout(
            scene
                .command("run c.yml --out out")
                .args(["--python", &source])
                .env("PYTHONPATH", repository().join("integrations/python")),
        );
        assert!(ended.expect_code(2).stderr.contains(expected), "{source}: {ended:?}");
        assert!(!scene.path("out").exists());
    }
    let unknown = ProgramOutput::with_timeout(&mut command(&scene, "run c.yml --implementations natve", "honest.py"));
    assert!(
        unknown.expect_code(2).stderr.contains("--implementations: unknown implementation \"natve\""),
        "{unknown:?}"
    );
}

/// Python source with one implementation.
fn implementation(subject: &str, name: &str, device: &str) -> String {
    format!(
        "import calorimeter\n@calorimeter.implementation('{subject}', name='{name}', devices=['{device}'])\n\
         def open(case, inputs, outputs):\n    return None\n"
    )
}

#[test]
#[ignore = "needs Python"]
fn torchao_files_select_implementations_of_torch() {
    let sources: String = ["torch", "torch-compile", "torch-compile-max"]
        .map(|name| implementation("linear", name, "cpu").replacen("import calorimeter\n", "", 1))
        .concat();
    for (mode, expected) in [
        ("false", &["torch"][..]),
        ("default", &["torch", "torch-compile"]),
        ("max-autotune", &["torch", "torch-compile-max"]),
    ] {
        let scene = Scene::with(&format!(
            "benchmark_mode: inference\nquantization_config_recipe_names: [int8wo]\noutput_dir: out\nmodel_params:\n  \
             - {{name: a, matrix_shapes: [{{name: custom, shapes: [[8, 32, 32]]}}], high_precision_dtype: torch.float32, \
             torch_compile_mode: {mode}, device: cpu, model_type: linear}}\n"
        ));
        scene.write("mine.py", format!("import calorimeter\n{sources}"));
        let mut command = scene.command("run c.yml --dry-run");
        command.args(["--python", "mine.py"]).env("PYTHONPATH", repository().join("integrations/python"));
        let output = ProgramOutput::with_timeout(&mut command);
        output.expect_code(0);
        let planned = |name: &&str| output.stdout.contains(&format!("/baseline/{name}/cpu/"));
        let names: Vec<&str> = ["torch", "torch-compile", "torch-compile-max"].into_iter().filter(planned).collect();
        assert_eq!(names, expected, "{mode}: {}", output.stdout);
    }
}

#[test]
#[ignore = "needs Python"]
fn killed_runs_leave_no_process_and_resume() {
    let scene = copies("slice, parts", "timing: {min_time: 1s, max_time: 1s}");
    // A copy, because other tests run the original.
    std::fs::copy(fixture("honest.py"), scene.path("mine.py")).unwrap();
    let source = scene.path("mine.py").canonicalize().unwrap().display().to_string();
    let mut running = scene.command("run c.yml --out out --python mine.py");
    let mut running = scene.start_command(running.env("PYTHONPATH", repository().join("integrations/python")));
    wait_until("a case", || scene.path("out/journal.jsonl").exists() && python_processes(&source) > 0);
    running.signal(Signal::KILL);
    running.child.wait().unwrap();
    wait_until("the end of all Python processes", || python_processes(&source) == 0);
    // The source is stored in the journal.
    let resumed = ProgramOutput::with_timeout(
        scene.command("run --resume out --format jsonl").env("PYTHONPATH", repository().join("integrations/python")),
    );
    let records = resumed.expect_code(0).records();
    assert!(record(&records, "slice").is_ok() && record(&records, "parts").is_ok(), "{resumed:?}");
}

#[test]
fn documented_messages_are_messages_of_the_protocol() {
    let page = std::fs::read_to_string(repository().join("docs/src/worker-protocol.md")).unwrap();
    let block = page.split("```").nth(1).unwrap();
    let (mut requests, mut replies) = (0, 0);
    for line in block.lines().skip(1).filter(|line| !line.is_empty()) {
        let (kind, json) = line.split_at(2);
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        let written = if kind == "> " {
            requests += 1;
            serde_json::to_value(serde_json::from_str::<Request>(json).unwrap()).unwrap()
        } else {
            replies += 1;
            serde_json::to_value(serde_json::from_str::<Reply>(json).unwrap()).unwrap()
        };
        assert_eq!(written, value);
    }
    assert_eq!((requests, replies), (7, 9));
}

/// Number of Python processes whose command line contains `text`.
fn python_processes(text: &str) -> usize {
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = folders.filter_map(|folder| std::fs::read(folder.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).into_owned())
        .filter(|line| line.starts_with("python3") && line.contains(text))
        .count()
}

#[test]
#[ignore = "needs Python"]
fn files_of_the_results_page_are_planned() {
    let folder = repository().join("configs/results");
    let page = std::fs::read_to_string(repository().join("docs/src/performance.md")).unwrap();
    let scene = Scene::new();
    // The names of the real sources, which need libraries.
    scene.write(
        "names.py",
        "import calorimeter\nfor name in 'torch torch-compile torch-compile-max torch-cudnn torch-flash liger'.split():\n\
         \x20   calorimeter.implementation('softmax', name=name)(lambda case, inputs, outputs: None)\n",
    );
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for file in names {
        let path = format!("configs/results/{}", file.file_name().unwrap().display());
        assert!(page.contains(&format!("calorimeter run {path}")), "{path} has no command on the page");
        let arguments = format!("run {} --device mock --dry-run --format jsonl --python names.py", file.display());
        let mut command = scene.command(&arguments);
        let planned = ProgramOutput::with_timeout(command.env("PYTHONPATH", repository().join("integrations/python")));
        let planned = planned.expect_code(0).objects();
        assert!(planned.iter().any(|case| case["implementation"] == "native"), "{path}: {planned:?}");
    }
}

#[test]
#[ignore = "needs NumPy"]
fn bench_compares_the_implementations_of_a_source() {
    let scene = Scene::new();
    let mut command = Command::new("python3");
    scene.prepare(&mut command);
    command.args(["-m", "calorimeter", "bench"]).arg(repository().join("examples/python/my_kernels.py"));
    command.args(["--against", "native", "--", "--out", "out", "--max-time", "20ms", "--format", "jsonl"]);
    command.env("PYTHONPATH", repository().join("integrations/python"));
    command.env("CALORIMETER", env!("CARGO_BIN_EXE_calorimeter"));
    let records = ProgramOutput::with_timeout(&mut command).expect_code(0).records();
    let names: Vec<String> = records.iter().map(|record| record.case.implementation.to_string()).collect();
    let count = |name: &str| names.iter().filter(|other| *other == name).count();
    assert_eq!((count("native"), count("my-softmax"), names.len()), (4, 4, 8), "{names:?}");
    assert!(records.iter().all(|record| record.is_ok() && record.accuracy.is_some()), "{records:?}");
}

#[test]
#[ignore = "needs NumPy"]
fn unusual_correct_implementations_are_accepted() {
    let names = [
        "returned",
        "columns-first",
        "flat-list",
        "in-place",
        "written-and-returned",
        "double",
        "ragged-blocks",
        "threads",
        "own-memory",
    ];
    let scene = Scene::with(&format!(
        "device: cpu\ndtype: f32\n{TIMING}\nmodels: [{{model: softmax, axes: {{batch: 1, sequence: 7, dimension: \
         1001}}, implementations: [eager, {}]}}]",
        names.join(", ")
    ));
    let records = run(&scene, "honest_numpy.py").expect_code(0).records();
    for name in names {
        let record = record(&records, name);
        assert!(record.is_ok() && record.accuracy.is_some() && record.speedup.is_some(), "{record:?}");
    }
}

#[test]
#[ignore = "needs NumPy"]
fn numpy_passes_the_gate_for_every_operator_and_model() {
    let operators = [
        "layer_norm",
        "rms_norm",
        "gelu",
        "gelu_tanh",
        "silu",
        "softmax",
        "mse_loss",
        "cross_entropy",
        "ln_gelu",
        "add_ln",
        "swiglu",
    ];
    let products = [
        "linear_bias",
        "linear_bias_relu",
        "linear_bias_gelu",
        "linear_bias_silu",
        "ln_linear",
        "swiglu_mlp",
        "matmul",
    ];
    let layers = [
        "linear",
        "ln_linear_relu",
        "ln_linear_sigmoid",
        "ln_linear_leakyrelu",
        "ln_linear_relu6",
        "ln_linear_gelu",
        "ln_linear_silu",
        "ln_linear_hardswish",
    ];
    let mut models = String::new();
    for name in operators {
        models += &format!("  - {{model: {name}, axes: {{batch: 2, sequence: 8, dimension: 96}}}}\n");
    }
    for name in products {
        models += &format!("  - {{model: {name}, axes: {{m: 8, k: 64, n: 48}}}}\n");
    }
    for name in layers {
        models += &format!("  - {{model: {name}, shapes: [[8, 64, 48]]}}\n");
    }
    models += "  - {model: gemv, axes: {m: 40, k: 64}}\n  - {model: dot, axes: {n: 500}}\n";
    let settings = format!("device: cpu\ndtype: f32\nrecipes: [baseline]\n{TIMING}\nimplementations: [eager, numpy]\n");
    let records = run_in_parts(&settings, &models, "numpy");
    let numpy: Vec<&Record> = records.iter().filter(|record| record.case.implementation.name() == "numpy").collect();
    assert_eq!(numpy.len(), operators.len() + products.len() + layers.len() + 2);
    for record in numpy {
        assert!(record.is_ok() && record.accuracy.is_some() && record.speedup.is_some(), "{record:?}");
        assert!(
            record.execution.kernel.as_deref().is_some_and(|kernel| kernel.starts_with("numpy (numpy 2")),
            "{record:?}"
        );
    }
}

#[test]
#[ignore = "needs PyTorch"]
fn triton_example_is_refused_with_a_wrong_epsilon() {
    let example = std::fs::read_to_string(repository().join("examples/python/triton_rms_norm.py")).unwrap();
    let wrong = example.replace("1e-5", "1e-6");
    assert_ne!(wrong, example);
    for (source, status) in [(wrong, Status::Mismatch), (example, Status::Ok)] {
        let scene = Scene::with(&format!(
            "device: cpu\ndtype: f32\n{TIMING}\nmodels: [{{model: rms_norm, axes: {{batch: 1, sequence: 16, dimension: \
             64}}, implementations: [eager, my-triton]}}]"
        ));
        scene.write("mine.py", source);
        let mut command = command(&scene, "run c.yml --out out --format jsonl", "numpy");
        command.arg("--python").arg(scene.path("mine.py")).env("TRITON_INTERPRET", "1");
        let records = ProgramOutput::with_timeout(&mut command).records();
        let mine = record(&records, "my-triton");
        assert_eq!(mine.outcome.status, status, "{mine:?}");
    }
}

#[test]
#[ignore = "needs PyTorch"]
fn torch_passes_the_gate_for_every_operator_and_model() {
    let file = std::fs::read_to_string(fixture("torch.yml")).unwrap();
    let (settings, models) = file.split_once("models:\n").unwrap();
    let records = run_in_parts(settings, models, "torch");
    let mut measured: Vec<&str> = records.iter().map(|record| record.case.workload.as_str()).collect();
    let mut python = Command::new("python3");
    python.args(["-c", "from calorimeter.sources import torch; print(*torch.SUBJECTS)"]);
    let offered = python.env("PYTHONPATH", repository().join("integrations/python")).output().unwrap();
    let offered = String::from_utf8(offered.stdout).unwrap();
    let mut offered: Vec<&str> = offered.split_whitespace().collect();
    measured.sort_unstable();
    offered.sort_unstable();
    assert_eq!(measured, offered);
    for record in &records {
        assert!(record.is_ok() && record.accuracy.is_some(), "{record:?}");
        let kernel = record.execution.kernel.as_deref();
        assert!(kernel.is_some_and(|kernel| kernel.starts_with("torch (torch ")), "{record:?}");
    }
}

#[test]
#[ignore = "needs CUDA and PyTorch"]
fn implementations_on_a_gpu_are_refused_if_they_cheat() {
    let run = |names: &[&str], source: &str, code: i32| {
        let subject = format!(
            "{{model: stream_copy, axes: {{elements: 4194304}}, implementations: [{}], timeout: 30s}}",
            names.join(", ")
        );
        let scene = Scene::with(&format!("device: cuda\ndtype: f32\n{TIMING}\nmodels: [{subject}]"));
        run(&scene, source).expect_code(code).records()
    };
    let honest = [
        "returned",
        "reused",
        "strided",
        "side-stream",
        "joined-stream",
        "replayed",
        "in-place",
        "synchronizing",
        "parts",
        "compiled",
        "replaces-timers",
        "allocates",
    ];
    let records = run(&honest, "honest_cuda.py", 0);
    for name in honest {
        assert!(record(&records, name).is_ok(), "{:?}", record(&records, name));
    }
    let mismatches = [
        "idle",
        "first-only",
        "stored",
        "stored-all",
        "unless-nan",
        "half",
        "one-wrong",
        "half-precision",
        "late",
        "stale-graph",
    ];
    let failures = ["deferred", "skips", "changes-input", "faults"];
    let names: Vec<&str> = mismatches.into_iter().chain(failures).collect();
    let records = run(&names, "cheating_cuda.py", 3);
    let status = |name| record(&records, name).outcome.status;
    assert_eq!(mismatches.map(status), [Status::Mismatch; 10], "{records:?}");
    assert_eq!(failures.map(status), [Status::Failed; 4], "{records:?}");
}

#[test]
#[ignore = "needs torchao"]
fn torchao_passes_the_gate_for_training_recipes() {
    let settings = "device: cpu\ndtype: bf16\nrecipes: [baseline, tensorwise, rowwise-fast, rowwise_with_gw_hp, mxfp8]\n\
                    timing: {max_time: 5ms, max_warm_up: 5ms, precision: 50%}\nimplementations: [torch]\n\
                    regimes: [device-hot]\n";
    let models = "  - {model: linear_forward, shapes: [[32, 64, 96]]}\n  \
                  - {model: linear_forward_backward, shapes: [[32, 64, 96]]}\n  \
                  - {model: transformer_block_forward_backward, shapes: [[2, 64, 64]]}\n";
    let records = run_in_parts(settings, models, "torch");
    assert_eq!(records.len(), 15);
    for record in records {
        if record.case.recipe.as_str() == "mxfp8" {
            let reason = record.outcome.reason.as_deref().unwrap_or_default();
            assert!(reason.contains("torchao has no configuration"), "{record:?}");
        } else {
            assert!(record.is_ok() && record.accuracy.is_some(), "{record:?}");
            assert_eq!(record.weights.quantise_ns, None, "{record:?}");
        }
    }
}

#[test]
#[ignore = "needs torchao"]
fn torchao_passes_the_gate_for_supported_recipes() {
    const INTX: &str = "int8_dynamic_activation_intx_weight";
    let every_dtype = "int8wo int8dq int8dq_prefill_wo_decode int4wo-32 float8wo uintx-2-64 uintx-7-32 uintx-4-64-hqq";
    let cases = [
        ("bf16", 32, 128, format!("{every_dtype} uintx-3-64 uintx-8-64-hqq int4wo-64-hqq mxfp8 mxfp4"), Status::Ok),
        ("f16", 32, 128, every_dtype.to_owned(), Status::Ok),
        ("f32", 32, 128, format!("{every_dtype} mxfp8 mxfp4 {INTX}-4-32-true {INTX}-8-64-false"), Status::Ok),
        // A single token is not quantized.
        ("f32", 1, 128, "int8dq_prefill_wo_decode".to_owned(), Status::Ok),
        // Calorimeter pads 80 values to whole groups, and torchao does not.
        ("bf16", 8, 80, "int4wo-32 mxfp8 mxfp4".to_owned(), Status::Unsupported),
        ("f16", 8, 128, "int4wo-32-hqq mxfp8".to_owned(), Status::Unsupported),
        ("bf16", 8, 128, "uintx-8-64 nvfp4 fp6 int8adq-int4w-symm marlin-qqq".to_owned(), Status::Unsupported),
    ];
    for (dtype, rows, depth, recipes, expected) in cases {
        let recipes: Vec<&str> = recipes.split(' ').collect();
        for part in recipes.chunks(5) {
            let settings = format!(
                "device: cpu\ndtype: {dtype}\nrecipes: [{}]\nimplementations: [torch]\nregimes: [device-hot]\n\
                 timing: {{max_time: 5ms, max_warm_up: 5ms, precision: 50%}}\n",
                part.join(", ")
            );
            let model = format!("  - {{model: linear, shapes: [[{rows}, {depth}, 96]]}}\n");
            let records = run_in_parts(&settings, &model, "torch");
            let quantized = records.iter().filter(|record| record.case.recipe.as_str() != "baseline");
            assert_eq!(quantized.clone().count(), part.len());
            for record in quantized {
                assert_eq!(record.outcome.status, expected, "{record:?}");
                assert_eq!(record.weights.quantise_ns.is_some(), expected == Status::Ok, "{record:?}");
            }
        }
    }
}

#[test]
#[ignore = "needs torchao"]
fn weights_for_gemlite_pass_the_gate() {
    for dtype in ["bf16", "f16"] {
        for recipes in ["int8wo, gemlitewo-8, float8wo, int8dq", "int4wo-32, int4wo-128, gemlitewo-4-64"] {
            let settings = format!(
                "device: cpu\ndtype: {dtype}\nrecipes: [{recipes}]\nimplementations: [emulated]\n\
                 regimes: [device-hot]\ntiming: {{max_time: 5ms, max_warm_up: 5ms, precision: 50%}}\n"
            );
            let model = "  - {model: linear, shapes: [[64, 256, 512]]}\n";
            let records = run_in_parts(&settings, model, "gemlite_arithmetic.py");
            let quantized = records.iter().filter(|record| record.case.recipe.as_str() != "baseline");
            assert_eq!(quantized.clone().count(), recipes.split(", ").count());
            for record in quantized {
                assert!(record.is_ok() && record.accuracy.is_some(), "{record:?}");
            }
        }
    }
}
