//! `calorimeter report`: inputs, outputs and refusals.

use crate::scene::{ProgramOutput, Scene, TIMING};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// Run with one measured recipe and one unsupported recipe.
fn measured_scene() -> Scene {
    let scene = Scene::with(&format!(
        "recipes: [baseline, int8wo, marlin]\ndevice: mock\nimplementations: [eager]\n{TIMING}
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8], [16, 16, 16]]}}]}}]\n"
    ));
    scene.run("run c.yml --out out").expect_code(0);
    scene
}

/// Copies the run with sensor data added.
pub(crate) fn with_sensors(scene: &Scene, run: &str, copy: &str) {
    let sample = |clock: u32, watts: f64| json!({ "round": 1, "clock_mhz": clock, "power_w": watts, "temperature_c": 50, "throttle": ["power-cap"] });
    let samples = [sample(1980, 300.0), sample(1500, 700.0), sample(1755, 650.5)];
    let telemetry = format!(",\"telemetry\":{}}}}}", json!({ "source": "nvml", "samples": samples }));
    let journal = fs::read_to_string(scene.path(run).join("journal.jsonl")).unwrap();
    let line = |line: &str| {
        let measured = line.contains("\"status\":\"ok\"");
        if measured { format!("{}{telemetry}\n", &line[..line.len() - 2]) } else { format!("{line}\n") }
    };
    fs::create_dir(scene.path(copy)).unwrap();
    fs::write(scene.path(copy).join("journal.jsonl"), journal.lines().map(line).collect::<String>()).unwrap();
}

/// Data of the page's scripts.
fn page_data(scene: &Scene, page: &str) -> Value {
    let html = fs::read_to_string(scene.path(page)).unwrap();
    let (_, data) = html.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

/// Values of a text column, one per case.
fn column_texts(data: &Value, name: &str) -> Vec<String> {
    let column = data["columns"].as_array().unwrap().iter().find(|column| column["name"] == name).unwrap();
    let at = column["at"].as_array().unwrap().iter();
    at.map(|at| column["words"][at.as_u64().unwrap() as usize].as_str().unwrap().to_owned()).collect()
}

#[test]
fn page_in_the_run_folder_lists_all_cases() {
    let scene = measured_scene();
    let ended = scene.run("report out");
    ended.expect_code(0);
    assert!(ended.stderr.contains("wrote out/report.html"), "{ended:?}");
    let records = scene.journal("out").records;
    let data = page_data(&scene, "out/report.html");
    // In plan order, independent of the order of completion.
    let recipes = |size: u32| {
        ["baseline", "int8wo", "marlin"]
            .map(|recipe| format!("inference/linear/{recipe}/eager/mock/bf16/m{size}-k{size}-n{size}"))
    };
    assert_eq!(column_texts(&data, "id"), [recipes(8), recipes(16)].concat());
    assert_eq!(data["summary"]["cases"], records.len());
    let cause = &data["summary"]["causes"][0];
    assert_eq!((&cause["status"], &cause["cases"]), (&"unsupported".into(), &2.into()), "{cause}");
}

#[test]
fn page_holds_comparison_groups_and_window_histograms() {
    let scene = measured_scene();
    scene.run("report out").expect_code(0);
    let data = page_data(&scene, "out/report.html");
    // One comparison per shape, so all form one group.
    let lines = data["forest"][0]["lines"].as_array().unwrap();
    let mut rows: Vec<u64> = lines.iter().map(|line| line["row"].as_u64().unwrap()).collect();
    rows.sort_unstable();
    assert_eq!((data["forest"].as_array().unwrap().len(), rows), (1, vec![1, 4]));
    for (row, windows) in data["windows"].as_array().unwrap().iter().enumerate() {
        let counted = windows["counts"].as_array().map(|counts| counts.iter().filter_map(Value::as_u64).sum::<u64>());
        // Every third case is unsupported.
        let expected = (row % 3 != 2).then(|| 10 - windows["above"].as_u64().unwrap());
        assert_eq!(counted, expected, "{windows}");
    }
    let run = &data["runs"][0];
    assert_eq!((&run["dtypes"], &run["configs"]), (&json!(["bf16"]), &json!(["c.yml"])));
    assert!(run["command"].as_str().unwrap().ends_with("run c.yml --out out"), "{run}");
    assert!(run["devices"][0].as_str().unwrap().starts_with("mock"), "{run}");
}

#[test]
fn runs_without_sensors_have_no_clocks() {
    let scene = measured_scene();
    // The throttled share is recorded without sensors, too.
    let journal = fs::read_to_string(scene.path("out/journal.jsonl")).unwrap();
    fs::create_dir(scene.path("zero")).unwrap();
    scene.write("zero/journal.jsonl", journal.replace("\"windows\":", "\"held_back\":0.0,\"windows\":"));
    let tables = |run: &str| -> Vec<String> {
        scene.run(&format!("report {run} --output page.html")).expect_code(0);
        let data = page_data(&scene, "page.html");
        let tables = data["group_tables"].as_array().unwrap().iter();
        tables.map(|table| table["id"].as_str().unwrap().to_owned()).collect()
    };
    assert!(!tables("zero").contains(&"clocks".to_owned()));
    with_sensors(&scene, "out", "told");
    assert!(tables("told").contains(&"clocks".to_owned()));
}

#[test]
fn all_run_formats_give_equal_reports() {
    let scene = measured_scene();
    let mut forms = vec!["out", "out/journal.jsonl"];
    if cfg!(feature = "tables") {
        forms.push("out/results.parquet");
    }
    // Journals are in order of completion, tables in plan order.
    let times = |form: &&str| {
        scene.run(&format!("report {form} --output page.html")).expect_code(0);
        let data = page_data(&scene, "page.html");
        let column = data["columns"].as_array().unwrap().iter().find(|column| column["name"] == "time_ns").unwrap();
        let numbers = column["numbers"].as_array().unwrap().iter().map(Value::as_f64);
        column_texts(&data, "id").into_iter().zip(numbers).collect::<BTreeMap<_, _>>()
    };
    let pages: Vec<BTreeMap<String, Option<f64>>> = forms.iter().map(times).collect();
    assert_eq!(pages[0].values().flatten().count(), 4, "{pages:?}");
    assert!(pages.iter().all(|page| *page == pages[0]), "{pages:?}");

    scene.run("run c.yml --out other").expect_code(0);
    scene.run("report out other --output both.html").expect_code(0);
    let runs = column_texts(&page_data(&scene, "both.html"), "run");
    assert_eq!(runs, [["out"; 6], ["other"; 6]].concat());
}

#[test]
fn pages_elsewhere_link_to_traces() {
    let scene = Scene::with(&format!(
        "recipes: [baseline]\ndevice: mock\nimplementations: [eager]\nenable_profiler: true\n{TIMING}
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8]]}}]}}]\n"
    ));
    scene.run("run c.yml --out out").expect_code(0);
    scene.run("report out --output pages/new/page.html").expect_code(0);
    let links = column_texts(&page_data(&scene, "pages/new/page.html"), "trace_link");
    assert_eq!(links.len(), 1);
    assert!(scene.path("pages/new").join(&links[0]).is_file(), "{links:?}");
}

#[test]
fn figures_render_as_svg_and_png_without_fonts() {
    let scene = measured_scene();
    let mut command = scene.command("report out --plots out/plots");
    // System fonts are not used.
    command.env("FONTCONFIG_FILE", "/dev/null").env("HOME", scene.path("nowhere"));
    let ended = ProgramOutput::from_command(&mut command);
    ended.expect_code(0);
    let index = fs::read_to_string(scene.path("out/index.html")).unwrap();
    for name in ["speed-ups", "mean-speed-ups", "roofline", "sizes-time"] {
        let svg = fs::read_to_string(scene.path(&format!("out/plots/{name}.svg"))).unwrap();
        assert!(svg.contains("mock · bf16"), "{name} has no subtitle: {svg}");
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>") && svg.contains("int8wo"), "{svg}");
        let png = fs::read(scene.path(&format!("out/plots/{name}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.len() > 2000, "{name}: {} bytes", png.len());
        for ending in ["svg", "png"] {
            let file = format!("plots/{name}.{ending}");
            assert!(ended.stderr.contains(&format!("wrote out/{file}\n")), "{ended:?}");
            assert!(index.contains(&format!("href=\"{file}\"")), "{index}");
        }
    }
}

#[test]
fn calibration_figures_support_one_or_more_profiles() {
    let scene = Scene::new();
    let calibrate = "calibrate --device mock --quick --max-time 20ms --operations dot,gemm --fusion-patterns all";
    scene.run(&format!("{calibrate} --hardware toy --out cal")).expect_code(0);
    scene.run(&format!("{calibrate} --hardware other --out more --output other.json")).expect_code(0);
    let svg = |file: &str| fs::read_to_string(scene.path(file)).unwrap();
    scene.run("report cal other.json --plots both").expect_code(0);
    for (name, message) in [
        ("peaks", vec!["f32", "FLOP/s", "other over toy"]),
        ("sizes", vec!["toy", "other", "bytes per pass"]),
        ("operators", vec!["dot · f32 · native", "toy of the peak", "other over toy", "× of "]),
        ("fusion", vec!["linear_bias · f32 · fused", "toy speed-up", "other speed-up", "bound from bytes"]),
    ] {
        let drawn = svg(&format!("both/calibration-{name}.svg"));
        assert!(message.iter().all(|message| drawn.contains(message)), "{name}: {message:?} in {drawn}");
        let png = fs::read(scene.path(&format!("both/calibration-{name}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.len() > 2000, "{name}: {} bytes", png.len());
    }
    let ended = scene.run("report other.json --plots alone");
    ended.expect_code(0);
    assert!(ended.stderr.contains("wrote alone/calibration-peaks.svg"), "{ended:?}");
    assert!(!svg("alone/calibration-peaks.svg").contains(" over "), "a single machine has no ratios");
    // Profiles of equal name are distinguished by their files.
    fs::copy(scene.path("other.json"), scene.path("again.json")).unwrap();
    scene.run("report other.json again.json --plots twice").expect_code(0);
    assert!(svg("twice/calibration-sizes.svg").contains("other (again.json)"));
}

#[test]
fn profiles_are_reported_with_or_without_runs() {
    let scene = measured_scene();
    let calibrate = "calibrate --device mock --quick --max-time 20ms --operations dot";
    scene.run(&format!("{calibrate} --hardware toy --out cal")).expect_code(0);
    scene.run(&format!("{calibrate} --hardware other --out more --output other.json")).expect_code(0);
    let names = |page: &str| -> Vec<String> {
        let data = page_data(&scene, page);
        let table = &data["calibration"]["tables"][0];
        assert_eq!(table[0], "profiles");
        let rows = table[1]["rows"].as_array().unwrap().iter();
        rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    // The profile in the run folder is included automatically.
    scene.run("report cal out other.json --output page.html").expect_code(0);
    assert_eq!(names("page.html"), ["toy", "other"]);
    scene.run("report other.json").expect_code(0);
    assert_eq!(
        (names("report.html"), &page_data(&scene, "report.html")["summary"]["cases"]),
        (vec!["other".into()], &0.into())
    );
    assert!(scene.run("report other.json --markdown").error().contains("no Markdown summary"));
    let index = fs::read_to_string(scene.path("cal/index.html")).unwrap();
    assert!(index.contains("href=\"profile.json\""), "{index}");
}

#[test]
fn clock_and_power_figures_match_the_sensors() {
    let scene = measured_scene();
    with_sensors(&scene, "out", "told");
    scene.run("render told").expect_code(0);
    let mut forms = vec!["told"];
    if cfg!(feature = "tables") {
        forms.push("told/results.parquet");
    }
    for form in forms {
        scene.run(&format!("report {form} --output page.html")).expect_code(0);
        let data = page_data(&scene, "page.html");
        let column = |name: &str| {
            data["columns"].as_array().unwrap().iter().find(|column| column["name"] == name).unwrap().clone()
        };
        assert_eq!(column("clock_mhz")["numbers"], json!([1755, 1755, null, 1755, 1755, null]), "{form}");
        assert_eq!(column("power_w")["numbers"][0], json!(650.5), "{form}");
        assert_eq!(column("throttle")["words"], json!(["power-cap"]), "{form}");
    }
}

#[test]
fn markdown_summary_goes_to_stdout() {
    let scene = measured_scene();
    let ended = scene.run("report out --markdown");
    ended.expect_code(0);
    assert!(ended.stdout.starts_with("### `out`\n\n6 cases: **4 ok, 2 unsupported**\n"), "{ended:?}");
    assert!(ended.stdout.contains("\n| `int8wo` | eager | mock, "), "{ended:?}");
    for record in scene.journal("out").records.iter().filter(|record| record.speedup.is_some()) {
        let speedup = record.speedup.as_ref().unwrap();
        let (lo, hi) = (speedup.lo.unwrap(), speedup.hi.unwrap());
        let line = format!("| `{}` | {:.3}x [{lo:.3}, {hi:.3}] | {} |", record.case.id, speedup.ratio, speedup.verdict);
        assert!(ended.stdout.lines().any(|one| one == line), "{line}: {ended:?}");
    }
    assert!(!scene.path("out/report.html").exists());
}

#[test]
fn invalid_report_requests_are_refused() {
    let scene = measured_scene();
    let journal = fs::read_to_string(scene.path("out/journal.jsonl")).unwrap();
    fs::create_dir(scene.path("begun")).unwrap();
    scene.write("begun/journal.jsonl", format!("{}\n", journal.lines().next().unwrap()));
    scene.write("broken.jsonl", "{\"record\": 1}\n");
    for (runs, because) in [
        ("begun", "begun has no records yet"),
        ("gone", "gone"),
        ("broken.jsonl", "broken.jsonl"),
        ("out begun", "begun has no records yet"),
        ("out --output begun", "cannot write begun"),
    ] {
        let ended = scene.run(&format!("report {runs}"));
        assert!(ended.error().contains(because), "{runs}: {ended:?}");
    }
    assert!(!scene.path("out/report.html").exists(), "a refusal leaves nothing behind");
}
