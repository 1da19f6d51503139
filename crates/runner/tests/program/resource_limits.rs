//! Resource limits and large requests: resource usage is bounded, and exhausted limits give an error message without
//! losing records.

use crate::scene::{ProgramOutput, Scene, TIMING};
use crate::seeded_random::{SeededRandom, tries};
use calorimeter_sinks::journal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

const CASES: usize = 6;

fn config() -> String {
    format!(
        "recipes: [baseline, int8wo]\ndevice: mock\nimplementations: [eager]\n{TIMING}
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8], [16, 16, 16], [24, 24, 24]]}}]}}]\n"
    )
}

/// Command with resource limits. If this is root, which some limits exempt, it runs as an unprivileged user.
fn limited_command(scene: &Scene, limit: &str, arguments: &str) -> Command {
    let program = scene.path("calorimeter");
    if !program.exists() {
        let built = env!("CARGO_BIN_EXE_calorimeter");
        fs::hard_link(built, &program).or_else(|_| fs::copy(built, &program).map(drop)).unwrap();
        fs::set_permissions(scene.path("."), PermissionsExt::from_mode(0o777)).unwrap();
    }
    let mut command = Command::new("prlimit");
    command.arg(limit);
    if rustix::process::geteuid().is_root() {
        command.args(["setpriv", "--reuid=65534", "--clear-groups"]);
    }
    command.arg(program).args(arguments.split_whitespace());
    scene.prepare(&mut command);
    command.env("XDG_CACHE_HOME", scene.path("theirs"));
    command
}

#[test]
fn torture_process_file_and_memory_limits() {
    let (count, mut drawn, mut failures) = (tries(9, 300), SeededRandom::from_environment(), Vec::new());
    for at in 0..count {
        let scene = Scene::with(&config());
        let limit = match at % 3 {
            0 => format!("--nofile={}", 4 + drawn.next_below(40)),
            1 => format!("--nproc={}", 1 + drawn.next_below(40)),
            _ => format!("--as={}", (300 + drawn.next_below(3_000)) << 20),
        };
        let ended = ProgramOutput::with_timeout(&mut limited_command(
            &scene,
            &limit,
            "run c.yml --out out --format jsonl --timeout 10s",
        ));
        let shown = ended.stdout.lines().count();
        let kept = journal::read(&scene.path("out")).map_or(0, |contents| contents.records.len());
        let has_error = ended.stderr.lines().any(|line| line.starts_with("error: "));
        let right = match ended.code {
            Some(0 | 3 | 5) => kept == CASES,
            Some(2) => has_error,
            // The allocator and the loader abort without address space; the shell fails to start the program.
            None | Some(126 | 127 | 134) => at % 3 != 0,
            _ => false,
        };
        // The table engine panics if it cannot create threads, which is reported.
        let panicked = ended.stderr.contains("panicked at") && !ended.stderr.contains("the sink `parquet` panicked");
        if !right || kept < shown || panicked {
            failures.push(format!("{limit}: {kept} kept, {shown} shown, {ended:?}"));
            continue;
        }
        if kept > 0 {
            let resumed = ProgramOutput::with_timeout(&mut limited_command(&scene, "--core=0", "run --resume out"));
            let records = scene.journal("out").records.len();
            if !matches!(resumed.code, Some(0 | 3 | 5)) || records != CASES {
                failures.push(format!("{limit}, resumed: {records} records, {resumed:?}"));
            }
        }
    }
    println!("limits: {count}, {} failures", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Waits for a command and returns its peak anonymous memory in MiB. Unoptimized code is several times as large as
/// release code.
fn peak_mib(mut command: Command) -> (ProgramOutput, u64) {
    let output = tempfile::tempfile().unwrap();
    let mut child = command.stdout(output).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        peak =
            line.and_then(|line| line.split_whitespace().next()?.parse().ok()).map_or(peak, |now: u64| peak.max(now));
        std::thread::sleep(Duration::from_millis(5));
    }
    (ProgramOutput::wait_with_timeout(child), peak / 1024)
}

fn scene_with_shapes(shapes: usize) -> Scene {
    let listed: Vec<String> = (0..shapes).map(|at| format!("[{}, {}, 128]", 8 + at % 1000, 8 + at / 1000)).collect();
    Scene::with(&format!(
        "recipes: [baseline, int8wo, int8dq, float8wo, float8dq-row, float8dq-tensor, int4wo-32, int4wo-64, int4wo-128, \
mxfp8]\ndevice: mock\nimplementations: [eager]\ntiming: {{precision: 50%, max_time: 1ms, max_warm_up: 1us}}
models: [{{shapes: [{{name: custom, shapes: [{}]}}]}}]\n",
        listed.join(", ")
    ))
}

#[test]
fn torture_large_plans_use_bounded_memory() {
    let scene = scene_with_shapes(tries(2_000, 99_990));
    let (ended, peak) = peak_mib(scene.command("run c.yml --dry-run"));
    println!("a plan: {peak} MiB");
    ended.expect_code(0);
    assert!(peak < 476, "{peak} MiB");
}

#[test]
fn torture_long_runs_use_bounded_memory() {
    let scene = scene_with_shapes(tries(100, 10_000));
    let (ended, peak) = peak_mib(scene.command("run c.yml --out out"));
    println!("a run: {peak} MiB");
    ended.expect_code(0);
    assert!(peak < 256, "{peak} MiB");
}
