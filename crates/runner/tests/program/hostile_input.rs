//! Arbitrary paths, endless files and excessive requests: each works or is refused in one line.

use crate::scene::{ProgramOutput, Scene, TIMING};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// Name with an invalid UTF-8 sequence.
fn non_utf8_name(ending: &str) -> OsString {
    OsString::from_vec([b"caf\xe9", ending.as_bytes()].concat())
}

/// Program with arguments that may be invalid UTF-8.
fn command(scene: &Scene, arguments: &[&OsStr]) -> Command {
    let mut command = scene.command("");
    command.args(arguments);
    command
}

fn run(scene: &Scene, arguments: &[&OsStr]) -> ProgramOutput {
    lossy_output(command(scene, arguments).output().unwrap())
}

/// Output with invalid UTF-8 replaced.
fn lossy_output(output: Output) -> ProgramOutput {
    assert_eq!(output.status.signal(), None, "{}", String::from_utf8_lossy(&output.stderr));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    ProgramOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

const COMMON: &str = "recipes: [baseline]\ndevice: mock\nimplementations: [eager]\n";

#[test]
fn paths_may_contain_any_bytes() {
    let scene = Scene::new();
    let (folder, config, out) = (non_utf8_name(""), non_utf8_name("/c.yml"), non_utf8_name(".out"));
    std::fs::create_dir(scene.path(".").join(&folder)).unwrap();
    let shapes = "models: [{shapes: [{name: csv, path: s.csv}]}]";
    std::fs::write(scene.path(".").join(&config), format!("{COMMON}{TIMING}\nenable_profiler: true\n{shapes}\n"))
        .unwrap();
    std::fs::write(scene.path(".").join(non_utf8_name("/s.csv")), "m,k,n\n8,8,8\n16,8,8\n").unwrap();
    let text = OsStr::new;
    let run = |arguments: &[&OsStr]| run(&scene, arguments);
    let first = run(&[text("run"), &config, text("--out"), &out, text("--format"), text("jsonl")]);
    assert_eq!(first.expect_code(0).records().iter().filter(|record| record.is_ok()).count(), 2, "{first:?}");
    // The journal records the paths of the file and its shapes.
    let resumed = run(&[text("run"), text("--resume"), &out, text("--format"), text("jsonl")]);
    assert!(resumed.expect_code(0).stdout.is_empty(), "{resumed:?}");
    let dashboard = non_utf8_name(".json");
    run(&[text("ci"), text("--config"), &config, text("--output"), &dashboard]).expect_code(0);
    assert!(scene.path(".").join(&dashboard).is_file());
    let (profile, registry) = (non_utf8_name(".profile"), non_utf8_name(".registry"));
    let calibrate = ["calibrate", "--device", "mock", "--quick", "--max-time", "20ms", "--operations", "latency"];
    let mut arguments: Vec<&OsStr> = calibrate.into_iter().map(text).collect();
    let place = [text("--output"), &profile, text("--registry"), &registry, text("--out"), text("calibrated")];
    arguments.extend(place);
    run(&arguments).expect_code(0);
    run(&[text("calibrate"), text("--show"), &profile]).expect_code(0);
    run(&[text("calibrate"), text("--show"), text("mock"), text("--registry"), &registry]).expect_code(0);
    // Results record this path.
    let ops = [text("ops"), text("--device"), text("mock"), text("--export"), &folder];
    let refused = run(&ops);
    refused.expect_code(2);
    assert!(refused.stderr.contains("--export <DIR>': expected a path in UTF-8"), "{refused:?}");
    let error = run(&[text("run"), &non_utf8_name(".missing")]);
    assert!(error.error().contains("caf\u{fffd}.missing"), "{error:?}");
}

#[test]
fn workers_accept_non_utf8_folders() {
    let scene =
        Scene::with(&format!("{COMMON}{TIMING}\nmodels: [{{shapes: [{{name: custom, shapes: [[8, 8, 8]]}}]}}]\n"));
    let (cache, temporary) =
        (scene.path(".").join(non_utf8_name(".cache")), scene.path(".").join(non_utf8_name(".tmp")));
    std::fs::create_dir(&temporary).unwrap();
    let mut command = scene.command("run c.yml --out out --format jsonl");
    let ended = ProgramOutput::from_command(command.env("XDG_CACHE_HOME", &cache).env("TMPDIR", &temporary));
    assert!(ended.expect_code(0).records()[0].is_ok(), "{ended:?}");
}

#[test]
fn byte_order_marks_are_ignored() {
    let scene = Scene::with(&format!("\u{feff}{COMMON}models: [{{shapes: [{{name: csv, path: s.csv}}]}}]\n"));
    scene.write("s.csv", "\u{feff}m,k,n\n8,8,8\n");
    assert_eq!(scene.run("run c.yml --dry-run --format jsonl").expect_code(0).objects().len(), 1);
    scene.write("b.yml", "\u{feff}benchmarks:\n- {benchmark_name: add, benchmark_sweep_params: [{m: 8, n: 8}]}\n");
    assert!(!scene.run("run b.yml --device mock --dry-run --format jsonl").expect_code(0).objects().is_empty());
    scene.write("wrong.yml", "\u{feff}recipees: [baseline]\n");
    let wrong = scene.run("run wrong.yml");
    assert!(wrong.error().starts_with("wrong.yml:1:1: ") && wrong.error().contains("\"recipees\""), "{wrong:?}");
}

/// Limits of memory and CPU time, so that a failing test does not exhaust the machine.
const RESOURCE_LIMITS: &str = "ulimit -v 8000000 && ulimit -t 30";

#[test]
fn endless_files_are_refused() {
    let scene = Scene::new();
    let limited = |arguments: &str| ProgramOutput::from_command(&mut scene.limited_command(RESOURCE_LIMITS, arguments));
    let longer = "exceeds 4 MiB, the size limit of such a file; shorten it";
    assert_eq!(limited("run /dev/zero").error(), format!("cannot read /dev/zero: {longer}"));
    let pipe = std::fs::File::open("/dev/zero").unwrap();
    let piped = scene.limited_command(RESOURCE_LIMITS, "run /dev/stdin").stdin(pipe).output().unwrap();
    assert_eq!(ProgramOutput::from(piped).error(), format!("cannot read /dev/stdin: {longer}"));
    scene.write("c.yml", format!("{COMMON}models: [{{shapes: [{{name: csv, path: /dev/zero}}]}}]\n"));
    let error = limited("run c.yml").error().to_owned();
    assert!(error.starts_with("c.yml:4:20: models[0].shapes[0]: cannot read /dev/zero: exceeds 64 MiB"), "{error}");
    let error = limited("calibrate --show /dev/zero").error().to_owned();
    assert!(error.starts_with("cannot read /dev/zero: exceeds 16 MiB"), "{error}");
}

#[test]
fn excessive_plans_are_refused_quickly() {
    let models = |one: &str, times: usize| format!("models: [{}]\n", vec![one; times].join(", "));
    let sweep = "{axes: {m: {start: 1, end: 1000, increment: 1}, k: {start: 1, end: 1000, increment: 1}, n: 1}}";
    let sweeps = "{m_range: {start: 1, end: 1000, increase_by: 1}, n_range: {start: 1, end: 1000, increase_by: 1}}";
    let sweeps = vec![sweeps; 20].join(", ");
    let rows = "name: csv, path: s.csv";
    for (file, message) in [
        (
            format!("{COMMON}{}", models(sweep, 20)),
            "c.yml:4:106: models[1]: more than 1000000 sizes up to here; split the file",
        ),
        (
            format!("benchmarks: [{{benchmark_name: add, benchmark_sweep_params: [{sweeps}]}}]\n"),
            "c.yml:1:13: 20000000 parameter sets, more than 1000000; split the file",
        ),
        (
            format!("{COMMON}{}", models(&format!("{{shapes: [{{{rows}}}, {{{rows}}}]}}"), 1)),
            "c.yml:4:10: models[0]: more than 1000000 sizes up to here; split the file",
        ),
        (
            format!("{}models: [{{shapes: [{{name: sweep, min_power: 0, max_power: 20}}]}}]\n", many_recipes()),
            "c.yml: models[0]: 1194669 cases up to here, more than 1000000; reduce shapes, ",
        ),
        (format!("{COMMON}{}", models("{}", 10_001)), "c.yml:4:9: 10001 models, more than 10000; split the file"),
        (
            format!("{COMMON}mock: [{}]\n{}", "{},".repeat(100_000), models("{}", 10_000)),
            "c.yml:1:1: top-level keys copied to 10000 models need ",
        ),
        (
            format!("device: mock\nrecipes: [{}]\n{}", "int8wo, ".repeat(500_000), models("{}", 10_000)),
            "c.yml: models[0]: shapes (or matrix_shapes) is missing or empty",
        ),
        (
            format!("{COMMON}models: [{{shapes: [{{name: custom, shapes: {}", "[".repeat(100_000)),
            "c.yml: lists and maps nested deeper than 64; check for unclosed brackets",
        ),
        (
            format!("{COMMON}a: &a [{}]\nb: [{}]\n", "1,".repeat(1000), "*a,".repeat(3000)),
            "c.yml: file larger than 4 MiB with aliases expanded; use fewer aliases",
        ),
    ] {
        let scene = Scene::with(&file);
        scene.write("s.csv", format!("m,k,n\n{}", "8,8,8\n".repeat(600_000)));
        let ended = ProgramOutput::from_command(
            &mut scene.limited_command(RESOURCE_LIMITS, "run c.yml --device mock --dry-run"),
        );
        assert!(ended.error().starts_with(message), "{}", ended.error());
    }
    let axes = format!("m={0} --axis k={0} --axis n={0}", vec!["8"; 101].join(","));
    let ended = ProgramOutput::from_command(
        &mut Scene::new().limited_command(RESOURCE_LIMITS, &format!("gemm --device mock --dry-run --axis {axes}")),
    );
    assert!(ended.error().contains(" sizes, more than 1000000; give fewer values"), "{}", ended.error());
    let axes = format!("m={0} --axis k={0}", (1..=400).map(|size| size.to_string()).collect::<Vec<_>>().join(","));
    let suite = format!("gemm --device mock --dry-run --dtypes {} --axis {axes}", ["f32"; 100].join(","));
    let ended = ProgramOutput::from_command(&mut Scene::new().limited_command(RESOURCE_LIMITS, &suite));
    assert!(ended.error().contains(" sizes including "), "{}", ended.error());
}

/// All folders, exports and recipes have distinct names.
#[test]
fn resume_time_is_linear_in_records() {
    let shapes = "models: [{shapes: [{name: custom, shapes: [[8, 8, 8]]}]}]";
    let scene = Scene::with(&format!("{TIMING}\n{COMMON}{shapes}\n").replace("[baseline]", "[baseline, int8wo]"));
    scene.run("run c.yml --out out").expect_code(0);
    let journal = std::fs::read_to_string(scene.path("out/journal.jsonl")).unwrap();
    let line = journal.lines().find(|line| line.contains("\"recipe\":\"int8wo\"")).unwrap();
    let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
    record["record"].as_object_mut().unwrap().retain(|key, _| !["windows", "scatter", "id"].contains(&key.as_str()));
    let records = (1..=60_000).flat_map(|number| {
        let (mut exported, mut quantized) = (record.clone(), record.clone());
        exported["record"]["id"] = format!("exported/{number}").into();
        exported["record"]["status"] = "failed".into();
        exported["record"]["export"] = serde_json::json!({ "entry": number, "csv_path": format!("/nowhere/{number}") });
        quantized["record"]["id"] = format!("quantized/{number}").into();
        quantized["record"]["recipe"] = format!("uintx-4-{number}").into();
        [format!("{exported}\n"), format!("{quantized}\n")]
    });
    scene.write("out/journal.jsonl", journal.clone() + &records.collect::<String>());
    let ended =
        lossy_output(scene.limited_command("ulimit -t 45", "run --resume out --format jsonl").output().unwrap());
    ended.expect_code(5);
    let summary = scene.journal("out").summary.unwrap();
    assert_eq!((summary.notes.len(), summary.suite.len()), (60_000, 60_001));
}

/// Enough recipes to exceed the limit on cases for all cubes.
fn many_recipes() -> String {
    let recipes: Vec<String> = (1..=128).map(|group| format!("uintx-4-{group}")).collect();
    format!("device: mock\nimplementations: [eager]\nrecipes: [{}]\n", recipes.join(", "))
}

#[test]
fn planning_time_is_linear_in_shapes() {
    let shapes = "[8, 8, 8], ".repeat(100_000);
    let scene = Scene::with(&format!("{COMMON}models: [{{shapes: [{{name: custom, shapes: [{shapes}]}}]}}]\n"));
    let mut command = scene.limited_command("ulimit -t 30", "run c.yml --dry-run --format jsonl");
    let ended = lossy_output(command.output().unwrap());
    let last = ended.expect_code(0).stdout.lines().last().unwrap();
    assert!(last.starts_with("{\"id\":\"inference/linear/baseline/eager/mock/bf16/m8-k8-n8#100000\""), "{last}");
}

#[test]
fn names_may_contain_any_characters() {
    let names = ["\u{1b}[31mred", "=1+1|cmd", "../../etc/passwd", "/", "a\nb", "\0", "\u{202e}", "\"'`$(x)", "#2", ""];
    let names = names.into_iter().map(str::to_owned).chain([long_name(100_000)]);
    for name in names {
        let quoted = serde_json::to_string(&name).unwrap();
        let scene = Scene::with(&format!(
            "{COMMON}models:\n- {{name: {quoted}, shapes: [{{name: custom, shapes: [[8, 8, 8]]}}, {{name: csv, path: s.csv}}]}}\n"
        ));
        let cell = name.replace('"', "\"\"");
        scene.write("s.csv", format!("name,m,k,n\n\"{cell}\",8,8,8\n"));
        for format in ["table", "jsonl"] {
            let ended = scene.run(&format!("run c.yml --dry-run --format {format}"));
            assert_eq!(ended.expect_code(0).stdout.lines().filter(|line| line.contains("m8-k8-n8")).count(), 2);
            assert!(!ended.stderr.contains("panicked"), "{ended:?}");
            let control = ended.stdout.chars().find(|c| c.is_control() && *c != '\n' || *c == '\u{202e}');
            assert_eq!(control, None, "{format}: {:?}", ended.stdout);
        }
        for place in ["model: NAME", "device: NAME", "dtype: NAME", "implementations: [NAME]", "NAME: 1"] {
            let place = place.replace("NAME", &quoted);
            scene.write("c.yml", format!("recipes: [baseline]\n{place}\nmodels: [{{shapes: [{{name: pow2}}]}}]\n"));
            let ended = scene.run("run c.yml --dry-run");
            let error = ended.error();
            assert!(error.starts_with("c.yml:") && error.len() < 5000, "{error}");
        }
    }
}

fn long_name(length: usize) -> String {
    "x".repeat(length)
}
