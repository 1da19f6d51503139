//! Crash safety: records are never lost, and resumed runs end like uninterrupted ones.

use crate::scene::{ProgramOutput, Scene, TABLES, TIMING, fixture, wait_until};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Four groups with several faults; `sleep_ms` per launch makes a run last.
fn config(sleep_ms: u32) -> String {
    format!(
        "recipes: [baseline, int8wo, marlin]
device: mock
dtype: f32
{TIMING}
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8], [16, 16, 16], [24, 24, 24], [32, 32, 32]]}}]}}]
mock:
  - {{match: 'int8wo/eager.*m16', fault: abort, after: 20, sleep_ms: {sleep_ms}}}
  - {{match: 'int8wo/fused.*m24', fault: error, after: 20, sleep_ms: {sleep_ms}}}
  - {{match: 'baseline/fused.*m32', fault: mismatch, sleep_ms: {sleep_ms}}}
  - {{match: int8wo, nanos: 5000, noise: 0.05, sleep_ms: {sleep_ms}}}
  - {{nanos: 9000, noise: 0.05, sleep_ms: {sleep_ms}}}
"
    )
}

const RUN: &str = "run c.yml --out out --format jsonl";
/// Exit code of the configuration, which contains a wrong output.
const EXIT_CODE: i32 = 3;

/// Finished run of the configuration.
fn finished_run(sleep_ms: u32) -> Scene {
    let scene = Scene::with(&config(sleep_ms));
    scene.run(RUN).expect_code(EXIT_CODE);
    scene
}

#[test]
fn killed_runs_resume_to_identical_files() {
    let whole = finished_run(2);
    let expected = whole.derived_files("out");
    // Before anything, after a crash, at the start of a group, and in the last group.
    for records in [0, 9, 14, 20] {
        let scene = Scene::with(&config(2));
        let mut running = scene.start(RUN);
        running.wait_for_records("out", records);
        let workers = children(running.child.id());
        running.child.kill().unwrap();
        let killed = running.wait();
        wait_until("the orphaned worker to end", || workers.iter().all(|&worker| !is_alive(worker)));

        let contents = scene.journal("out");
        assert!(contents.summary.is_none() && contents.records.len() >= records);
        for shown in killed.records() {
            assert!(contents.records.contains(&shown), "{} was shown and is not on disk", shown.case.id);
        }
        let kept = contents.records.clone();

        scene.run("run --resume out").expect_code(EXIT_CODE);
        assert!(scene.derived_files("out") == expected, "killed after {records} records");
        let contents = scene.journal("out");
        assert!(contents.summary.is_some_and(|summary| !summary.interrupted));
        assert_eq!(contents.records[..kept.len()], kept[..]);
        assert_eq!(scene.records_so_far("out"), 24, "no case is recorded twice");
    }
}

/// The worker notices at its next heartbeat, independent of its case.
#[cfg(target_os = "linux")]
#[test]
fn hanging_workers_end_with_their_run() {
    let scene = Scene::with(&config(0).replace("fault: abort", "fault: hang"));
    let mut running = scene.start(RUN);
    running.wait_for_records("out", 2);
    // Unsupported cases are recorded before the first worker starts.
    wait_until("a worker", || children(running.child.id()).len() == 1);
    let workers = children(running.child.id());
    running.child.kill().unwrap();
    running.wait();
    wait_until("the orphaned worker to end", || !is_alive(workers[0]));
}

/// Child processes of a process.
#[cfg(target_os = "linux")]
fn children(parent: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    listed.split_whitespace().map(|id| id.parse().unwrap()).collect()
}

/// Other systems are not checked for orphans.
#[cfg(not(target_os = "linux"))]
fn children(_: u32) -> Vec<u32> {
    vec![]
}

/// A zombie counts as dead.
fn is_alive(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[test]
fn truncated_journals_resume_to_identical_files() {
    let whole = finished_run(0);
    let (expected, journal) = (whole.derived_files("out"), fs::read(whole.path("out/journal.jsonl")).unwrap());
    let header = journal.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    let cuts = (0..12).map(|part| header + (journal.len() - header) * part / 11);
    for cut in cuts.chain([header + 1, journal.len() - 1]) {
        let scene = Scene::with(&config(0));
        fs::create_dir(scene.path("out")).unwrap();
        scene.write("out/journal.jsonl", &journal[..cut]);
        let ended = scene.run("run --resume out");
        ended.expect_code(EXIT_CODE);
        let noted = ended.stderr.contains("incomplete and was skipped");
        assert_eq!(noted, journal[cut - 1] != b'\n', "cut at {cut}: {}", ended.stderr);
        assert!(scene.derived_files("out") == expected, "cut at {cut}");
    }
}

#[test]
fn resuming_with_another_stopwatch_is_noted() {
    let scene = Scene::with(&config(0));
    let alike = scene.run(RUN).expect_code(EXIT_CODE).stderr.clone();
    let journal = fs::read_to_string(scene.path("out/journal.jsonl")).unwrap();
    // Header and first group, which includes unsupported cases without a time.
    let earlier: Vec<&str> = journal.lines().take(7).collect();
    let earlier = earlier.join("\n").replace("\"stopwatch\":\"mock\"", "\"stopwatch\":\"cupti\"");
    scene.write("out/journal.jsonl", format!("{earlier}\n"));
    let resumed = scene.run("run --resume out").expect_code(EXIT_CODE).stderr.clone();
    let note = "was timed by several clocks, cupti (";
    assert!(resumed.contains(note) && !alike.contains(note), "{resumed}");
}

#[test]
fn resuming_in_another_environment_is_noted() {
    let scene = Scene::with(&config(0));
    let mut run = scene.command(RUN);
    run.env_remove("RAYON_NUM_THREADS").env("CUDA_CACHE_DISABLE", "1").env("NCCL_ALGO", "ring");
    ProgramOutput::from_command(&mut run).expect_code(EXIT_CODE);
    let variables = scene.journal("out").header.environment["variables"].clone();
    assert_eq!((&variables["CUDA_CACHE_DISABLE"], &variables["NCCL_ALGO"]), (&"1".into(), &"ring".into()));
    let journal = fs::read_to_string(scene.path("out/journal.jsonl")).unwrap();
    scene.write("out/journal.jsonl", format!("{}\n", journal.lines().take(7).collect::<Vec<_>>().join("\n")));
    let mut resume = scene.command("run --resume out");
    resume.env("RAYON_NUM_THREADS", "1").env("CUDA_CACHE_DISABLE", "1").env("NCCL_ALGO", "ring");
    let resumed = ProgramOutput::from_command(&mut resume).expect_code(EXIT_CODE).stderr.clone();
    let changes: Vec<&str> = resumed.lines().filter(|line| line.contains("changed when the run was resumed")).collect();
    let note = "the variable RAYON_NUM_THREADS is \"1\" and was not set: changed when the run was resumed; ";
    assert!(changes.len() == 1 && changes[0].starts_with(&format!("note: {note}")), "{resumed}");
    let contents = scene.journal("out");
    let environment = contents.resumed[0].environment.as_ref().unwrap();
    assert_eq!(environment["variables"]["RAYON_NUM_THREADS"], "1");
    assert!(contents.summary.unwrap().notes[0].starts_with(note));
}

#[test]
fn journals_cannot_exceed_the_launch_limit() {
    let scene = Scene::with(&config(0));
    scene.run(&format!("{RUN} --launches 2 --dry-run")).expect_code(0);
    scene.run(&format!("{RUN} --launches 2 --filter baseline/eager.*m8")).expect_code(0);
    let journal = fs::read_to_string(scene.path("out/journal.jsonl")).unwrap();
    scene.write("out/journal.jsonl", journal.replacen("\"launches\":2", "\"launches\":4000000000", 1));
    let refused = scene.run("run --resume out");
    assert!(["--launches 4000000000", "at most 100"].iter().all(|part| refused.error().contains(part)), "{refused:?}");
}

#[test]
fn suite_runs_resume_from_the_journal() {
    for command in [
        "ops --ops softmax,layer_norm --device mock --max-time 1ms",
        "calibrate --operations latency,dot --quick --device mock --max-time 1ms",
        "accuracy --device mock --filter /linear/(int8wo|fp6)/",
    ] {
        let (whole, cut) = (Scene::new(), Scene::new());
        whole.run(&format!("{command} --out out")).expect_code(0);
        let journal = fs::read_to_string(whole.path("out/journal.jsonl")).unwrap();
        let lines: Vec<&str> = journal.lines().collect();
        fs::create_dir(cut.path("out")).unwrap();
        cut.write("out/journal.jsonl", format!("{}\n{}\n", lines[0], lines[1]));
        cut.run("run --resume out").expect_code(0);
        let ids = |scene: &Scene| -> Vec<String> {
            scene.journal("out").records.into_iter().map(|record| record.case.id.to_string()).collect()
        };
        assert!(ids(&whole).len() > 2 && ids(&cut) == ids(&whole), "{command}");
        assert!(cut.journal("out").summary.is_some_and(|summary| !summary.interrupted));
    }
}

/// Early versions stored suites as generated configuration text.
#[test]
fn journals_of_early_versions_resume() {
    let scene = Scene::new();
    fs::create_dir(scene.path("out")).unwrap();
    scene.write("out/journal.jsonl", fs::read(fixture("journals/suite_as_a_file.jsonl")).unwrap());
    let before = scene.journal("out").records;
    scene.run("ops --resume out").expect_code(0);
    let after = scene.journal("out").records;
    assert_eq!((before.len(), after.len(), &after[0]), (1, 2, &before[0]));
}

#[test]
fn resuming_a_finished_run_changes_no_result() {
    let scene = Scene::with(&config(0).replace("fault: mismatch, ", ""));
    let first = scene.run(RUN);
    let (derived, before) = (scene.derived_files("out"), scene.journal("out"));
    for again in ["run --resume out --format jsonl", "run c.yml --resume out --format jsonl"] {
        let second = scene.run(again);
        assert_eq!((second.code, second.stdout.as_str()), (first.code, ""));
        assert!(scene.derived_files("out") == derived);
        assert_eq!(scene.journal("out").records, before.records);
    }
}

#[test]
fn default_output_folders_are_reused_on_resume() {
    let scene = Scene::with(&format!("output_dir: here\n{}", config(0)));
    scene.run("run c.yml").expect_code(EXIT_CODE);
    let before = files_below(&scene.path("here"));
    // Tables, torchao's CSV and the index page.
    assert_eq!(before.len(), TABLES.len() + 2);
    let run = fs::read_dir(scene.path("here")).unwrap().map(|entry| entry.unwrap().file_name());
    let run = run.into_iter().find(|name| name != "inference").unwrap();
    scene.run(&format!("run --resume here/{}", run.to_str().unwrap())).expect_code(EXIT_CODE);
    assert!(files_below(&scene.path("here")) == before);
}

/// All files in a folder except journals, which grow.
fn files_below(below: &Path) -> HashMap<PathBuf, Vec<u8>> {
    let mut files = HashMap::new();
    for path in fs::read_dir(below).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            files.extend(files_below(&path));
        } else if !path.ends_with("journal.jsonl") {
            files.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    files
}

/// The folder has a default name, or a different path than at the start.
#[test]
fn resumed_runs_write_to_original_folders() {
    let torchao = config(0);
    let tables =
        "benchmarks: [{benchmark_name: gemm_simple, csv_path: tables, benchmark_params: [{m: 16, k: 32, n: 16}]}]";
    for (config, start, code, resumed) in [
        (torchao.as_str(), "run c.yml --out results/y", EXIT_CODE, "results/y"),
        (tables, "run c.yml --device mock --out results/y", 0, "results/y"),
        (torchao.as_str(), "run c.yml --out results/y", EXIT_CODE, "./results/y/"),
        (torchao.as_str(), "run c.yml", EXIT_CODE, "./results/../results/ID"),
    ] {
        let scene = Scene::with(config);
        scene.run(start).expect_code(code);
        let runs = fs::read_dir(scene.path("results")).unwrap().map(|entry| entry.unwrap().file_name());
        let run = runs.map(|name| name.into_string().unwrap()).find(|name| name != "inference").unwrap();
        let resumed = resumed.replace("ID", &run);
        let names = || -> BTreeSet<PathBuf> {
            ["results", "tables"]
                .iter()
                .map(|name| scene.path(name))
                .filter(|path| path.exists())
                .flat_map(|path| files_below(&path).into_keys())
                .collect()
        };
        let before = names();
        scene.run(&format!("run --resume {resumed}")).expect_code(code);
        assert_eq!(names(), before, "{start}, then {resumed}");
    }
}

/// Recorded output folders stay valid after moving the run, and from any working directory.
#[test]
fn moved_runs_write_next_to_their_journal() {
    let scene = Scene::with(&config(0));
    scene.run("run c.yml --out results/y").expect_code(EXIT_CODE);
    fs::create_dir(scene.path("elsewhere")).unwrap();
    fs::rename(scene.path("results/y"), scene.path("elsewhere/z")).unwrap();
    let before = files_below(&scene.path("elsewhere")).len();
    let mut command = scene.command("run --resume z");
    ProgramOutput::from_command(command.current_dir(scene.path("elsewhere"))).expect_code(EXIT_CODE);
    assert_eq!(files_below(&scene.path("elsewhere")).len(), before);
    assert!(files_below(&scene.path("results")).is_empty());
}

/// Early journals do not record the output folder.
#[test]
fn missing_output_dir_is_inferred() {
    let scene = Scene::with(&format!("output_dir: here\n{}", config(0)));
    scene.run("run c.yml").expect_code(EXIT_CODE);
    let before = files_below(&scene.path("here"));
    let run = fs::read_dir(scene.path("here")).unwrap().map(|entry| entry.unwrap().path());
    let run = run.into_iter().find(|path| !path.ends_with("inference")).unwrap();
    let journal = fs::read_to_string(run.join("journal.jsonl")).unwrap();
    let older = journal.replacen(r#","output_dir":"..""#, "", 1);
    assert!(older.len() < journal.len());
    fs::write(run.join("journal.jsonl"), older).unwrap();
    scene.run(&format!("run --resume here/{}", run.file_name().unwrap().to_str().unwrap())).expect_code(EXIT_CODE);
    assert!(files_below(&scene.path("here")) == before);
}

/// A starting worker briefly holds the lock of its run, even if the run was killed.
#[test]
fn briefly_held_locks_are_waited_for() {
    let scene = finished_run(0);
    let journal = fs::File::open(scene.path("out/journal.jsonl")).unwrap();
    journal.try_lock().unwrap();
    // The lock belongs to the open file, which only this process still holds.
    let mut holder = Command::new("sleep").arg("0.3").stdin(Stdio::from(journal)).spawn().unwrap();
    scene.run("run --resume out").expect_code(EXIT_CODE);
    holder.wait().unwrap();
}

#[test]
fn resuming_requires_the_same_plan() {
    let scene = finished_run(0);
    let before = fs::read(scene.path("out/journal.jsonl")).unwrap();
    scene.write("other.yml", config(0).replace("9000", "8000"));
    let fingerprint = scene.journal("out").header.config_fingerprint;
    for other in ["run other.yml --resume out", "run --resume out --seed 1", "run c.yml --resume out --filter baseline"]
    {
        let ended = scene.run(other);
        let error = ended.error();
        assert!(error.starts_with("out/journal.jsonl was started with configuration fingerprint"), "{error}");
        let named: Vec<&str> = error.split(|c: char| !c.is_ascii_hexdigit()).filter(|word| word.len() == 16).collect();
        assert!(named.len() == 2 && named[0] == fingerprint && named[1] != fingerprint, "{error}");
    }
    assert!(fs::read(scene.path("out/journal.jsonl")).unwrap() == before);
    // Repeating the original options is allowed.
    let scene = Scene::with(&config(0));
    scene.run("run c.yml --out out --precision 0.57% --timeout 90s").expect_code(EXIT_CODE);
    scene.run("run --resume out").expect_code(EXIT_CODE);
    scene.run("run --resume out --precision 0.57% --timeout 90s").expect_code(EXIT_CODE);
}

#[test]
fn foreign_journals_are_left_unchanged() {
    let journal = fs::read(finished_run(0).path("out/journal.jsonl")).unwrap();
    let header = journal.iter().position(|&byte| byte == b'\n').unwrap();
    let damaged = [&journal[..header + 1], b"{\"record\":{}}\n".as_slice()].concat();
    for (content, message) in [
        (&b""[..], "is not a calorimeter journal"),
        (b"hello\n", "is not a calorimeter journal"),
        (b"{\"schema\":\"other\",\"version\":1}\n", "is not a calorimeter journal"),
        (&journal[..header / 2], "is not a calorimeter journal"),
        (&damaged, ":2: not a journal line"),
        (b"{\"schema\":\"calorimeter-journal\",\"version\":99}\n", "journal version 99"),
    ] {
        for resume in ["run --resume out", "run c.yml --resume out"] {
            let scene = Scene::with(&config(0));
            fs::create_dir(scene.path("out")).unwrap();
            scene.write("out/journal.jsonl", content);
            let ended = scene.run(resume);
            assert!(ended.error().starts_with("out/journal.jsonl") && ended.error().contains(message), "{ended:?}");
            assert!(fs::read(scene.path("out/journal.jsonl")).unwrap() == content);
        }
    }
    let ended = Scene::new().run("run --resume nowhere");
    assert!(ended.error().starts_with("nowhere/journal.jsonl "), "{ended:?}");
}

#[test]
fn new_runs_never_overwrite_old_ones() {
    let scene = finished_run(0);
    let before = fs::read(scene.path("out/journal.jsonl")).unwrap();
    let ended = scene.run("run c.yml --out out");
    assert!(ended.error().contains("out/journal.jsonl") && ended.error().contains("--resume"), "{ended:?}");
    assert!(fs::read(scene.path("out/journal.jsonl")).unwrap() == before);
}

#[test]
fn concurrent_runs_cannot_share_a_journal() {
    let scene = Scene::with(&config(5));
    let mut running = scene.start(RUN);
    running.wait_for_records("out", 1);
    let ended = scene.run("run --resume out");
    assert!(ended.error().contains("is being written by another process"), "{ended:?}");
    running.child.kill().unwrap();
    running.wait();
}

/// A file size limit has the effect of a full disk, without special permissions.
#[test]
fn full_disks_lose_no_records() {
    let scene = Scene::with(&config(0));
    let ended = ProgramOutput::from_command(&mut scene.limited_command("trap '' XFSZ && ulimit -f 16", RUN));
    assert!(ended.error().contains("out/journal.jsonl"), "{ended:?}");
    let kept = scene.journal("out");
    assert!(kept.warnings.is_empty() && kept.summary.is_none() && kept.records.len() < 24);
    assert_eq!(kept.records, ended.records());
    scene.run("run --resume out").expect_code(EXIT_CODE);
    assert!(scene.derived_files("out") == finished_run(0).derived_files("out"));
}

#[test]
fn missing_devices_leave_the_journal_unchanged() {
    let scene = finished_run(0);
    let journal = fs::read_to_string(scene.path("out/journal.jsonl")).unwrap();
    let journal = journal.replace("device: mock", "device: cuda:97");
    scene.write("out/journal.jsonl", &journal);
    let ended = scene.run("run --resume out");
    assert!(ended.error().contains("cuda:97") && ended.error().contains("available: "), "{ended:?}");
    assert!(fs::read_to_string(scene.path("out/journal.jsonl")).unwrap() == journal);
}

#[test]
fn omitted_options_are_restored_on_resume() {
    let scene = Scene::with(&config(2));
    let mut running = scene.start(&format!("{RUN} --seed 7 --timeout 50s"));
    running.wait_for_records("out", 9);
    running.child.kill().unwrap();
    running.wait();
    for (option, code) in [("--seed 8", 2), ("--timeout 50s", EXIT_CODE), ("", EXIT_CODE)] {
        scene.run(&format!("run --resume out {option}")).expect_code(code);
    }
}
