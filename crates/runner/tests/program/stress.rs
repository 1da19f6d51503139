//! Stress tests: runs are killed, starved, stopped and raced at random moments. Each test prints its tries and
//! failures. The short form is part of every test run; CONTRIBUTING.md documents the long form.

use crate::scene::{ProgramOutput, Scene, TIMING};
use crate::seeded_random::{SeededRandom, tries};
use calorimeter_sinks::{Record, journal};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Twelve cases in three groups, including crashes and wrong outputs.
fn config() -> String {
    format!(
        "recipes: [baseline, int8wo]
device: mock
dtype: f32
enable_profiler: true
{TIMING}
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8], [16, 16, 16], [24, 24, 24]]}}]}}]
mock:
  - {{match: 'int8wo/eager.*m16', fault: abort, after: 20}}
  - {{match: 'baseline/fused.*m24', fault: mismatch}}
  - {{nanos: 9000, noise: 0.05, sleep_ms: 2}}
"
    )
}

const CASES: usize = 12;

/// Two more groups of two cases, with exported files.
const BENCHMARKS: &str = "benchmarks:
- {benchmark_name: gemm_simple, csv_path: tables, xlml_metrics_dir: lines,
   benchmark_sweep_params: [{m: [16, 32], k: 32, n: 16}]}
";

/// Child processes of a process.
fn children(of: u32) -> Vec<Pid> {
    let stat = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent: u32 = text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        (parent == of).then(|| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)).flatten()
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(stat).collect()
}

/// All files in a folder, by relative path.
fn files(below: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(below).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            found.extend(files(&entry.path()).into_iter().map(|inner| format!("{name}/{inner}")));
        } else {
            found.push(name);
        }
    }
    found
}

/// Unexpected files in the folder of a finished run.
fn unexpected_files(out: &Path) -> Vec<String> {
    let lies = |name: &str, start: &str, end: &str| name.starts_with(start) && name.ends_with(end);
    let ours = |name: &String| {
        ["index.html", "journal.jsonl", "results.csv", "results.parquet", "lines/metrics_report.jsonl"]
            .contains(&name.as_str())
            || lies(name, "inference/results_", ".csv")
            || lies(name, "traces/", ".json")
            || lies(name, "tables/t_gemm_simple_", ".tsv")
    };
    files(out).into_iter().filter(|name| !ours(name)).collect()
}

/// Unexpected files in the test folder, the caches or the run folder.
fn leftovers(scene: &Scene) -> Vec<String> {
    let known = ["c.yml", "b.yml", "out", "cache", "tmp"];
    let foreign = |name: &String| !known.contains(&name.split('/').next().unwrap_or_default());
    let temporary = |name: &String| name.starts_with("cache/") && name.contains(".calorimeter-");
    let here = files(&scene.path(".")).into_iter().filter(|name| foreign(name) || temporary(name));
    here.chain(unexpected_files(&scene.path("out"))).collect()
}

/// Kills the run, its worker or both at random moments, interrupts or suspends it, and resumes until it is complete.
/// Returns the number of kills.
fn kill_and_resume(seed: u64, kills: usize) -> Result<usize, String> {
    let (scene, mut drawn) = (Scene::with(&config()), SeededRandom(seed));
    scene.write("b.yml", BENCHMARKS);
    fs::create_dir(scene.path("tmp")).unwrap();
    let cases = CASES + 4;
    let (mut killed, mut shown, mut kept) = (0, HashSet::new(), HashSet::new());
    loop {
        let arguments = if scene.path("out/journal.jsonl").exists() {
            "run --resume out --format jsonl"
        } else {
            "run c.yml b.yml --device mock --implementations eager,fused --out out --format jsonl"
        };
        let mut command = scene.command(arguments);
        command.env("TMPDIR", scene.path("tmp")).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        if killed < kills {
            std::thread::sleep(Duration::from_millis(drawn.next_below(700) as u64));
            let (run, workers) = (Pid::from_child(&child), children(child.id()));
            let hit = |signal, victims: &[Pid]| {
                victims.iter().filter(|&&victim| kill_process(victim, signal).is_ok()).count()
            };
            match drawn.next_below(11) {
                0 | 1 => killed += hit(Signal::KILL, &[run]),
                2 | 3 => killed += hit(Signal::KILL, &workers),
                4 | 5 => killed += hit(Signal::KILL, &[run]) + hit(Signal::KILL, &workers),
                6 => _ = hit(Signal::INT, &[run]),
                7 => _ = hit(Signal::TERM, &[run]),
                8 => _ = hit(Signal::HUP, &[run]),
                // Closes the reading ends of its output.
                9 => drop((child.stdout.take(), child.stderr.take())),
                _ => {
                    let all: Vec<Pid> = [run].into_iter().chain(workers).collect();
                    hit(Signal::STOP, &all);
                    std::thread::sleep(Duration::from_millis(drawn.next_below(300) as u64));
                    hit(Signal::CONT, &all);
                }
            }
        }
        let ended = ProgramOutput::wait_with_timeout(child);
        if ended.stderr.contains("panicked") && !ended.stderr.contains("mock") {
            return Err(ended.stderr);
        }
        // A line truncated by the kill counts as not shown.
        let lines = ended.stdout.lines().filter_map(|line| serde_json::from_str::<Record>(line).ok());
        shown.extend(lines.map(|record| record.case.id.to_string()));
        if scene.path("out/journal.jsonl").exists() {
            let contents = match journal::read(&scene.path("out")) {
                Ok(contents) => contents,
                // Killed before the header was complete: nothing was measured yet.
                Err(_) if ended.code.is_none() && shown.is_empty() => {
                    fs::remove_dir_all(scene.path("out")).unwrap();
                    continue;
                }
                Err(error) => return Err(error.to_string()),
            };
            let now: HashSet<String> = contents.records.iter().map(|record| record.case.id.to_string()).collect();
            if let Some(lost) = shown.union(&kept).find(|id| !now.contains(*id)) {
                return Err(format!("the record of {lost} is lost"));
            }
            kept = now;
            if contents.summary.as_ref().is_some_and(|summary| !summary.interrupted) {
                if kept.len() != cases {
                    return Err(format!("{} of {cases} cases have a record", kept.len()));
                }
                // A kill may occur between the last record and the tables, which a resume writes.
                if matches!(ended.code, Some(3 | 5)) {
                    check_exports(&scene.path("out"), &contents.records)?;
                    break;
                }
            }
        }
        if !matches!(ended.code, None | Some(3 | 5 | 130)) {
            return Err(format!("exit code {:?}: {}", ended.code, ended.stderr));
        }
    }
    let left: Vec<String> = leftovers(&scene).into_iter().chain(files(&scene.path("tmp"))).collect();
    if left.is_empty() { Ok(killed) } else { Err(format!("left behind: {left:?}")) }
}

/// Checks that all traces in the records are readable, and that exported lines occur once.
fn check_exports(out: &Path, records: &[Record]) -> Result<(), String> {
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).map_err(|error| error.to_string());
    let text = |name: &str| fs::read_to_string(out.join(name)).map_err(|error| format!("{name}: {error}"));
    for record in records.iter().filter(|record| record.is_ok() && record.case.profiler) {
        let trace = record.profile.trace.as_ref().ok_or_else(|| format!("{} has no trace", record.case.id))?;
        json(&text(trace)?)?;
    }
    // Without timed cases the file does not exist.
    let lines = fs::read_to_string(out.join("lines/metrics_report.jsonl")).unwrap_or_default();
    lines.lines().try_for_each(|line| json(line).map(drop))?;
    let wanted = records.iter().filter(|record| record.is_ok() && record.case.export.is_some()).count();
    if lines.lines().count() == wanted { Ok(()) } else { Err(format!("{wanted} lines are wanted: {lines}")) }
}

#[test]
fn torture_kills_lose_no_records() {
    let wanted = tries(30, 5_000);
    let (seed, killed, failures) = (AtomicU64::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    // Runs on the mock device mostly sleep.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while killed.load(Relaxed) < wanted {
                    let seed = 1 + seed.fetch_add(1, Relaxed);
                    let kills = kill_and_resume(seed, 6).unwrap_or_else(|why| {
                        failures.lock().unwrap().push(format!("seed {seed}: {why}"));
                        6
                    });
                    killed.fetch_add(kills, Relaxed);
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    println!("kills: {} in {} runs, {} failures", killed.into_inner(), seed.into_inner(), failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Full disk at a random position, simulated by a file size limit, which needs no permission to mount.
#[test]
fn torture_file_size_limits_lose_no_records() {
    let (count, mut drawn, mut failures) = (tries(8, 100), SeededRandom(7), Vec::new());
    for _ in 0..count {
        let scene = Scene::with(&config());
        let blocks = 1 + drawn.next_below(40);
        let ended = ProgramOutput::with_timeout(&mut scene.limited_command(
            &format!("trap '' XFSZ; ulimit -f {blocks}"),
            "run c.yml --out out --format jsonl --timeout 10s",
        ));
        let has_error = ended.stderr.lines().any(|line| line.starts_with("error: "));
        if ended.stderr.contains("panicked at")
            || !matches!(ended.code, Some(2 | 3 | 5))
            || (ended.code == Some(2)) != has_error
        {
            failures.push(format!("{blocks} blocks: {ended:?}"));
            continue;
        }
        let shown = ended.stdout.lines().count();
        let kept = journal::read(&scene.path("out")).map_or(0, |contents| contents.records.len());
        if kept < shown {
            failures.push(format!("{blocks} blocks: {shown} records were shown, {kept} kept"));
        }
        if kept > 0 {
            let resumed = scene.run("run --resume out");
            if !matches!(resumed.code, Some(3 | 5)) || !unexpected_files(&scene.path("out")).is_empty() {
                failures
                    .push(format!("{blocks} blocks, resumed: {resumed:?}, {:?}", unexpected_files(&scene.path("out"))));
            }
        }
    }
    println!("full disks: {count}, {} failures", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs a shell line with a small private file system mounted at `disk`.
fn on_small_disk(scene: &Scene, options: &str, script: &str) -> ProgramOutput {
    fs::create_dir_all(scene.path("disk")).unwrap();
    let script = format!("mount -t tmpfs -o {options} tmpfs disk && {script}");
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_calorimeter")]);
    scene.prepare(&mut command);
    ProgramOutput::with_timeout(&mut command)
}

/// Full file system that also contains temporary files and caches.
#[test]
#[ignore = "needs mount namespaces"]
fn torture_full_file_systems_lose_no_records() {
    let (count, mut drawn, mut failures) = (tries(6, 100), SeededRandom(11), Vec::new());
    for _ in 0..count {
        let (scene, size) = (Scene::with(&config()), 4 + 4 * drawn.next_below(40));
        let script = "mkdir disk/tmp disk/cache; export TMPDIR=disk/tmp XDG_CACHE_HOME=$PWD/disk/cache
            \"$1\" run c.yml --out disk/out --format jsonl --timeout 10s; code=$?; cp -r disk/out out; exit $code";
        let ended = on_small_disk(&scene, &format!("size={size}k"), script);
        let has_error = ended.stderr.lines().any(|line| line.starts_with("error: "));
        if ended.stderr.contains("panicked at")
            || !matches!(ended.code, Some(2 | 3 | 5))
            || (ended.code == Some(2)) != has_error
        {
            failures.push(format!("{size} KiB: {ended:?}"));
            continue;
        }
        let shown = ended.stdout.lines().count();
        let kept = journal::read(&scene.path("out")).map_or(0, |contents| contents.records.len());
        if kept < shown {
            failures.push(format!("{size} KiB: {shown} records were shown, {kept} kept"));
        }
        if kept > 0 {
            let resumed = scene.run("run --resume out");
            if !matches!(resumed.code, Some(3 | 5)) || !unexpected_files(&scene.path("out")).is_empty() {
                failures.push(format!("{size} KiB, resumed: {resumed:?}, {:?}", unexpected_files(&scene.path("out"))));
            }
        }
    }
    println!("full file systems: {count}, {} failures", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
#[ignore = "needs mount namespaces"]
fn unwritable_folders_are_reported_before_measuring() {
    let scene = Scene::with(&config());
    let results = on_small_disk(&scene, "ro", "\"$1\" run c.yml --out disk/out --format jsonl");
    assert_eq!((results.code, results.stdout.as_str()), (Some(2), ""), "{results:?}");
    assert!(results.stderr.contains("disk/out"), "{results:?}");
    // Values that cannot be cached are measured again.
    let script = "XDG_CACHE_HOME=$PWD/disk \"$1\" run c.yml --out out --format jsonl";
    let cache = on_small_disk(&scene, "ro", script);
    assert_eq!((cache.code, cache.stdout.lines().count()), (Some(3), CASES), "{cache:?}");
}

/// Folders of results, caches or temporary files are removed during the run.
#[test]
fn torture_vanishing_folders_end_the_run() {
    let (count, mut drawn, mut failures) = (tries(10, 300), SeededRandom::from_environment(), Vec::new());
    for at in 0..count {
        let scene = Scene::with(&config());
        let folder = ["out", "cache", "tmp"][at % 3];
        fs::create_dir(scene.path("tmp")).unwrap();
        let mut command = scene.command("run c.yml --out out --format jsonl --timeout 10s");
        command.env("TMPDIR", scene.path("tmp")).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(drawn.next_below(900) as u64));
        // The folder may not exist yet, or no longer.
        let _ = if drawn.next_below(2) == 0 {
            fs::remove_dir_all(scene.path(folder))
        } else {
            fs::rename(scene.path(folder), scene.path("elsewhere"))
        };
        let ended = ProgramOutput::wait_with_timeout(child);
        let (has_error, lost) = (ended.stderr.contains("error: "), !scene.path("out/results.csv").exists());
        let right = match ended.code {
            Some(2) => has_error && folder == "out",
            Some(3) => !lost || folder == "out",
            _ => false,
        };
        if !right || ended.stderr.contains("panicked at") {
            failures.push(format!("{folder}: {ended:?}"));
        }
    }
    println!("vanishing folders: {count}, {} failures", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Two runs in one folder: one of them gets it, the other reports an error.
#[test]
fn torture_racing_runs_leave_one_complete_run() {
    let (count, mut failures) = (tries(5, 200), Vec::new());
    for _ in 0..count {
        let scene = Scene::with(&config());
        let start = || {
            scene.command("run c.yml --out out --format jsonl").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
        };
        let both = [start().unwrap(), start().unwrap()];
        let mut codes: Vec<_> = both.map(|child| ProgramOutput::wait_with_timeout(child).code).to_vec();
        codes.sort_unstable();
        let records = journal::read(&scene.path("out")).map_or(0, |contents| contents.records.len());
        if codes != [Some(2), Some(3)] || records != CASES || !unexpected_files(&scene.path("out")).is_empty() {
            failures.push(format!("{codes:?}, {records} records, {:?}", unexpected_files(&scene.path("out"))));
        }
    }
    println!("races: {count}, {} failures", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Simultaneous starts without `--out`: each uses separate folders and files, and can be resumed.
#[test]
fn torture_simultaneous_starts_use_separate_folders() {
    let (count, mut failures) = (tries(3, 60), Vec::new());
    for _ in 0..count {
        let scene = Scene::with(&config());
        let start = |_| scene.command("run c.yml").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let running: Vec<_> = (0..4).map(start).collect();
        for child in running {
            let ended = ProgramOutput::wait_with_timeout(child);
            if ended.code != Some(3) {
                failures.push(format!("{:?}: {}", ended.code, ended.stderr));
            }
        }
        let tables = |scene: &Scene| {
            let mut names = files(&scene.path("results/inference"));
            names.sort_unstable();
            names
        };
        let before = tables(&scene);
        let runs: Vec<String> = fs::read_dir(scene.path("results"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "inference")
            .collect();
        for run in &runs {
            let records = journal::read(&scene.path("results").join(run)).map_or(0, |contents| contents.records.len());
            let strangers = unexpected_files(&scene.path("results").join(run));
            if records != CASES || !strangers.is_empty() {
                failures.push(format!("{run}: {records} records, {strangers:?}"));
            }
        }
        let resumed = scene.run(&format!("run --resume results/{}", runs[0]));
        if runs.len() != 4 || before.len() != 4 || resumed.code != Some(3) || tables(&scene) != before {
            failures.push(format!("{runs:?} have {before:?}, and then {:?}: {resumed:?}", tables(&scene)));
        }
    }
    println!("starts in one second: {} in fours, {} failures", 4 * count, failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs that end simultaneously append to one export: no line is lost.
#[test]
fn torture_concurrent_exports_lose_no_lines() {
    let config = "benchmarks:
- {benchmark_name: gemm_simple, xlml_metrics_dir: ../lines, benchmark_sweep_params: [{m: [16, 32], k: 32, n: 16}]}
";
    let (count, mut failures) = (tries(3, 60), Vec::new());
    for _ in 0..count {
        let scene = Scene::with(config);
        fs::create_dir(scene.path("lines")).unwrap();
        scene.write("lines/metrics_report.jsonl", "{\"of\": \"somebody else\"}");
        let start = |place: usize| {
            let folder = scene.path(&format!("of{place}"));
            fs::create_dir(&folder).unwrap();
            let mut command = scene.command("run ../c.yml --device mock --implementations eager --max-time 1ms");
            command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let running: Vec<_> = (0..5).map(start).collect();
        let codes: Vec<_> = running.into_iter().map(|child| ProgramOutput::wait_with_timeout(child).code).collect();
        let text = fs::read_to_string(scene.path("lines/metrics_report.jsonl")).unwrap();
        let whole = text.lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()).count();
        if codes != [Some(0); 5] || whole != 1 + 5 * 2 || text.lines().count() != whole {
            failures.push(format!("{codes:?}, {whole} whole lines of {}", text.lines().count()));
        }
    }
    println!("reports: {} in fives, {} failures", 5 * count, failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Processes that cache a value simultaneously leave a complete file by one of them.
#[test]
fn torture_racing_cache_writes_leave_complete_files() {
    let (count, mut failures) = (tries(3, 60), Vec::new());
    for _ in 0..count {
        let scene = Scene::with(&config());
        let noise = || {
            let mut command = scene.command("noise --device mock --comparisons 1");
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let running: Vec<_> = (0..4).map(|_| noise()).collect();
        let ended: Vec<ProgramOutput> = running.into_iter().map(ProgramOutput::wait_with_timeout).collect();
        let kept = files(&scene.path("cache"));
        let whole = kept.iter().filter(|name| {
            let text = fs::read(scene.path("cache").join(name)).unwrap();
            serde_json::from_slice::<serde_json::Value>(&text).is_ok()
        });
        let run = scene.run("run c.yml --out out");
        if ended.iter().any(|ended| ended.code != Some(0))
            || (kept.len(), whole.count()) != (1, 1)
            || run.code != Some(3)
            || run.stderr.contains("noise")
        {
            failures.push(format!("{kept:?}, {ended:?}, {run:?}"));
        }
    }
    println!("races for a cache: {count} in fours, {} failures", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The terminal is closed while the run writes to it.
#[test]
fn torture_closed_terminals_lose_no_records() {
    let (count, mut drawn, mut failures) = (tries(4, 100), SeededRandom::from_environment(), Vec::new());
    for _ in 0..count {
        let scene = Scene::with(&config());
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let path = ptsname(&terminal, Vec::new()).unwrap();
        let side = || fs::File::options().read(true).write(true).open(path.to_str().unwrap()).unwrap();
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_calorimeter"), "run", "c.yml", "--out", "out"]);
        scene.prepare(&mut command);
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(drawn.next_below(700) as u64));
        drop((terminal, command));
        let code = ProgramOutput::wait_with_timeout(child).code;
        let resumed = scene.path("out/journal.jsonl").exists().then(|| scene.run("run --resume out"));
        let right = resumed.as_ref().is_none_or(|ended| matches!(ended.code, Some(2 | 3)));
        let records = journal::read(&scene.path("out")).map_or(0, |contents| contents.records.len());
        // Files that it had not started to write may be missing.
        let begun = resumed.is_some_and(|ended| ended.code == Some(3));
        if code == Some(101) || !right || (begun && records != CASES) || (begun && !leftovers(&scene).is_empty()) {
            failures.push(format!("{code:?}, {records} records, {:?}", leftovers(&scene)));
        }
    }
    println!("closed terminals: {count}, {} failures", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
