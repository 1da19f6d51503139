//! Robustness against hostile or faulty environments. Each of these cases once lost records or wrote to unexpected
//! places.

use crate::scene::{ProgramOutput, Scene, TABLES, TIMING, find_record, wait_until};
use calorimeter_case::{Verdict, WarningCode};
use calorimeter_runner::dialects::ConfigSource;
use calorimeter_runner::run::{OutputDirs, Request, RunEvent, RunListener};
use calorimeter_runner::worker::{Assignment, Executor, InProcess, WorkerError, WorkerListener};
use calorimeter_sinks::Status;
use rustix::process::Signal;
use std::fs::{self, File};
use std::time::Duration;

/// Two groups of four cases, with launches slow enough to be disturbed.
fn slow_config(victim: &str, sleep_ms: u32) -> String {
    format!(
        "recipes: [baseline, int8wo]
device: mock
dtype: f32
{TIMING}
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8], [16, 16, 16]]}}]}}]
mock: [{victim}{{noise: 0.05, sleep_ms: {sleep_ms}}}]
"
    )
}

/// A full or unread stderr must not cost a file.
#[test]
fn full_or_closed_stderr_ends_no_command() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let closed = || std::io::pipe().unwrap().1;
    for (arguments, written) in [
        ("run c.yml --out out", "out/results.csv"),
        ("run c.yml --dry-run", "c.yml"),
        ("ops --ops gelu --preset quick --device mock --dtypes f32 --out out --output gelu.csv", "gelu.csv"),
        ("calibrate --quick --operations axpy --device mock --output p.json --registry reg --out out", "p.json"),
        ("run nothing.yml", "c.yml"),
        ("list recipes", "c.yml"),
    ] {
        for (name, stderr) in [("full", std::process::Stdio::from(full())), ("closed", closed().into())] {
            let scene = Scene::with(&slow_config("", 0));
            let ended = ProgramOutput::from_command(scene.command(arguments).stderr(stderr));
            assert!(matches!(ended.code, Some(0 | 2)), "{arguments}, {name}: {ended:?}");
            assert!(scene.path(written).exists(), "{arguments}, {name}: {written} is not there");
        }
    }
}

/// Requested output that cannot be printed is a failure; a reader that closes the pipe early is not.
#[test]
fn full_stdout_is_an_error_closed_is_not() {
    let scene = Scene::with(&slow_config("", 0));
    let calibrate = "calibrate --quick --operations axpy --device mock --max-time 20ms --output p.json --out p";
    scene.run(calibrate).expect_code(0);
    for arguments in [
        "run c.yml --dry-run",
        "run c.yml --dry-run --format jsonl",
        "run c.yml --format jsonl --out OUT",
        "run c.yml --out OUT",
        "accuracy --device mock --filter int8wo --out OUT",
        "ops --ops gelu --preset quick --device mock --dtypes f32 --max-time 20ms --out OUT",
        "calibrate --show p.json",
        "list recipes",
        "schema",
        "doctor",
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ended = ProgramOutput::from_command(
            scene.command(&arguments.replace("OUT", &format!("{}.full", arguments.len()))).stdout(full),
        );
        let error = "error: cannot write to standard output: No space left on device (os error 28)";
        assert_eq!((ended.code, ended.stderr.lines().last()), (Some(2), Some(error)), "{arguments}: {ended:?}");
        let closed = std::io::pipe().unwrap().1;
        let out = format!("{}.closed", arguments.len());
        ProgramOutput::from_command(scene.command(&arguments.replace("OUT", &out)).stdout(closed)).expect_code(0);
        if arguments.contains("OUT") {
            let full = scene.journal(&format!("{}.full", arguments.len()));
            assert_eq!(full.records.len(), scene.journal(&out).records.len(), "{arguments}");
            assert!(full.summary.is_some_and(|summary| !summary.interrupted), "{arguments}");
        }
    }
}

#[test]
fn suspended_runs_time_out_no_case() {
    let scene = Scene::with(&slow_config("", 5));
    let mut running = scene.start("run c.yml --out out --timeout 6s");
    running.wait_for_records("out", 1);
    running.signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(9));
    running.signal(Signal::CONT);
    running.wait().expect_code(0);
    assert!(scene.journal("out").records.iter().all(|record| record.outcome.status == Status::Ok));
}

/// An open file accepts writes after its folder was removed.
#[test]
fn vanished_output_folder_ends_the_run() {
    for (move_it, groups) in [(false, 2), (true, 2), (false, 1)] {
        let config = slow_config("", 20);
        let scene = Scene::with(&if groups == 1 { config.replace(", [16, 16, 16]", "") } else { config });
        let mut running = scene.start("run c.yml --out out");
        match groups {
            1 => wait_until("a journal", || scene.path("out/journal.jsonl").exists()),
            _ => running.wait_for_records("out", 1),
        }
        match move_it {
            true => fs::rename(scene.path("out"), scene.path("away")).unwrap(),
            false => fs::remove_dir_all(scene.path("out")).unwrap(),
        }
        let ended = running.wait();
        let message = "error: out/journal.jsonl is no longer the journal of this run";
        assert!(ended.code == Some(2) && ended.stderr.contains(message), "{ended:?}");
        assert!(!scene.path("out/results.csv").exists(), "tables without a journal");
        if move_it {
            scene.run("run --resume away").expect_code(0);
            assert_eq!(scene.journal("away").records.len(), 8);
        }
    }
}

#[test]
fn unwritable_temp_folder_keeps_timeouts() {
    let scene = Scene::with(&slow_config("{match: int8wo/eager/mock/f32/m8-, fault: hang, after: 20}, ", 0));
    let ended = ProgramOutput::from_command(
        scene.command("run c.yml --out out --format jsonl --timeout 2s").env("TMPDIR", "/nowhere"),
    );
    let records = ended.expect_code(5).records();
    assert_eq!(records.len(), 8, "{ended:?}");
    assert_eq!(find_record(&records, "int8wo/eager/mock/f32/m8-").outcome.status, Status::Timeout);
}

#[test]
fn deleted_executable_still_starts_workers() {
    let scene = Scene::with(&slow_config("{match: int8wo/eager/mock/f32/m8-, fault: kill, after: 20}, ", 5));
    let copy = scene.path("program");
    fs::copy(env!("CARGO_BIN_EXE_calorimeter"), &copy).unwrap();
    let mut command = std::process::Command::new(&copy);
    command.args("run c.yml --out out".split(' '));
    scene.prepare(&mut command);
    let mut child = command.stderr(std::process::Stdio::null()).stdout(std::process::Stdio::null()).spawn().unwrap();
    wait_until("a journal", || scene.path("out/journal.jsonl").exists());
    fs::remove_file(&copy).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5));
    let records = scene.journal("out").records;
    assert_eq!(records.iter().filter(|record| record.outcome.status == Status::Ok).count(), 7, "{records:?}");
}

/// Executor that measures some assignments, then fails to start workers.
struct FailingExecutor(u32, InProcess);

impl Executor for FailingExecutor {
    fn run(
        &mut self,
        assignment: &Assignment,
        device: &calorimeter_probe::devices::DiscoveredDevice,
        timeout: Duration,
        listener: &mut dyn WorkerListener,
    ) -> Result<(), WorkerError> {
        if self.0 == 0 {
            return Err(WorkerError::ExitedEarly("no more processes".into()));
        }
        self.0 -= 1;
        self.1.run(assignment, device, timeout, listener)
    }
}

struct NullListener;

impl RunListener for NullListener {
    fn on_event(&mut self, _: RunEvent) {}
}

#[test]
fn failing_worker_starts_lose_no_records() {
    let scene = Scene::new();
    let source = ConfigSource { path: "inline.yml".into(), text: slow_config("", 0) };
    let prepared = Request { sources: vec![source], ..Request::default() }.prepare().unwrap();
    let place = OutputDirs { dir: scene.path("out"), output_dir: scene.path("out") };
    let outcome = prepared.start(&place, &mut FailingExecutor(1, InProcess::default()), &mut NullListener).unwrap();
    assert!(outcome.interrupted && outcome.stopped.is_some() && outcome.errors.is_empty());
    assert_eq!((outcome.records.len(), outcome.paths.len()), (4, TABLES.len() + 2), "{:?}", outcome.paths);
    assert!(scene.journal("out").summary.unwrap().interrupted);
}

/// burn reads `burn.toml` in the working directory and its parents, unless configured before.
#[test]
#[ignore = "needs Vulkan"]
fn burn_config_files_are_ignored() {
    for planted in ["[fusion.logger]\nfile = \"victim\"\nappend = false\nlevel = \"full\"\n", "fusion = 1 ]["] {
        let scene = Scene::with(
            "device: vulkan\ndtype: f32\n\
             timing: {precision: 20%, warm_up: 5ms, max_warm_up: 20ms, min_time: 10ms, max_time: 40ms, window: 200us, min_windows: 6, max_windows: 40}\n\
             models: [{model: ln_gelu, implementations: [fused], axes: {batch: [1], sequence: [16], dimension: [64]}}]\n",
        );
        scene.write("victim", "precious");
        scene.write("burn.toml", planted);
        let mut command = scene.command("run c.yml --out out --format jsonl");
        let records = ProgramOutput::from_command(command.env("BURN_FUSION_LOG", "full")).expect_code(0).records();
        assert_eq!(fs::read_to_string(scene.path("victim")).unwrap(), "precious");
        assert_eq!((records.len(), records[0].outcome.status), (1, Status::Ok));
        let variables = &scene.journal("out").header.environment["variables"];
        assert_eq!(variables["BURN_FUSION_LOG"], "full", "{variables}");
    }
}

#[test]
fn untrusted_cache_folders_are_ignored() {
    let scene = Scene::with(&slow_config("", 0));
    for cache in ["", "cache"] {
        let mut command = scene.command("noise --device mock --comparisons 5");
        ProgramOutput::from_command(command.env("XDG_CACHE_HOME", cache).env("HOME", cache)).expect_code(0);
        assert!(!scene.path("calorimeter").exists() && !scene.path("cache").exists(), "{cache:?}");
    }
    scene.run("noise --device mock --comparisons 5").expect_code(0);
    let kept = scene.path("cache/calorimeter/noise");
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 1);
    fs::set_permissions(&kept, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let ended = scene.run("run c.yml --out out");
    assert!(ended.expect_code(0).stderr.contains("noise: it is world-writable"), "{ended:?}");
}

#[test]
fn impossible_noise_floors_are_refused() {
    let scene = Scene::with(&slow_config("{match: int8wo, nanos: 2500}, ", 0));
    scene.run("noise --device mock --comparisons 5").expect_code(0);
    let kept = fs::read_dir(scene.path("cache/calorimeter/noise")).unwrap().next().unwrap().unwrap().path();
    let mut noise: serde_json::Value = serde_json::from_slice(&fs::read(&kept).unwrap()).unwrap();
    for floor in [1.6, 1e308, -1.0] {
        noise["middle_floor"] = floor.into();
        fs::write(&kept, noise.to_string()).unwrap();
        let out = format!("out{floor:e}");
        let ended = scene.run(&format!("run c.yml --out {out} --format jsonl"));
        assert!(ended.expect_code(0).stderr.contains("is implausible"), "{ended:?}");
        let speedup = find_record(&ended.records(), "int8wo/eager/mock/f32/m8-").speedup.clone().unwrap();
        assert_eq!((speedup.verdict, speedup.margin), (Verdict::Faster, Some(0.02)));
    }
}

#[test]
fn escape_sequences_in_names_are_neutralized() {
    let named = slow_config("", 0).replace("models: [{", "models: [{name: \"a\\e[2Jb\\u009b31m\", ");
    let scene = Scene::with(&named);
    for arguments in ["run c.yml --out out --color always", "run c.yml --dry-run", "run c.yml --out two --format jsonl"]
    {
        let ProgramOutput { stdout, stderr, .. } = scene.run(arguments);
        let obeyed = |text: &str| text.contains("\x1b[2J") || text.contains('\u{9b}');
        assert!(!obeyed(&stdout) && !obeyed(&stderr), "{arguments}: {stdout}{stderr}");
    }
}

/// CubeCL would terminate the worker, since it does not check kernel indices in the file.
#[test]
fn invalid_autotune_results_are_ignored() {
    let scene = Scene::with(&slow_config("", 0));
    let folder = scene.path("cache/calorimeter/tuning/mock/autotune/0.10.0");
    fs::create_dir_all(&folder).unwrap();
    let crafted = "{\"key\":{},\"value\":{\"fastest_index\":99,\"results\":[]}}\n";
    fs::write(folder.join("matmul.json.log"), crafted).unwrap();
    let ended = scene.run("run c.yml --out out");
    let prefix = "tuning/mock: ";
    assert_eq!(ended.expect_code(0).stderr.matches(prefix).count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("line 1: selects a candidate that did not run; delete it"), "{ended:?}");
}

#[test]
fn resuming_does_not_lock_clocks_implicitly() {
    let scene = Scene::with(&slow_config("", 0));
    scene.run("run c.yml --out out --lock-clocks=1200").expect_code(0);
    let log = || fs::read_to_string(scene.path("cache/calorimeter/mock/clock.log")).unwrap();
    let before = log();
    let ended = scene.run("run --resume out");
    assert!(ended.error().contains("--lock-clocks=1200"), "{ended:?}");
    assert_eq!(log(), before);
    scene.run("run --resume out --lock-clocks=1200").expect_code(0);
    assert_eq!(log().lines().count(), 2 * before.lines().count());
}

#[test]
fn impossible_peaks_are_refused() {
    let scene = Scene::with(&format!(
        "recipes: [baseline]\ndevice: cpu\ndtype: f32\nimplementations: [eager]\n{TIMING}\n\
         models: [{{shapes: [{{name: custom, shapes: [[64, 64, 64]]}}]}}]\n"
    ));
    // Peaks of this test, instead of the shared ones.
    fs::create_dir_all(scene.path("cache/calorimeter/peaks")).unwrap();
    scene.run("run c.yml --out first").expect_code(0);
    let kept = fs::read_dir(scene.path("cache/calorimeter/peaks")).unwrap().next().unwrap().unwrap().path();
    let mut peaks: serde_json::Value = serde_json::from_slice(&fs::read(&kept).unwrap()).unwrap();
    for peak in peaks["products"].as_object_mut().unwrap().values_mut() {
        (peak["burst"], peak["sustained"]) = (1e30.into(), 1e30.into());
    }
    fs::write(&kept, peaks.to_string()).unwrap();
    let records = scene.run("run c.yml --out out --format jsonl").expect_code(0).records();
    assert!(records[0].warnings.has(WarningCode::IgnoredPeaks), "{records:?}");
    let measured = fs::read_to_string(&kept).unwrap();
    assert!(!measured.contains("e30") && !measured.contains("e+30"), "{measured}");
    let shown = scene.run("peaks");
    shown.expect_code(0);
    for line in ["  clocks: ", ", 0 min ago\n", "  memory  ", " GB/s", "  f32     ", "FLOP/s under load\n"] {
        assert!(shown.stdout.contains(line), "{line:?}: {shown:?}");
    }
    let measured_at = |ended: &ProgramOutput| {
        serde_json::from_str::<serde_json::Value>(&ended.stdout).unwrap()[0]["measured"].clone()
    };
    let before = measured_at(scene.run("peaks --format json").expect_code(0));
    assert!(measured.contains(before.as_str().unwrap()));
    let again = measured_at(scene.run("peaks --measure --device cpu --format json").expect_code(0));
    assert_ne!(again, before);
    assert_eq!(measured_at(scene.run("peaks --format json").expect_code(0)), again);
    fs::write(&kept, "no peaks").unwrap();
    let broken = scene.run("peaks");
    assert!(broken.expect_code(0).stdout.starts_with("no stored peaks"), "{broken:?}");
    assert!(broken.stderr.contains(kept.file_name().unwrap().to_str().unwrap()), "{broken:?}");
    fs::remove_file(&kept).unwrap();
    let mock = scene.run("peaks --measure --device mock");
    assert!(mock.error().contains("simulated"), "{mock:?}");
}
