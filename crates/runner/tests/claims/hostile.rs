//! Robustness against hostile or faulty environments. Each of these cases once lost records or wrote to unexpected
//! places.

use crate::real_devices::vulkan_is_here;
use crate::scene::{Ended, Scene, TIMING, find, wait_until};
use calorimeter_case::Verdict;
use calorimeter_runner::dialects::Source;
use calorimeter_runner::run::{Event, Place, Request};
use calorimeter_runner::worker::{Assignment, Executor, InProcess, Listener, WorkerError};
use calorimeter_sinks::Status;
use rustix::process::Signal;
use std::fs::{self, File};
use std::time::Duration;

/// Two groups of four cases, with launches slow enough to be disturbed.
fn slow(victim: &str, sleep_ms: u32) -> String {
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
fn a_standard_error_that_takes_nothing_ends_no_command() {
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
            let scene = Scene::with(&slow("", 0));
            let ended = Ended::of(scene.command(arguments).stderr(stderr));
            assert!(matches!(ended.code, Some(0 | 2)), "{arguments}, {name}: {ended:?}");
            assert!(scene.path(written).exists(), "{arguments}, {name}: {written} is not there");
        }
    }
}

/// Requested output that cannot be printed is a failure; a reader that closes the pipe early is not.
#[test]
fn a_standard_output_that_is_full_is_an_error_and_one_that_nobody_reads_is_none() {
    let scene = Scene::with(&slow("", 0));
    let calibrate = "calibrate --quick --operations axpy --device mock --max-time 20ms --output p.json --out p";
    scene.run(calibrate).ended_with(0);
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
        let ended =
            Ended::of(scene.command(&arguments.replace("OUT", &format!("{}.full", arguments.len()))).stdout(full));
        let error = "error: cannot write to standard output: No space left on device (os error 28)";
        assert_eq!((ended.code, ended.stderr.lines().last()), (Some(2), Some(error)), "{arguments}: {ended:?}");
        let closed = std::io::pipe().unwrap().1;
        let out = format!("{}.closed", arguments.len());
        Ended::of(scene.command(&arguments.replace("OUT", &out)).stdout(closed)).ended_with(0);
        if arguments.contains("OUT") {
            let full = scene.journal(&format!("{}.full", arguments.len()));
            assert_eq!(full.records.len(), scene.journal(&out).records.len(), "{arguments}");
            assert!(full.summary.is_some_and(|summary| !summary.interrupted), "{arguments}");
        }
    }
}

#[test]
fn a_run_that_was_stopped_for_a_while_condemns_no_case() {
    let scene = Scene::with(&slow("", 5));
    let mut running = scene.start("run c.yml --out out --timeout 6s");
    running.wait_for_records("out", 1);
    running.signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(9));
    running.signal(Signal::CONT);
    running.end().ended_with(0);
    assert!(scene.journal("out").records.iter().all(|record| record.outcome.status == Status::Ok));
}

/// An open file accepts writes after its folder was removed.
#[test]
fn a_folder_that_goes_away_during_a_run_ends_it_with_an_error() {
    for (move_it, groups) in [(false, 2), (true, 2), (false, 1)] {
        let config = slow("", 20);
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
        let ended = running.end();
        let message = "error: out/journal.jsonl is no longer the journal of this run";
        assert!(ended.code == Some(2) && ended.stderr.contains(message), "{ended:?}");
        assert!(!scene.path("out/results.csv").exists(), "tables without a journal");
        if move_it {
            scene.run("run --resume away").ended_with(0);
            assert_eq!(scene.journal("away").records.len(), 8);
        }
    }
}

#[test]
fn a_folder_for_temporary_files_that_takes_none_leaves_timeouts_on() {
    let scene = Scene::with(&slow("{match: int8wo/eager/mock/f32/m8-, fault: hang, after: 20}, ", 0));
    let ended = Ended::of(scene.command("run c.yml --out out --format jsonl --timeout 2s").env("TMPDIR", "/nowhere"));
    let records = ended.ended_with(5).records();
    assert_eq!(records.len(), 8, "{ended:?}");
    assert_eq!(find(&records, "int8wo/eager/mock/f32/m8-").outcome.status, Status::Timeout);
}

#[test]
fn a_program_that_is_deleted_while_it_runs_still_starts_its_workers() {
    let scene = Scene::with(&slow("{match: int8wo/eager/mock/f32/m8-, fault: kill, after: 20}, ", 5));
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
struct Breaks(u32, InProcess);

impl Executor for Breaks {
    fn run(
        &mut self,
        assignment: &Assignment,
        device: &calorimeter_runner::devices::DiscoveredDevice,
        timeout: Duration,
        listener: &mut dyn Listener,
    ) -> Result<(), WorkerError> {
        if self.0 == 0 {
            return Err(WorkerError::Stillborn("no more processes".into()));
        }
        self.0 -= 1;
        self.1.run(assignment, device, timeout, listener)
    }
}

struct Silent;

impl Listener for Silent {
    fn hear(&mut self, _: Event) {}
}

#[test]
fn workers_that_cannot_be_had_cost_no_record_and_no_table() {
    let scene = Scene::new();
    let source = Source { path: "inline.yml".into(), text: slow("", 0) };
    let prepared = Request { sources: vec![source], ..Request::default() }.prepare().unwrap();
    let place = Place { dir: scene.path("out"), output_dir: scene.path("out") };
    let outcome = prepared.start(&place, &mut Breaks(1, InProcess::default()), &mut Silent).unwrap();
    assert!(outcome.interrupted && outcome.stopped.is_some() && outcome.errors.is_empty());
    assert_eq!((outcome.records.len(), outcome.paths.len()), (4, 4), "{:?}", outcome.paths);
    assert!(scene.journal("out").summary.unwrap().interrupted);
}

/// burn reads `burn.toml` in the working directory and its parents, unless configured before.
#[test]
fn a_configuration_of_burn_that_lies_about_is_not_obeyed() {
    for planted in ["[fusion.logger]\nfile = \"victim\"\nappend = false\nlevel = \"full\"\n", "fusion = 1 ]["] {
        let scene = Scene::with(
            "device: vulkan\ndtype: f32\n\
             timing: {precision: 20%, warm_up: 5ms, max_warm_up: 20ms, min_time: 10ms, max_time: 40ms, window: 200us, min_windows: 6, max_windows: 40}\n\
             models: [{model: ln_gelu, implementations: [fused], axes: {batch: [1], sequence: [16], dimension: [64]}}]\n",
        );
        if !vulkan_is_here(&scene) {
            return;
        }
        scene.write("victim", "precious");
        scene.write("burn.toml", planted);
        let mut command = scene.command("run c.yml --out out --format jsonl");
        let records = Ended::of(command.env("BURN_FUSION_LOG", "full")).ended_with(0).records();
        assert_eq!(fs::read_to_string(scene.path("victim")).unwrap(), "precious");
        assert_eq!((records.len(), records[0].outcome.status), (1, Status::Ok));
        let variables = &scene.journal("out").header.environment["variables"];
        assert_eq!(variables["BURN_FUSION_LOG"], "full", "{variables}");
    }
}

#[test]
fn a_cache_in_the_working_directory_or_open_to_others_is_not_used() {
    let scene = Scene::with(&slow("", 0));
    for cache in ["", "cache"] {
        let mut command = scene.command("noise --device mock --comparisons 5");
        Ended::of(command.env("XDG_CACHE_HOME", cache).env("HOME", cache)).ended_with(0);
        assert!(!scene.path("calorimeter").exists() && !scene.path("cache").exists(), "{cache:?}");
    }
    scene.run("noise --device mock --comparisons 5").ended_with(0);
    let kept = scene.path("cache/calorimeter/noise");
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 1);
    fs::set_permissions(&kept, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let ended = scene.run("run c.yml --out out");
    assert!(ended.ended_with(0).stderr.contains("noise: it is world-writable"), "{ended:?}");
}

#[test]
fn a_floor_of_noise_that_cannot_be_is_refused_and_told() {
    let scene = Scene::with(&slow("{match: int8wo, nanos: 2500}, ", 0));
    scene.run("noise --device mock --comparisons 5").ended_with(0);
    let kept = fs::read_dir(scene.path("cache/calorimeter/noise")).unwrap().next().unwrap().unwrap().path();
    let mut noise: serde_json::Value = serde_json::from_slice(&fs::read(&kept).unwrap()).unwrap();
    for floor in [1.6, 1e308, -1.0] {
        noise["middle_floor"] = floor.into();
        fs::write(&kept, noise.to_string()).unwrap();
        let out = format!("out{floor:e}");
        let ended = scene.run(&format!("run c.yml --out {out} --format jsonl"));
        assert!(ended.ended_with(0).stderr.contains("is implausible"), "{ended:?}");
        let speedup = find(&ended.records(), "int8wo/eager/mock/f32/m8-").speedup.clone().unwrap();
        assert_eq!((speedup.verdict, speedup.margin), (Verdict::Faster, Some(0.02)));
    }
}

#[test]
fn an_escape_sequence_in_a_name_is_not_obeyed_by_the_terminal() {
    let named = slow("", 0).replace("models: [{", "models: [{name: \"a\\e[2Jb\\u009b31m\", ");
    let scene = Scene::with(&named);
    for arguments in ["run c.yml --out out --color always", "run c.yml --dry-run", "run c.yml --out two --format jsonl"]
    {
        let Ended { stdout, stderr, .. } = scene.run(arguments);
        let obeyed = |text: &str| text.contains("\x1b[2J") || text.contains('\u{9b}');
        assert!(!obeyed(&stdout) && !obeyed(&stderr), "{arguments}: {stdout}{stderr}");
    }
}

/// CubeCL would terminate the worker, since it does not check kernel indices in the file.
#[test]
fn tuning_of_a_kernel_that_never_ran_is_not_used() {
    let scene = Scene::with(&slow("", 0));
    let folder = scene.path("cache/calorimeter/tuning/mock/autotune/0.10.0");
    fs::create_dir_all(&folder).unwrap();
    let crafted = "{\"key\":{},\"value\":{\"fastest_index\":99,\"results\":[]}}\n";
    fs::write(folder.join("matmul.json.log"), crafted).unwrap();
    let ended = scene.run("run c.yml --out out");
    let prefix = "tuning/mock: ";
    assert_eq!(ended.ended_with(0).stderr.matches(prefix).count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("line 1: selects a candidate that did not run; delete it"), "{ended:?}");
}

#[test]
fn a_journal_locks_no_clocks_by_itself() {
    let scene = Scene::with(&slow("", 0));
    scene.run("run c.yml --out out --lock-clocks=1200").ended_with(0);
    let log = || fs::read_to_string(scene.path("cache/calorimeter/mock/clock.log")).unwrap();
    let before = log();
    let ended = scene.run("run --resume out");
    assert!(ended.error().ends_with("add `--lock-clocks=1200`"), "{ended:?}");
    assert_eq!(log(), before);
    scene.run("run --resume out --lock-clocks=1200").ended_with(0);
    assert_eq!(log().lines().count(), 2 * before.lines().count());
}

#[test]
fn peaks_are_shown_measured_again_and_refused_where_no_processor_reaches_them() {
    let scene = Scene::with(&format!(
        "recipes: [baseline]\ndevice: cpu\ndtype: f32\nimplementations: [eager]\n{TIMING}\n\
         models: [{{shapes: [{{name: custom, shapes: [[64, 64, 64]]}}]}}]\n"
    ));
    // Peaks of this test, instead of the shared ones.
    fs::create_dir_all(scene.path("cache/calorimeter/peaks")).unwrap();
    scene.run("run c.yml --out first").ended_with(0);
    let kept = fs::read_dir(scene.path("cache/calorimeter/peaks")).unwrap().next().unwrap().unwrap().path();
    let mut peaks: serde_json::Value = serde_json::from_slice(&fs::read(&kept).unwrap()).unwrap();
    for peak in peaks["products"].as_object_mut().unwrap().values_mut() {
        (peak["burst"], peak["sustained"]) = (1e30.into(), 1e30.into());
    }
    fs::write(&kept, peaks.to_string()).unwrap();
    let records = scene.run("run c.yml --out out --format jsonl").ended_with(0).records();
    let warning_prefix = "cached peaks are ignored: ";
    assert!(records[0].outcome.warnings.iter().any(|warning| warning.contains(warning_prefix)), "{records:?}");
    let measured = fs::read_to_string(&kept).unwrap();
    assert!(!measured.contains("e30") && !measured.contains("e+30"), "{measured}");
    let shown = scene.run("peaks");
    shown.ended_with(0);
    for line in ["  clocks: ", ", 0 min ago\n", "  memory  ", " GB/s", "  f32     ", "FLOP/s under load\n"] {
        assert!(shown.stdout.contains(line), "{line:?}: {shown:?}");
    }
    let measured_at =
        |ended: &Ended| serde_json::from_str::<serde_json::Value>(&ended.stdout).unwrap()[0]["measured"].clone();
    let before = measured_at(scene.run("peaks --format json").ended_with(0));
    assert!(measured.contains(before.as_str().unwrap()));
    let again = measured_at(scene.run("peaks --measure --device cpu --format json").ended_with(0));
    assert_ne!(again, before);
    assert_eq!(measured_at(scene.run("peaks --format json").ended_with(0)), again);
    fs::write(&kept, "no peaks").unwrap();
    let broken = scene.run("peaks");
    assert!(broken.ended_with(0).stdout.starts_with("no stored peaks"), "{broken:?}");
    assert!(broken.stderr.contains(kept.file_name().unwrap().to_str().unwrap()), "{broken:?}");
    fs::remove_file(&kept).unwrap();
    let mock = scene.run("peaks --measure --device mock");
    assert!(mock.error().contains("mock has no peaks"), "{mock:?}");
}
