//! Data sets of flashinfer-bench: solutions are measured against the reference, and traces are written.

use crate::scene::{ProgramOutput, Scene, fixture};
use calorimeter_runner::serde_json::{self, Value};
use calorimeter_sinks::{Record, Status};
use std::fs;
use std::path::Path;

/// Short measurement of the fixture data set, or of another folder.
fn run(scene: &Scene, arguments: &str, dataset: Option<&Path>) -> ProgramOutput {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations/python");
    let mut command = scene.command(&format!("flashinfer --device cpu --max-time 20ms --format jsonl {arguments}"));
    command.env("PYTHONPATH", package.canonicalize().unwrap());
    command.args(dataset.map(Path::as_os_str));
    ProgramOutput::with_timeout(&mut command)
}

fn record<'a>(records: &'a [Record], workload: &str, name: &str) -> &'a Record {
    let of_workload: Vec<&Record> = records.iter().filter(|record| record.case.shape_name == workload).collect();
    of_workload.into_iter().find(|record| record.case.id.to_string().contains(&format!("/{name}/"))).unwrap()
}

fn traces(scene: &Scene, definition: &str) -> Vec<Value> {
    let text = fs::read_to_string(scene.path(&format!("out/traces/{definition}.jsonl"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
#[ignore = "needs NumPy"]
fn solutions_are_measured_against_the_reference() {
    let scene = Scene::new();
    let records = run(&scene, "--out out", Some(&fixture("flashinfer"))).expect_code(3).records();
    assert_eq!(records.len(), 22);
    for workload in ["random-weight", "stored-weight"] {
        let status = |name: &str| record(&records, workload, name).outcome.status;
        assert_eq!(status("reference"), Status::Ok);
        for name in ["in_place", "returned", "named"] {
            let record = record(&records, workload, name);
            assert!(record.is_ok() && record.speedup.is_some(), "{record:?}");
            assert!(record.accuracy.as_ref().is_some_and(|accuracy| accuracy.max_rel < Some(1e-5)), "{record:?}");
            assert!(record.execution.kernel.as_ref().is_some_and(|kernel| kernel.contains("(numpy 2")), "{record:?}");
        }
        assert_eq!(status("doubled"), Status::Mismatch);
        assert_eq!(status("stored"), Status::Mismatch);
        assert_eq!(status("raises"), Status::Failed);
        assert_eq!(status("transposed"), Status::Failed);
        assert_eq!(status("cuda_kernel"), Status::Unsupported);
    }
    assert!(record(&records, "indices", "gathered").is_ok(), "int64, bool, float16 and scalars");
    assert_eq!(record(&records, "indices", "half_mask").outcome.status, Status::Mismatch);
    let sampling = record(&records, "distribution", "reference");
    assert_eq!(sampling.outcome.status, Status::Unsupported, "{sampling:?}");
}

#[test]
#[ignore = "needs NumPy"]
fn traces_have_the_schema_of_flashinfer_bench() {
    let scene = Scene::new();
    run(&scene, "--out out --definitions rms_norm_h64 --workloads 1", Some(&fixture("flashinfer"))).expect_code(3);
    let line = fs::read_to_string(fixture("flashinfer/workloads/rmsnorm/rms_norm_h64.jsonl")).unwrap();
    let given: Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    let expected = [
        ("doubled", "INCORRECT_NUMERICAL"),
        ("in_place", "PASSED"),
        ("named", "PASSED"),
        ("raises", "RUNTIME_ERROR"),
        ("returned", "PASSED"),
        ("stored", "INCORRECT_NUMERICAL"),
        ("transposed", "RUNTIME_ERROR"),
    ];
    let traces = traces(&scene, "rms_norm_h64");
    assert_eq!(traces.len(), expected.len());
    for (trace, (solution, status)) in traces.iter().zip(expected) {
        assert_eq!((&trace["solution"], &trace["definition"]), (&solution.into(), &"rms_norm_h64".into()));
        assert_eq!(trace["workload"], given["workload"]);
        let evaluation = &trace["evaluation"];
        assert_eq!(evaluation["status"], status, "{solution}");
        assert!(evaluation["timestamp"].is_string() && evaluation["log"].is_string());
        assert!(evaluation["environment"]["hardware"].as_str().is_some_and(|name| !name.is_empty()));
        let has = |part: &str, keys: &[&str]| {
            let values = keys.iter().map(|key| &evaluation[part][key]);
            values.clone().all(|value| value.is_number() || value == "NaN")
        };
        let has_errors = has("correctness", &["max_relative_error", "max_absolute_error"]);
        let has_times = has("performance", &["latency_ms", "reference_latency_ms", "speedup_factor"]);
        assert_eq!((has_errors, has_times), (status != "RUNTIME_ERROR", status == "PASSED"), "{trace}");
    }
    let wrong = &traces[0]["evaluation"]["correctness"]["max_relative_error"];
    assert!(wrong.as_f64().is_some_and(|error| (error - 1.0).abs() < 1e-3), "{wrong}");
}

#[test]
#[ignore = "needs NumPy"]
fn tolerance_and_resume_apply_to_data_sets() {
    let scene = Scene::new();
    let options = "--out out --solutions doubled --rtol 1.01";
    let records = run(&scene, options, Some(&fixture("flashinfer"))).expect_code(0).records();
    assert_eq!(records.len(), 4);
    assert!(records.iter().all(Record::is_ok), "{records:?}");
    // The traces are derived from the journal.
    fs::remove_dir_all(scene.path("out/traces")).unwrap();
    run(&scene, "--resume out", None).expect_code(0);
    assert_eq!(traces(&scene, "rms_norm_h64").len(), 2);
}

#[test]
fn data_sets_are_planned_without_python() {
    let scene = Scene::new();
    let planned = run(&scene, "--dry-run", Some(&fixture("flashinfer")));
    planned.expect_code(0);
    for id in ["reference/cpu/f32/batch_size3", "in_place/cpu/f32/batch_size8", "gathered/cpu/f16/pages5-count4"] {
        assert!(planned.stdout.contains(id), "{planned:?}");
    }
}

#[test]
fn unusable_data_sets_are_usage_errors() {
    let scene = Scene::new();
    let data = fixture("flashinfer");
    for (arguments, dataset, expected) in [
        ("--dry-run --definitions rms_norm", Some(&*data), "unknown definition \"rms_norm\""),
        ("--dry-run --solutions doubld", Some(&*data), "doubled"),
        ("--dry-run --scale-shapes 1/2", Some(&*data), "--scale-shapes"),
        ("--dry-run --implementations eager", Some(&*data), "--implementations"),
        ("--dry-run", Some(Path::new("missing")), "cannot read missing"),
        ("--dry-run", Some(Path::new(".")), "definitions/**/*.json"),
    ] {
        let ended = run(&scene, arguments, dataset);
        assert!(ended.expect_code(2).stderr.contains(expected), "{arguments}: {ended:?}");
    }
    fs::create_dir_all(scene.path("broken/definitions")).unwrap();
    scene.write("broken/definitions/a.json", "{\n\"name\": 1}");
    let ended = run(&scene, "--dry-run", Some(&scene.path("broken")));
    assert!(ended.expect_code(2).stderr.contains("a.json: invalid type"), "{ended:?}");
}
