//! External programs: commands, shared libraries and CUDA C++ kernels, each compared with the first.

use crate::scene::{ProgramOutput, Scene, TIMING, find_record, wait_until};
use calorimeter_case::{Verdict, WarningCode};
use calorimeter_sinks::{Record, Status};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Example files of the book.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/foreign")
}

/// `calorimeter time` with arguments that may contain blanks.
fn time(scene: &Scene, arguments: &[&str]) -> ProgramOutput {
    ProgramOutput::with_timeout(scene.command("time --format jsonl --out out").args(arguments))
}

/// Libraries derived from the example, with different bodies.
fn libraries(scene: &Scene, each: &[(&str, &str)]) {
    let source = fs::read_to_string(examples().join("add.c")).unwrap();
    let call = "it->y[i] = it->a[i] + it->b[i];";
    assert!(source.contains(call));
    for (name, does) in each {
        scene.write(&format!("{name}.c"), source.replace(call, does));
        compile(scene, name);
    }
}

fn compile(scene: &Scene, name: &str) {
    let (from, to) = (scene.path(&format!("{name}.c")), scene.path(&format!("{name}.so")));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Werror", "-O1", "-shared", "-fPIC", "-I"]).arg(examples());
    let made = cc.arg("-o").arg(to).arg(from).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Equivalent of the example's body.
const TWIN: &str = "it->y[i] = it->b[i] + it->a[i];";
/// Arguments of the example.
const SUM: &str = "arguments: ['f32:n:in', 'f32:n:in', 'f32:n:out']";

fn reason(record: &Record) -> &str {
    record.outcome.reason.as_deref().unwrap_or_default()
}

#[test]
fn slower_commands_are_detected() {
    let scene = Scene::new();
    let ended = time(&scene, &["--max-time", "1s", "--command", "sleep 0.01", "--", "sleep", "0.03"]);
    let records = ended.expect_code(0).records();
    let [short, long] = ["/sleep 0.01/", "/sleep 0.03/"].map(|part| find_record(&records, part));
    assert_eq!(&*short.case.id, "foreign/command/baseline/sleep 0.01/cpu/u8/host-e2e");
    for record in [short, long] {
        assert_eq!((record.outcome.status, record.execution.stopwatch.as_deref()), (Status::Ok, Some("wall-e2e")));
        let warnings = record.warnings.texts().join("\n");
        assert!(warnings.contains("not checked: a command reports only its exit status"), "{warnings}");
        assert!(!record.time.windows.is_empty() && record.accuracy.is_none() && record.rates.roofline.is_none());
    }
    assert_eq!(long.execution.kernel.as_deref(), Some("sleep 0.03"));
    let speedup = long.speedup.as_ref().unwrap();
    assert_eq!((&speedup.vs, speedup.verdict), (&short.case.id, Verdict::Slower));
    assert!(short.speedup.is_none());
    assert!(scene.path("out/results.csv").exists());
}

#[test]
fn command_lines_are_compared_in_a_sentence() {
    let scene = Scene::new();
    scene.write("my program.so", "");
    let arguments = ["time", "--max-time", "500ms", "--out", "out", "sleep 0.01", "sh -c 'sleep 0.03'"];
    let ended = ProgramOutput::with_timeout(scene.command("").args(arguments));
    ended.expect_code(0);
    let screen = ended.stdout.as_str();
    assert!(screen.contains("sleep 0.01 is ") && screen.contains("x faster than sh -c sleep 0.03 ["), "{screen}");
    for absent in ["u8", "FLOP/s", "SQNR", "GB/s", "weights", "operators", "implementation"] {
        assert!(!screen.contains(absent), "{absent}: {screen}");
    }
    // A path that exists may contain blanks; a command line may end like a library.
    let arguments = ["time", "--dry-run", "--format", "jsonl", "my program.so", "cc -shared x.so", "true"];
    let planned = ProgramOutput::from_command(scene.command("").args(arguments)).expect_code(0).objects();
    let ids: Vec<&str> = planned.iter().map(|case| case["id"].as_str().unwrap()).collect();
    let expected = ["my program.so", "cc -shared x.so", "true"];
    assert!(
        ids.len() == 3 && ids.iter().zip(expected).all(|(id, label)| id.contains(&format!("/{label}/"))),
        "{ids:?}"
    );
}

#[test]
fn failing_commands_cost_one_case() {
    let scene = Scene::with(&format!(
        "{TIMING}
timeout: 2s
models:
  - foreign:
      name: some
      subjects:
        - {{command: 'true'}}
        - {{name: failing, command: 'sh -c \"echo no such grid >&2; exit 3\"'}}
        - {{name: missing, command: ./missing}}
        - {{name: hanging, command: 'sh -c \"echo $$ > pid; sleep 1000; true\"'}}
        - {{name: late, command: 'sh -c \"echo >> calls; test $(wc -l < calls) -lt 5\"'}}
"
    ));
    let ended =
        ProgramOutput::with_timeout(scene.command("run c.yml --out out --format jsonl").env("TMPDIR", scene.path("")));
    let records = ended.expect_code(5).records();
    let status = |part: &str| find_record(&records, part).outcome.status;
    assert_eq!(status("/true/"), Status::Ok, "{records:?}");
    for (part, expected, why) in [
        ("/failing/", Status::Failed, "exit status: 3; stderr: no such grid"),
        ("/missing/", Status::Failed, ": No such file"),
        ("/hanging/", Status::Timeout, "took longer than 2s"),
        ("/late/", Status::Failed, "exit status: 1"),
    ] {
        let record = find_record(&records, part);
        assert_eq!(record.outcome.status, expected, "{record:?}");
        assert!(reason(record).contains(why), "{record:?}");
    }
    // Neither the hanging command nor its children are still running.
    let group = fs::read_to_string(scene.path("pid")).unwrap();
    let running = || fs::read_to_string(format!("/proc/{}/cmdline", group.trim())).is_ok_and(|line| !line.is_empty());
    wait_until("what hung to be gone", || !running());
}

#[test]
#[cfg(target_os = "linux")]
fn commands_end_with_a_killed_run() {
    let scene =
        Scene::with("models: [{foreign: {subjects: [{command: 'sh -c \"echo $$ > pid; sleep 1000; true\"'}]}}]");
    let mut running = scene.start("run c.yml --out out");
    let pid = || fs::read_to_string(scene.path("pid")).unwrap_or_default().trim().to_owned();
    wait_until("the command", || !pid().is_empty());
    let cmdline = format!("/proc/{}/cmdline", pid());
    let is_running = || fs::read_to_string(&cmdline).is_ok_and(|line| !line.is_empty());
    assert!(is_running());
    running.child.kill().unwrap();
    running.wait();
    wait_until("the command to be gone", || !is_running());
}

#[test]
fn mock_device_scripts_program_times() {
    let scene = Scene::with(&format!(
        "device: mock
{TIMING}
models:
  - foreign: {{subjects: [{{library: old.so}}, {{library: new.so}}, {{name: bad, library: bad.so}}]}}
mock: [{{match: old.so, nanos: 3000}}, {{match: new.so, nanos: 1000}}, {{match: bad, fault: mismatch}}]
"
    ));
    let records = scene.run("run c.yml --out out --format jsonl").expect_code(3).records();
    let [old, new] = ["/old.so/", "/new.so/"].map(|part| find_record(&records, part));
    let speedup = new.speedup.as_ref().unwrap();
    assert_eq!((&speedup.vs, speedup.verdict), (&old.case.id, Verdict::Faster));
    assert!((2.9..3.1).contains(&speedup.ratio), "{speedup:?}");
    assert_eq!(find_record(&records, "/bad/").outcome.status, Status::Mismatch);
    // The files of the run can be read by other commands.
    let table = scene.run("run c.yml --out again");
    assert!(table.expect_code(3).stdout.contains("\nnew.so   1.000 µs"), "{}", table.stdout);
    let compared = scene.run("compare out again --format json");
    assert_eq!(compared.code, Some(0), "{compared:?}");
    scene.run("report out --output page.html").expect_code(0);
    scene.run("render out").expect_code(0);
}

#[test]
fn library_outputs_must_match() {
    let scene = Scene::with(&format!(
        "{TIMING}
models:
  - foreign:
      subjects: [{{library: add.so}}, {{library: twin.so}}, {{library: wrong.so}}, {{library: less.so}},
        {{library: crash.so}}, {{library: empty.so}}, {{library: old.so}}, {{library: refuses.so}}, {{library: gone.so}}]
      {SUM}
    axes: {{n: 4099}}
"
    ));
    libraries(
        &scene,
        &[
            ("add", TWIN),
            ("twin", TWIN),
            ("wrong", "it->y[i] = it->a[i] + it->b[i] + (i == 4000 ? 0.1f : 0.0f);"),
            ("less", "if (i != 7) it->y[i] = it->a[i] + it->b[i];"),
            ("crash", "*(volatile int *)8 = 1;"),
        ],
    );
    let example = fs::read_to_string(examples().join("add.c")).unwrap();
    scene.write("old.c", example.replace("return CALORIMETER_VERSION", "return 7"));
    scene.write("refuses.c", example.replace("argument_count != 3", "argument_count == 3"));
    scene.write("empty.c", "int x;");
    ["old", "refuses", "empty"].iter().for_each(|name| compile(&scene, name));
    let ended = ProgramOutput::with_timeout(&mut scene.command("run c.yml --out out --format jsonl"));
    let records = ended.expect_code(3).records();
    assert_eq!(records.len(), 9);
    let [first, twin] = ["/add.so/", "/twin.so/"].map(|part| find_record(&records, part));
    assert_eq!(&*first.case.id, "foreign/library/baseline/add.so/cpu/f32/n4099");
    assert_eq!((first.outcome.status, twin.outcome.status), (Status::Ok, Status::Ok), "{first:?} {twin:?}");
    assert_eq!(twin.speedup.as_ref().unwrap().vs, first.case.id);
    assert!(twin.accuracy.as_ref().unwrap().is_exact() && first.accuracy.is_none(), "{twin:?}");
    let warnings = first.warnings.texts().join("\n");
    assert!(warnings.contains("not checked: the other programs are compared with it"), "{warnings}");
    assert!(!twin.warnings.has(WarningCode::UncheckedOutput), "{twin:?}");
    let sets = twin.execution.rotation.as_ref().unwrap();
    assert!(sets.sets > 1 && sets.bytes == 3 * 4 * 4099, "{sets:?}");
    for (part, expected, why) in [
        ("/wrong.so/", Status::Mismatch, "1 of 4099 compared values are wrong; the first, at row 0, column 4000"),
        ("/less.so/", Status::Mismatch, "1 values are not finite; the first is NaN at row 0, column 7"),
        ("/crash.so/", Status::Crashed, "segmentation fault"),
        ("/empty.so/", Status::Failed, "empty.so: missing function calorimeter_version"),
        ("/old.so/", Status::Failed, "interface version 7 does not match version 1"),
        ("/refuses.so/", Status::Failed, "calorimeter_prepare returned 1: expected three arguments"),
        ("/gone.so/", Status::Failed, "cannot open shared object file"),
    ] {
        let record = find_record(&records, part);
        assert_eq!(record.outcome.status, expected, "{record:?}");
        assert!(reason(record).contains(why), "{record:?}");
    }
}

#[test]
fn unchecked_outputs_have_a_warning() {
    let scene = Scene::new();
    libraries(&scene, &[("add", TWIN), ("less", "if (i) it->y[i] = it->a[i] + it->b[i];")]);
    let arguments =
        ["--arg", "f32:n:in", "--arg", "f32:n:in", "--arg", "f32:n:out", "--axis", "n=64", "--max-time", "100ms"];
    let record = &time(&scene, &[&["add.so"], &arguments[..]].concat()).expect_code(0).records()[0];
    assert_eq!(record.outcome.status, Status::Ok, "{record:?}");
    let warnings = record.warnings.texts().join("\n");
    assert!(warnings.contains("not checked: a single program"), "{warnings}");
    // Nevertheless every element must be written.
    let scene = Scene::new();
    libraries(&scene, &[("add", TWIN), ("less", "if (i) it->y[i] = it->a[i] + it->b[i];")]);
    let records = time(&scene, &[&["less.so", "add.so"], &arguments[..]].concat()).expect_code(3).records();
    assert_eq!(find_record(&records, "/less.so/").outcome.status, Status::Mismatch);
    let other = find_record(&records, "/add.so/");
    assert_eq!(other.outcome.status, Status::Ok, "{other:?}");
    let warnings = other.warnings.texts().join("\n");
    assert!(warnings.contains("not checked: less.so has no output"), "{warnings}");
    assert!(other.accuracy.is_none() && other.speedup.is_none(), "{other:?}");
}

#[test]
fn tolerance_is_applied_as_given() {
    let scene = Scene::new();
    libraries(&scene, &[("add", TWIN), ("near", "it->y[i] = (it->a[i] + it->b[i]) * 1.01f;")]);
    let arguments = ["add.so", "near.so", "--arg", "f32:n:in", "--arg", "f32:n:in", "--arg", "f32:n:out"];
    let arguments = [&arguments[..], &["--axis", "n=64", "--max-time", "100ms", "--tolerance"]].concat();
    let records = time(&scene, &[&arguments[..], &["0.02"]].concat()).expect_code(0).records();
    let near = find_record(&records, "/near.so/");
    let error = near.accuracy.as_ref().unwrap().rel_l2.unwrap();
    assert!((0.009..0.011).contains(&error), "{near:?}");
    fs::remove_dir_all(scene.path("out")).unwrap();
    let records = time(&scene, &[&arguments[..], &["0.005"]].concat()).expect_code(3).records();
    assert_eq!(find_record(&records, "/near.so/").outcome.status, Status::Mismatch);
}

/// Commands and libraries in one file, with sizes for both.
fn mixed_scene() -> Scene {
    let scene = Scene::with(&format!(
        "{TIMING}
models:
  - name: sums
    foreign:
      subjects: [{{name: one, library: lib/add.so}}, {{name: other, library: lib/twin.so}}]
      {SUM}
      bytes: 12 * n
    axes: {{n: [64, 128]}}
    regimes: [device-hot]
  - foreign:
      name: echoes
      subjects: [{{command: 'echo {{n}}'}}, {{command: 'echo again {{n}}'}}]
    axes: {{n: [1, 2]}}
"
    ));
    fs::create_dir(scene.path("lib")).unwrap();
    libraries(&scene, &[("add", TWIN), ("twin", TWIN)]);
    for name in ["add.so", "twin.so"] {
        fs::rename(scene.path(name), scene.path("lib").join(name)).unwrap();
    }
    // The device at the top of the file.
    let text = fs::read_to_string(scene.path("c.yml")).unwrap();
    scene.write("c.yml", format!("device: cpu\n{text}"));
    scene
}

const IDS: [&str; 8] = [
    "foreign/library/baseline/one/cpu/f32/n64/device-hot",
    "foreign/library/baseline/other/cpu/f32/n64/device-hot",
    "foreign/library/baseline/one/cpu/f32/n128/device-hot",
    "foreign/library/baseline/other/cpu/f32/n128/device-hot",
    "foreign/echoes/baseline/echo {n}/cpu/u8/n1/host-e2e",
    "foreign/echoes/baseline/echo again {n}/cpu/u8/n1/host-e2e",
    "foreign/echoes/baseline/echo {n}/cpu/u8/n2/host-e2e",
    "foreign/echoes/baseline/echo again {n}/cpu/u8/n2/host-e2e",
];

#[test]
fn programs_in_files_run_and_resume() {
    let scene = mixed_scene();
    let planned = scene.run("run c.yml --dry-run --format jsonl");
    let planned: Vec<String> =
        planned.expect_code(0).objects().iter().map(|case| case["id"].as_str().unwrap().into()).collect();
    assert_eq!(planned, IDS);
    let records =
        ProgramOutput::with_timeout(&mut scene.command("run c.yml --out out --format jsonl")).expect_code(0).records();
    let echo = find_record(&records, "/echo again {n}/cpu/u8/n2");
    assert_eq!(echo.execution.kernel.as_deref(), Some("echo again 2"));
    assert!(find_record(&records, "/other/cpu/f32/n64").rates.gbps.is_some());

    // Simulates a kill after the first group.
    let journal = scene.path("out/journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let kept: Vec<&str> = text.lines().take(3).collect();
    fs::write(&journal, kept.join("\n") + "\n").unwrap();
    ProgramOutput::with_timeout(&mut scene.command("run --resume out")).expect_code(0);
    let contents = scene.journal("out");
    let mut ids: Vec<&str> = contents.records.iter().map(|record| &*record.case.id).collect();
    ids.sort_unstable();
    let mut expected = IDS;
    expected.sort_unstable();
    assert_eq!(ids, expected);
    assert!(contents.records.iter().all(Record::is_ok), "{:?}", contents.records);
}

#[test]
fn timed_commands_resume_from_the_journal() {
    let scene = Scene::new();
    time(&scene, &["--max-time", "100ms", "--command", "echo a", "--command", "echo b"]).expect_code(0);
    let journal = scene.path("out/journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.lines().next().unwrap().to_owned() + "\n").unwrap();
    ProgramOutput::with_timeout(&mut scene.command("time --resume out")).expect_code(0);
    assert_eq!(scene.journal("out").records.len(), 2);
    let error = scene.run("time --resume out -- echo c");
    assert!(error.error().contains("omit programs and sizes"), "{error:?}");
}

#[test]
fn invalid_programs_are_refused_with_position() {
    for (programs, error) in [
        ("subjects: []", "c.yml:2:5: models[0]: foreign: missing subject"),
        ("{}", "c.yml:4:7: models[0].foreign: missing field `subjects`"),
        ("subjects: [{libary: x}]", "\"libary\""),
        ("subjects: [{library: x, command: y}]", "subjects[0]: expected exactly one of command, library and kernel"),
        ("subjects: [{command: 'a | b'}]", ".command: command \"a | b\": | is shell syntax"),
        ("subjects: [{kernel: x.cu}]", "subjects[0]: missing entry: select a kernel of x.cu"),
        ("subjects: [{kernel: x.cu, entry: f}]", "missing grid or block: set the launch configuration of f"),
        ("subjects: [{library: x, grid: [1]}]", "entry, grid, block and shared require a kernel"),
        ("subjects: [{kernel: x.cu, entry: f, grid: [1, 1, 1, 1], block: [1]}]", "one to three sizes each"),
        (
            "subjects: [{command: x}]\n      arguments: ['f32:1:in']",
            "arguments are only supported by kernels and libraries",
        ),
        (
            "subjects: [{library: x}]\n      arguments: ['f33:1:in']",
            "arguments[0]: invalid argument \"f33:1:in\": invalid buffer type \"f33\"",
        ),
        ("subjects: [{library: x}]\n      arguments: ['f32:m:in']", "unknown axis \"m\"; axes: n"),
        ("subjects: [{library: x}]\n      tolerance: 2", "invalid tolerance 2"),
        ("subjects: [{command: x}]", "does not use the axis n; write {n} where"),
        ("subjects: [{name: a/b, library: x}]", "invalid name \"a/b\""),
    ] {
        let scene = Scene::with(&format!("models:\n  - axes: {{n: 8}}\n    foreign:\n      {programs}\n"));
        let ended = scene.run("run c.yml --dry-run");
        let message = ended.error();
        assert!(message.contains(error) && message.starts_with("c.yml:"), "{programs}: {message}");
    }
    let scene = Scene::with("models: [{model: softmax, foreign: {subjects: [{library: x}]}}]");
    let ended = scene.run("run c.yml --dry-run");
    assert!(ended.error().contains("models[0]: ") && ended.error().contains("model and foreign"), "{ended:?}");
    for (arguments, error) in [
        ("time", "nothing to time"),
        ("time x.cu", "select a kernel with --entry"),
        ("time x.cu --entry f", "set the launch configuration of f with --grid and --block"),
        ("time x.so --entry f", "require a CUDA C++ source (.cu)"),
        ("time x.so y.so --labels a", "--labels: 1 names for 2 programs"),
        ("time x.so --implementations eager", "--implementations does not apply to external programs"),
    ] {
        let ended = scene.run(arguments);
        assert!(ended.error().contains(error), "{arguments}: {ended:?}");
    }
}

#[test]
fn cuda_kernels_without_cuda_are_unsupported() {
    let scene = Scene::new();
    let arguments = "x.cu --entry add --grid 1 --block 1 --format jsonl";
    // Nothing is compiled: unsupported kernels are known in advance.
    let records = scene.run(&format!("time {arguments} --device cpu --out out")).expect_code(0).records();
    assert_eq!((records.len(), records[0].outcome.status), (1, Status::Unsupported));
    assert_eq!(reason(&records[0]), "x.cu is CUDA C++ and needs an NVIDIA GPU, not cpu");
    let mut hidden = scene.command(&format!("time {arguments}"));
    let ended = ProgramOutput::from_command(hidden.env("CUDA_VISIBLE_DEVICES", ""));
    assert!(ended.error().contains("cuda:0") && ended.error().contains("available: "), "{ended:?}");
    // The regimes of commands and libraries are known in advance.
    let planned = scene.run("time a.so --regimes graph,host-e2e --dry-run --format jsonl").expect_code(0).objects();
    let known: Vec<bool> = planned.iter().map(|case| case["reason"].is_null()).collect();
    assert_eq!(known, [false, true], "{planned:?}");
    let planned = scene.run("time --regimes device-cold --dry-run --format jsonl -- true").expect_code(0).objects();
    assert_eq!(planned[0]["reason"], "device-cold: commands are synchronous; use host-e2e");
}

#[test]
#[ignore = "needs CUDA"]
fn cuda_kernels_are_compiled_checked_and_timed() {
    let scene = Scene::new();
    let source = fs::read_to_string(examples().join("add.cu")).unwrap();
    scene.write("add.cu", &source);
    scene.write("wrong.cu", source.replace("a[i] + b[i]", "a[i] - b[i]"));
    scene.write("less.cu", source.replace("if (i < n)", "if (i < n && i != 5)"));
    scene.write("far.cu", source.replace("y[i] =", "y[i + (1ull << 40)] ="));
    scene.write("broken.cu", source.replace("blockIdx.x", "blockIdx.q"));
    let files = ["add.cu", "add.cu", "wrong.cu", "less.cu", "broken.cu", "far.cu"];
    let launch = ["--entry", "add<float>", "--grid", "(n+255)/256", "--block", "256", "--axis", "n=100003"];
    let given = ["--arg", "f32:n:in", "--arg", "f32:n:in", "--arg", "f32:n:out", "--arg", "u64=n", "--bytes", "12*n"];
    let records = time(&scene, &[&files[..], &launch, &given, &["--max-time", "1s"]].concat()).expect_code(3).records();
    let [first, twin] = ["/add.cu/", "/add.cu-2/"].map(|part| find_record(&records, part));
    assert_eq!((first.outcome.status, twin.outcome.status), (Status::Ok, Status::Ok), "{first:?} {twin:?}");
    assert!(twin.accuracy.as_ref().unwrap().is_exact() && twin.speedup.is_some(), "{twin:?}");
    assert!(["cupti", "cuda-events"].contains(&twin.execution.stopwatch.as_deref().unwrap()), "{twin:?}");
    for (part, expected, why) in [
        ("/wrong.cu/", Status::Mismatch, "compared values are wrong"),
        ("/less.cu/", Status::Mismatch, "1 values are not finite; the first is NaN at row 0, column 5"),
        ("/broken.cu/", Status::Failed, "NVRTC could not compile"),
    ] {
        let record = find_record(&records, part);
        assert_eq!(record.outcome.status, expected, "{record:?}");
        assert!(reason(record).contains(why), "{record:?}");
    }
    assert!(!find_record(&records, "/far.cu/").is_ok(), "it writes where nothing is");
}
