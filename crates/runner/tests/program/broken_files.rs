//! Files with arbitrary content are read within a time limit, and accepted or refused with a message.
//!
//! Files that cause a failure are kept, and their names are printed.

use crate::readers::{Reader, clock_note, config, decisions, faults, journal, noise, peaks, profile, shapes};
use crate::scene::{ProgramOutput, Scene, TIMING, fixture};
use crate::seeded_random::{SeededRandom, tries};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Time limit of reading a file.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Fragments that have caused problems in readers.
const FRAGMENTS: &[&str] = &[
    "[",
    "]",
    "{",
    "}",
    "&a ",
    "*a",
    "!!str ",
    "? ",
    "- ",
    "\t",
    ": ",
    ", ",
    "\n",
    "\r",
    "\u{feff}",
    "---\n",
    "...\n",
    "%TAG ! x\n",
    "|\n",
    ">-\n",
    "#",
    "\"",
    "'",
    "\\",
    "\0",
    "\u{1b}[31m",
    "../",
    "=1+1",
    "1e19",
    "1e400",
    "-1",
    "0",
    "18446744073709551616",
    "9223372036854775807",
    "2147483649",
    ".nan",
    ".inf",
    "null",
    "~",
    "true",
    "0x10",
    "1_000",
    "\u{202e}",
    "é",
    "<<: ",
    "name",
    "start",
    "end",
    "multiplier",
    "m8-k8-n8",
    "null,",
    "[]",
    "{}",
    "\"\"",
];

const PEAKS: &str = r#"{"device": "a GPU", "driver": "1", "policy": "", "measured": "2026-01-02T03:04:05+00:00",
    "memory_gbps": 4000.5, "cache_gbps": 9000, "memory_looks": [3990.5, 4000.5],
    "products": {"bf16": {"burst": 800.5, "sustained": 700}, "f32": {"burst": 50, "sustained": 45.5}}}"#;

const CLOCK: &str = r#"{"device": "mock", "identity": "mock", "clock": "1200 MHz", "by_hand": "nvidia-smi -i 0 -rgc",
    "since": "2026-01-02T03:04:05+00:00"}"#;

const DECISION: &str = r#"{"key":{"key":"m64-k64-n64","checksum":"6d8f"},"value":{"fastest_index":3,"results":[{"name":"simple","outcome":
    {"Ok":{"index":3,"computation":{"mean":{"secs":0,"nanos":51233},"variance":{"secs":0,"nanos":70}}}}},{"name":"unit",
    "outcome":{"Err":{"Skip":{"name":"unit"}}}}]}}"#;

/// Mutates a file: bytes, fragments, numbers, lines, and parts of another file.
fn mutate(original: &[u8], other: &[u8], lots: &mut SeededRandom) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..1 + lots.next_below(3) {
        let at = lots.next_below(bytes.len() + 1);
        let end = (at + lots.next_below(40)).min(bytes.len());
        match lots.next_below(9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << lots.next_below(8),
            1 => drop(bytes.drain(at..end)),
            2 => drop(bytes.splice(at..end, lots.choose(FRAGMENTS).bytes())),
            3 => drop(bytes.splice(at..at, lots.choose(FRAGMENTS).bytes())),
            4 => bytes.truncate(at),
            5 => {
                let part = bytes[at..end].repeat(1 + lots.next_below(300));
                bytes.splice(at..end, part);
            }
            6 => {
                let from = lots.next_below(other.len() + 1);
                let to = (from + lots.next_below(200)).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            7 => {
                let mut lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
                let (one, two) = (lots.next_below(lines.len()), lots.next_below(lines.len()));
                if !lines.is_empty() {
                    lines.swap(one, two);
                }
                bytes = lines.concat();
            }
            _ => {
                let digit = |&at: &usize| bytes[at].is_ascii_digit();
                let Some(from) = (at..bytes.len()).find(digit) else { continue };
                let to = (from..bytes.len()).find(|at| !digit(at)).unwrap_or(bytes.len());
                let number = lots.choose(&["0", "-1", "1e19", "1.5", "4294967296", "99999999999999999999", "7"]);
                bytes.splice(from..to, number.bytes());
            }
        }
    }
    bytes
}

fn files_with_extension(folder: PathBuf, extension: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let wanted = paths.into_iter().filter(|path| path.extension().is_some_and(|found| found == extension));
    wanted.map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn mutated_files_are_read_or_refused() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut configs = files_with_extension(repository.join("configs"), "yml");
    configs.extend(files_with_extension(fixture("torchao"), "yml"));
    configs.extend(files_with_extension(fixture("accelerator"), "yaml"));
    configs.extend(files_with_extension(fixture("accelerator-v2/configs/sample_configs"), "yaml"));
    configs.extend(files_with_extension(fixture("golden"), "yml"));
    let rows = [&b"name,m,k,n\nmlp.up,8,16,32\n\"a,b\",1,2,3\n"[..], b"n,K,m\r\n3,2,1\r\n\r\n 6 ,5,4"];
    let scene = scene_with_cache_files();
    let decision = format!("{}\n", DECISION.replace(['\n', ' '], ""));
    let kinds: [(&str, Reader, Vec<Vec<u8>>); 8] = [
        ("f.yml", config, configs),
        ("j.jsonl", journal, files_with_extension(fixture("journals"), "jsonl")),
        ("s.csv", shapes, rows.map(<[u8]>::to_vec).to_vec()),
        ("p.json", profile, vec![fs::read(scene.path("profile.json")).unwrap()]),
        ("k.json", peaks, vec![PEAKS.into()]),
        ("n.json", noise, cache_files(&scene, "noise")),
        ("c.json", clock_note, cache_files(&scene, "clock-locks")),
        ("d.json.log", decisions, vec![decision.clone().into(), decision.repeat(3).into()]),
    ];
    let all: Vec<&[u8]> = kinds.iter().flat_map(|(_, _, files)| files.iter().map(Vec::as_slice)).collect();
    let folder = tempfile::tempdir().unwrap();
    for (name, reader, files) in &kinds {
        for file in files {
            let path = folder.path().join(name);
            fs::write(&path, file).unwrap();
            let read = reader(&path);
            assert!(read.is_ok() || ["f.yml", "j.jsonl"].contains(name), "{name}: {read:?}");
        }
    }
    let (tries, mut lots, mut failures) = (tries(300, 200_000), SeededRandom::from_environment(), Vec::new());
    let (orders, ordered) = channel::<(Reader, PathBuf)>();
    let (answers, answered) = channel();
    std::thread::spawn(move || {
        for (reader, path) in ordered {
            let message = std::panic::catch_unwind(|| reader(&path)).unwrap_or_else(|_| Err("\u{7}panicked".into()));
            if answers.send(message).is_err() {
                return;
            }
        }
    });
    let mut refused = 0;
    for at in 0..tries {
        // Configurations are weighted higher, since users write them.
        let (name, reader, files) = &kinds[[0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7][lots.next_below(13)]];
        let original = &files[lots.next_below(files.len())];
        let path = folder.path().join(name);
        let text = mutate(original, lots.choose(&all), &mut lots);
        fs::write(&path, &text).unwrap();
        orders.send((*reader, path.clone())).unwrap();
        let fault = match answered.recv_timeout(READ_TIMEOUT) {
            Ok(Ok(())) => None,
            Ok(Err(error)) => {
                refused += 1;
                faults(&error)
            }
            Err(RecvTimeoutError::Timeout) => Some("hangs".into()),
            Err(RecvTimeoutError::Disconnected) => Some("is gone".into()),
        };
        if let Some(fault) = fault {
            let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("torture-{at}-{name}"));
            fs::write(&kept, &text).unwrap();
            failures.push(format!("{}: {fault}", kept.display()));
            if fault == "hangs" {
                break;
            }
        }
    }
    println!("{tries} tries, {refused} refused, {} failures", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Profiles and cache files are tested through the program.
#[test]
fn mutated_profiles_and_caches_are_handled() {
    let scene = scene_with_cache_files();
    let profile = fs::read(scene.path("profile.json")).unwrap();
    let cached: Vec<(PathBuf, Vec<u8>)> = files_below(&scene.path("cache"));
    assert_eq!(cached.len(), 2);
    let (tries, mut lots) = (tries(15, 10_000), SeededRandom::from_environment());
    for at in 0..tries {
        let command = match lots.next_below(3) {
            0 => {
                let (path, original) = &cached[lots.next_below(cached.len())];
                fs::write(path, mutate(original, &profile, &mut lots)).unwrap();
                format!("run c.yml --out out{at}")
            }
            _ => {
                fs::write(scene.path("p.json"), mutate(&profile, &cached[0].1, &mut lots)).unwrap();
                "calibrate --show p.json".into()
            }
        };
        let ended = ProgramOutput::from_command(&mut scene.limited_command("ulimit -t 20", &command));
        assert!(matches!(ended.code, Some(0 | 2)) && !ended.stderr.contains("panicked"), "{at}: {command}: {ended:?}");
        assert!(!ended.stderr.contains(|c: char| c.is_control() && c != '\n'), "{at}: {command}: {ended:?}");
        if ended.code == Some(2) {
            // Preceding lines may report a clock lock.
            let error = ended.stderr.lines().last().and_then(|line| line.strip_prefix("error: "));
            assert_eq!(error.map(faults), Some(None), "{at}: {ended:?}");
        }
    }
    println!("{tries} tries, no failures");
}

fn scene_with_cache_files() -> Scene {
    let model = "models: [{shapes: [{name: custom, shapes: [[8, 8, 8]]}]}]";
    let scene =
        Scene::with(&format!("recipes: [baseline]\ndevice: mock\nimplementations: [eager]\n{TIMING}\n{model}\n"));
    let calibrate = "calibrate --device mock --quick --max-time 20ms --operations latency,stream_add";
    scene.run(&format!("{calibrate} --out calibrated --output profile.json")).expect_code(0);
    scene.run("noise --device mock --comparisons 1").expect_code(0);
    let notes = scene.path("cache/calorimeter/clock-locks");
    fs::create_dir(&notes).unwrap();
    fs::write(notes.join("mock.json"), CLOCK).unwrap();
    scene
}

/// Files in a folder of the cache.
fn cache_files(scene: &Scene, folder: &str) -> Vec<Vec<u8>> {
    files_below(&scene.path("cache/calorimeter").join(folder)).into_iter().map(|(_, file)| file).collect()
}

fn files_below(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}
