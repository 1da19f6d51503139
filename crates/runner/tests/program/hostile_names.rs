//! Hostile names and folders in every file and output of a run: preserved, and without side effects.

use crate::scene::{ProgramOutput, Scene, TIMING};
use std::fs;
use std::path::{Path, PathBuf};

const NAMES: [&str; 13] = [
    "\u{1b}]0;title\u{7}\u{1b}[8mhidden",
    "\u{1b}[31mred\u{1b}[0m",
    "=1+1|' /C calc'!A0",
    "@SUM(1)",
    "../../../outside",
    "/outside",
    "a\n::error::b\r\tc",
    "\0",
    "\u{202e}gnp.exe",
    "<script>alert(1)</script>",
    "</textarea><img src=x onerror=alert(1)>",
    "\"'`$(touch outside)`touch outside`",
    "con.",
];

/// Finished run, as received from another person.
fn shared_run() -> Scene {
    let scene = Scene::new();
    fs::create_dir_all(scene.path("work/elsewhere")).unwrap();
    fs::create_dir_all(scene.path("home")).unwrap();
    let models = "models: [{shapes: [{name: custom, shapes: [[8, 8, 8]]}]}]";
    scene.write(
        "work/c.yml",
        format!("recipes: [baseline]\ndevice: mock\nimplementations: [eager]\noutput_dir: all\n{TIMING}\n{models}\n"),
    );
    ProgramOutput::with_timeout(scene.command("run c.yml --out all/run").current_dir(scene.path("work")))
        .expect_code(0);
    scene
}

fn resume(scene: &Scene, run: &str) -> ProgramOutput {
    ProgramOutput::with_timeout(scene.command(&format!("run --resume {run}")).current_dir(scene.path("work")))
}

#[test]
fn resuming_writes_only_inside_the_folder() {
    for (link, target) in [
        ("all/run/results.csv", "home/.profile"),
        ("all/run/inference", "home"),
        ("all/run/traces", "home"),
        ("all/run/journal.jsonl", "home/journal"),
        ("all/run/new", "home/not there"),
    ] {
        let scene = shared_run();
        let (link, target) = (scene.path("work").join(link), scene.path(target));
        if link.ends_with("journal.jsonl") {
            fs::rename(&link, &target).unwrap();
        } else if link.is_dir() {
            fs::remove_dir_all(&link).unwrap();
        } else if link.exists() {
            fs::remove_file(&link).unwrap();
        }
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let before: Vec<_> = files(&scene.path("home")).iter().map(|path| fs::read(path).unwrap()).collect();
        let ended = resume(&scene, "all/run");
        assert!(ended.error().contains("link out of the folder of the run"), "{ended:?}");
        let after: Vec<_> = files(&scene.path("home")).iter().map(|path| fs::read(path).unwrap()).collect();
        assert_eq!(before, after, "{}", link.display());
    }
    // Links inside the folder are allowed.
    let scene = shared_run();
    std::os::unix::fs::symlink("results.csv", scene.path("work/all/run/latest.csv")).unwrap();
    resume(&scene, "all/run").expect_code(0);
}

#[test]
fn journals_cannot_redirect_output() {
    let benchmarks = "benchmarks:\n- {benchmark_name: gemm_simple, csv_path: CSV, benchmark_sweep_params: [{m: 16, k: 32, n: 16}]}\n";
    let scene = Scene::new();
    fs::create_dir_all(scene.path("work")).unwrap();
    fs::create_dir_all(scene.path("home")).unwrap();
    let home = scene.path("home").display().to_string();
    scene.write("work/c.yml", benchmarks.replace("CSV", &home));
    let run = "run c.yml --device mock --implementations eager --max-time 1ms";
    ProgramOutput::with_timeout(scene.command(run).current_dir(scene.path("work"))).expect_code(0);
    let written = files(&scene.path("home"));
    assert!(!written.is_empty(), "who starts a run may name any folder");
    written.iter().for_each(|path| fs::remove_file(path).unwrap());
    std::os::unix::fs::symlink(scene.path("home"), scene.path("work/linked")).unwrap();
    let run = fs::read_dir(scene.path("work/results")).unwrap().next().unwrap().unwrap().file_name();
    let run = format!("results/{}", run.to_str().unwrap());
    let journal = scene.path("work").join(&run).join("journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    for folder in [home.as_str(), "../home", "linked"] {
        fs::write(&journal, text.replace(&format!("\"csv_path\":\"{home}\""), &format!("\"csv_path\":\"{folder}\"")))
            .unwrap();
        let ended = resume(&scene, &run).expect_code(0).stderr.clone();
        assert!(ended.contains("a resumed journal may come from another user"), "{folder}: {ended}");
        assert_eq!(files(&scene.path("home")), Vec::<PathBuf>::new(), "{folder}");
    }
}

fn files(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(below).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn hostile_names_are_preserved_and_harmless() {
    let names = NAMES.iter().map(ToString::to_string).chain(["x".repeat(100_000)]);
    for name in names {
        let quoted = serde_json::to_string(&name).unwrap();
        let home = Scene::new();
        fs::create_dir_all(home.path("deep/er")).unwrap();
        let cell = name.replace('"', "\"\"");
        home.write("deep/er/s.csv", format!("name,m,k,n\n\"{cell}\",8,8,8\n"));
        home.write(
            "deep/er/c.yml",
            format!(
                "recipes: [baseline]\ndevice: mock\nimplementations: [eager]\noutput_dir: out\nenable_profiler: true
enable_memory_profiler: true\n{TIMING}\nmodels:\n- {{name: {quoted}, shapes: [{{name: csv, path: s.csv}}]}}\n"
            ),
        );
        let shown: String = name.chars().take(40).collect();
        let run = |arguments: &str| {
            let mut command = home.command(arguments);
            let ended = ProgramOutput::with_timeout(command.current_dir(home.path("deep/er")));
            assert!(!ended.stderr.contains("panicked"), "{shown:?}: {ended:?}");
            for text in [&ended.stdout, &ended.stderr] {
                let control = text.chars().find(|c| c.is_control() && !"\n\t".contains(*c) || *c == '\u{202e}');
                assert_eq!(control, None, "{shown:?}: {arguments}: {text:?}");
                // GitHub executes a line that starts with a command.
                assert!(!text.lines().any(|line| line.starts_with("::error::b")), "{arguments}: {text}");
            }
            ended.expect_code(0);
        };
        run("run c.yml --out out/run");
        run("ci --config c.yml --output dashboard.json");
        run("run --resume out/run");
        for format in ["table", "markdown", "json", "junit", "github"] {
            run(&format!("compare out/run out/run --all --format {format}"));
        }
        run("report out/run --markdown --output out/run/report.html");
        let record = &home.journal("deep/er/out/run").records[0];
        assert_eq!((&record.case.name, &record.case.shape_name), (&name, &name));
        for path in files(&home.path(".")) {
            let place = path.strip_prefix(home.path(".")).unwrap();
            assert!(place.starts_with("deep/er") || place.starts_with("cache"), "{shown:?}: {}", place.display());
            assert!(!place.to_string_lossy().contains("outside") || place.starts_with("deep/er/out/run"), "{place:?}");
            let bytes = fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("html") => assert!(!text.contains("<script>alert") && !text.contains("<img src=x"), "{place:?}"),
                Some("json") => _ = serde_json::from_str::<serde_json::Value>(&text).unwrap(),
                Some("csv") if !place.ends_with("s.csv") => {
                    let formula =
                        text.split(['\n', ',']).find(|cell| cell.trim_start_matches('"').starts_with(['=', '@']));
                    assert_eq!(formula, None, "{place:?}");
                }
                _ => {}
            }
        }
    }
}
