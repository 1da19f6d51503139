//! Names that a stranger chose, through every file and every screen of a run: they arrive whole, and do nothing on the way.

use crate::scene::{Scene, TIMING};
use std::fs;
use std::path::{Path, PathBuf};

const NAMES: [&str; 12] = [
    "\u{1b}]0;title\u{7}\u{1b}[8mhidden",
    "=1+1|' /C calc'!A0",
    "@SUM(1)",
    "../../../outside",
    "/outside",
    "a\nb\r\tc",
    "\0",
    "\u{202e}gnp.exe",
    "<script>alert(1)</script>",
    "</textarea><img src=x onerror=alert(1)>",
    "\"'`$(touch outside)`touch outside`",
    "con.",
];

fn files(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(below).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn a_name_of_any_kind_arrives_whole_and_leads_nowhere() {
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
            let ended = crate::scene::Ended::soon(command.current_dir(home.path("deep/er")));
            assert!(!ended.stderr.contains("panicked"), "{shown:?}: {ended:?}");
            for text in [&ended.stdout, &ended.stderr] {
                let control = text.chars().find(|c| c.is_control() && !"\n\t".contains(*c) || *c == '\u{202e}');
                assert_eq!(control, None, "{shown:?}: {arguments}: {text:?}");
            }
            ended.ended_with(0);
        };
        run("run c.yml --out out/run");
        run("ci --config c.yml --output dashboard.json");
        run("run --resume out/run");
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
