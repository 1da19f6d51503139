//! Extensibility: an addition to the tree is one file, and one or two lines in another file. Tested with the files of
//! `examples/own_program` and of the example `own_device`, which work outside the tree.

use crate::external_packages;
use crate::scene::{Scene, find_record};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// File of an example, and the changes that move it into the tree.
struct Addition {
    file: &'static str,
    becomes: &'static str,
    /// File that declares the module, relative to the root.
    registered_in: &'static str,
    /// Line that declares the module, if the registration does not.
    module: Option<&'static str>,
    registration: &'static str,
    place: RegistrationPlace,
}

/// Place of the registration line.
enum RegistrationPlace {
    /// After this line.
    After(&'static str),
    /// In place of this line.
    Replacing(&'static str),
}
use RegistrationPlace::{After, Replacing};

const ADDITIONS: &[Addition] = &[
    Addition {
        file: "examples/own_program/src/recipe.rs",
        becomes: "crates/recipes/src/schemes/int8wo_tensor.rs",
        registered_in: "crates/recipes/src/schemes/mod.rs",
        module: Some("mod int8wo_tensor;"),
        registration: "&int8wo_tensor::FAMILY,",
        place: After("pub(crate) const BUILT_IN: &[&RecipeFamily] = &["),
    },
    Addition {
        file: "crates/kernels/examples/layer_kernel/float8_weight.rs",
        becomes: "crates/kernels/src/host/layers/float8_weight.rs",
        registered_in: "crates/kernels/src/host/layers/mod.rs",
        module: None,
        registration: "float8_weight::Float8Weight,",
        place: After("layer_kernels! {"),
    },
    Addition {
        file: "examples/own_program/src/model.rs",
        becomes: "crates/zoo/src/models/perceptron.rs",
        registered_in: "crates/zoo/src/models/mod.rs",
        module: Some("mod perceptron;"),
        registration: "zoo.models([perceptron::Perceptron]).burn();",
        place: After("pub(crate) fn register(zoo: &Zoo) {"),
    },
    Addition {
        file: "examples/own_program/src/operator.rs",
        becomes: "crates/zoo/src/operators/negation.rs",
        registered_in: "crates/zoo/src/operators/mod.rs",
        module: Some("mod negation;"),
        registration: "zoo.operators([negation::Negation]).burn();",
        place: After("pub(crate) fn register(zoo: &Zoo) {"),
    },
    Addition {
        file: "examples/own_program/src/implementation.rs",
        becomes: "crates/zoo/src/operators/softmax/by_hand.rs",
        registered_in: "crates/zoo/src/operators/softmax/mod.rs",
        module: Some("mod by_hand;"),
        registration: "zoo.operators([Softmax]).burn().cube().native().host(by_hand::ByHand);",
        place: Replacing(
            "zoo.operators([Softmax]).burn().cube().native().host(HostRowwise(RowwiseOperator::Softmax));",
        ),
    },
    Addition {
        file: "examples/own_program/src/shapes.rs",
        becomes: "crates/shapes/src/generators/tall.rs",
        registered_in: "crates/shapes/src/generators/mod.rs",
        module: Some("mod tall;"),
        registration: "&tall::TALL,",
        place: After("pub(crate) const BUILT_IN: &[&Generator] = &["),
    },
    Addition {
        file: "examples/own_program/src/sink.rs",
        becomes: "crates/sinks/src/sinks/slowest.rs",
        registered_in: "crates/sinks/src/sinks/mod.rs",
        module: Some("mod slowest;"),
        registration: "&slowest::Slowest,",
        place: After("pub(crate) const BUILT_IN: &[&dyn Sink] = &["),
    },
    Addition {
        file: "crates/runner/examples/own_device/busy_time.rs",
        becomes: "crates/timing/src/busy_time.rs",
        registered_in: "crates/timing/src/lib.rs",
        module: Some("mod busy_time;"),
        registration: "pub use busy_time::BusyTime;",
        place: After("pub use arm::Arm;"),
    },
    Addition {
        file: "crates/runner/examples/own_device/thread_sensors.rs",
        becomes: "crates/timing/src/telemetry/thread_sensors.rs",
        registered_in: "crates/timing/src/telemetry/mod.rs",
        module: Some("mod thread_sensors;"),
        registration: "pub use thread_sensors::ThreadSensors;",
        place: After("pub use throttle::Throttle;"),
    },
    Addition {
        file: "crates/runner/examples/own_device/threads.rs",
        becomes: "crates/probe/src/platforms/threads.rs",
        registered_in: "crates/probe/src/platforms/mod.rs",
        module: Some("mod threads;"),
        registration: "&threads::Threads,",
        place: After("const BUILT_IN: &[&dyn Platform] = &["),
    },
];

/// Text that changes when a file moves from an example into the tree: imports, and the visibility of types that other
/// crates of the tree use.
const MOVED_TEXT: [(&str, &str); 4] = [
    ("pub(crate) struct BusyTime", "pub struct BusyTime"),
    ("pub(crate) struct ThreadSensors", "pub struct ThreadSensors"),
    ("use crate::BusyTime;", "use calorimeter_timing::BusyTime;"),
    ("use crate::ThreadSensors;", "use calorimeter_timing::telemetry::ThreadSensors;"),
];

/// Additions that are table entries instead of files: file, preceding line, and entry.
const ENTRIES: [(&str, &str, &str); 2] = [
    (
        "crates/case/src/case.rs",
        "    pub const COLUMNS: &'static [Column<Self>] = columns! { |case|",
        r#""batches" from "shape.batch": Count(case.shape.get("batch")), "sequences";"#,
    ),
    (
        "crates/case/src/regime.rs",
        "        clock: Enqueuing, rotates: false;",
        r#"HostWarm = "host-warm": "time that a caller waits, once more", clock: Waiting, rotates: false;"#,
    ),
];

/// Parts of the tree that Cargo needs.
const TREE_PARTS: [&str; 4] = ["Cargo.toml", "Cargo.lock", "crates", "benches"];

/// Copy of the tree.
fn copy_of_tree() -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in TREE_PARTS {
        external_packages::copy(&external_packages::root().join(name), &copy.path().join(name));
    }
    copy
}

impl Addition {
    fn make(&self, tree: &Path) {
        external_packages::copy(&external_packages::root().join(self.file), &tree.join(self.becomes));
        let text = fs::read_to_string(tree.join(self.becomes)).unwrap();
        let moved = MOVED_TEXT.iter().fold(text, |text, (from, to)| text.replace(from, to));
        write_with_time_of(tree, self.becomes, self.file, &moved);
        let told_in = tree.join(self.registered_in);
        let text = fs::read_to_string(&told_in).unwrap();
        let (mut lines, mut modules) = (Vec::new(), false);
        for line in text.lines() {
            if !modules && (line.starts_with("mod ") || line.starts_with("pub mod ")) {
                modules = true;
                lines.extend(self.module);
            }
            match self.place {
                After(list) if line == list => lines.extend([line, self.registration]),
                Replacing(old) if line.trim() == old => lines.push(self.registration),
                _ => lines.push(line),
            }
        }
        write_with_time_of(tree, self.registered_in, self.registered_in, &(lines.join("\n") + "\n"));
    }
}

/// Writes a file with the modification time of its source, so that unchanged content is not compiled again.
fn write_with_time_of(tree: &Path, file: &str, made_from: &str, text: &str) {
    fs::write(tree.join(file), text).unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/out_of_tree/extensibility.rs");
    external_packages::set_newest_time(&tree.join(file), &[&external_packages::root().join(made_from), &here]);
}

/// Adds an entry to a table.
fn add_table_entry(tree: &Path, (file, after, entry): (&str, &str, &str)) {
    let text = fs::read_to_string(tree.join(file)).unwrap();
    assert_eq!(text.lines().filter(|line| *line == after).count(), 1, "{file}: {after}");
    let lines = text.lines().flat_map(|line| [Some(line), (line == after).then_some(entry)]).flatten();
    write_with_time_of(tree, file, file, &(lines.collect::<Vec<_>>().join("\n") + "\n"));
}

/// Collects the files of a folder by relative path.
fn files(folder: &Path, below: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(folder, &path, found);
        } else {
            found.insert(path.strip_prefix(folder).unwrap().display().to_string());
        }
    }
}

/// Files that exist in only one tree, and changed files with the lines that only the first tree has.
fn differences(tree: &Path, before: &Path) -> (Vec<String>, Vec<(String, Vec<String>)>) {
    let (mut new, mut changed, mut found) = (Vec::new(), Vec::new(), BTreeSet::new());
    files(tree, tree, &mut found);
    for name in found {
        let now = fs::read(tree.join(&name)).unwrap();
        match fs::read(before.join(&name)) {
            Err(_) => new.push(name),
            Ok(then) if then == now => {}
            Ok(then) => {
                let [now, then] = [now, then].map(|bytes| String::from_utf8(bytes).unwrap());
                let then: Vec<&str> = then.lines().collect();
                let lines = now.lines().filter(|line| !then.contains(line)).map(|line| line.trim().to_owned());
                changed.push((name, lines.collect()));
            }
        }
    }
    (new, changed)
}

#[test]
fn additions_need_one_file_and_at_most_two_lines() {
    let page = fs::read_to_string(external_packages::root().join("docs/src/extending.md")).unwrap();
    for addition in ADDITIONS {
        let tree = copy_of_tree();
        addition.make(tree.path());
        let (new, changed) = differences(tree.path(), &external_packages::root());
        assert_eq!(new, [addition.becomes]);
        let lines: Vec<&str> = addition.module.into_iter().chain([addition.registration]).collect();
        assert_eq!(changed, [(addition.registered_in.to_owned(), lines.iter().map(ToString::to_string).collect())]);
        for text in [addition.becomes, addition.registered_in].into_iter().chain(lines) {
            assert!(page.contains(&format!("`{text}`")), "`{text}` is not in extending.md");
        }
    }
}

#[test]
#[ignore = "builds packages"]
fn example_files_work_inside_the_tree() {
    let tree = copy_of_tree();
    ADDITIONS.iter().for_each(|addition| addition.make(tree.path()));
    ENTRIES.into_iter().for_each(|entry| add_table_entry(tree.path(), entry));
    // The tree built below differs by one file and at most two lines per addition, and one line per entry.
    let (new, changed) = differences(tree.path(), &external_packages::root());
    let lines: usize = changed.iter().map(|(_, lines)| lines.len()).sum();
    let expected: usize = ADDITIONS.iter().map(|addition| 1 + usize::from(addition.module.is_some())).sum();
    assert_eq!((new.len(), lines), (ADDITIONS.len(), expected + ENTRIES.len()), "{new:?} {changed:?}");
    let features = ["-p", "calorimeter-runner", "--no-default-features", "--features", "cpu"];
    let program = external_packages::build(tree.path(), "calorimeter", &features);
    let config = fs::read_to_string(external_packages::root().join("examples/own_program/config.yml")).unwrap();
    let scene = Scene::with(&config.replace("by_hand", "native"));
    let records =
        external_packages::run(&program, &scene, "run c.yml --out out --format jsonl").expect_code(0).records();
    for id in ["perceptron/int8wo-tensor/eager/cpu/f32/m128-k64-n64", "negation/baseline", "softmax/baseline/native"] {
        let record = find_record(&records, id);
        assert!(record.is_ok() && record.accuracy.is_some(), "{record:?}");
    }
    assert!(scene.path("out/slowest.txt").exists());
    let table = fs::read_to_string(scene.path("out/results.csv")).unwrap();
    assert!(table.starts_with("batches,") && table.contains("\n2,"), "{table}");
    let listed = external_packages::run(&program, &Scene::new(), "list devices");
    assert!(listed.expect_code(0).stdout.contains("thread:1"), "{listed:?}");
    let doctor = external_packages::run(&program, &Scene::new(), "doctor");
    assert!(doctor.stdout.contains("clock: busy-time") && doctor.stdout.contains("sensors: thread"), "{doctor:?}");
    let once_more = external_packages::run(&program, &scene, "run c.yml --out warm --regimes host-warm --format jsonl");
    let mut regimes = once_more.expect_code(0).objects().into_iter().map(|record| record["regime"].clone());
    assert!(regimes.all(|regime| regime == "host-warm"), "{once_more:?}");
    let kernels = external_packages::run(&program, &Scene::new(), "list kernels");
    assert!(kernels.expect_code(0).stdout.contains("native on cpu: float8 weight\n"), "{kernels:?}");
    let layer = Scene::with(
        "recipes: [baseline, float8wo]\nmodels: [{model: linear, implementations: [native], device: cpu, dtype: f32, \
         shapes: [{name: custom, shapes: [[4, 64, 32]]}]}]",
    );
    let records = external_packages::run(&program, &layer, "run c.yml --format jsonl").expect_code(0).records();
    let record = find_record(&records, "linear/float8wo/native/cpu/f32/m4-k64-n32");
    assert!(record.is_ok() && record.accuracy.is_some(), "{record:?}");
}

#[test]
fn quoted_rust_code_compiles() {
    let root = external_packages::root();
    let mut names = BTreeSet::new();
    for folder in ["benches", "crates"] {
        files(&root, &root.join(folder), &mut names);
    }
    names.retain(|name| name.starts_with("benches/") || name.contains("/examples/") || name.ends_with("README.md"));
    let texts: Vec<String> = names.iter().map(|name| fs::read_to_string(root.join(name)).unwrap()).collect();
    let compiled: BTreeSet<&str> = texts.iter().flat_map(|text| text.lines()).map(str::trim).collect();
    let quoted = |page: &str| -> Vec<String> {
        // A test of `calorimeter docs` compares code blocks behind `file` markers with their files.
        let mut parts = page.split("<!-- file: ");
        let outside = parts.next().into_iter().chain(parts.filter_map(|part| Some(part.split_once("<!-- end -->")?.1)));
        let blocks = outside.flat_map(|part| part.split("\n```rust").skip(1));
        let lines = blocks.flat_map(|rest| rest.split("\n```").next().unwrap().lines().skip(1)).map(str::trim);
        lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let mut pages = BTreeSet::new();
    files(&root, &root.join("docs/src"), &mut pages);
    let mut lines = 0;
    for page in pages.iter().filter(|name| name.ends_with(".md")) {
        for line in quoted(&fs::read_to_string(root.join(page)).unwrap()) {
            assert!(compiled.contains(line.as_str()), "no compiled file has the line\n{line}");
            lines += 1;
        }
    }
    assert!(lines > 10, "{lines}");
}
