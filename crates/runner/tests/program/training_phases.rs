//! Phases of a training step, in traces and on memory pages.

use crate::scene::Scene;
use serde_json::Value;
use std::fs;

const SHORT: &str = "timing: {min_time: 0s, max_time: 1s, warm_up: 1us, max_warm_up: 1us, min_windows: 6, max_windows: 30, window: 20us}";
const PHASES: [&str; 3] = ["forward", "backward", "optimizer"];

fn scene(device: &str, dtype: &str, recipe: &str, implementations: &str) -> Scene {
    Scene::with(&format!(
        "mode: training\nrecipes: [{recipe}]\ndevice: {device}\ndtype: {dtype}\nimplementations: [{implementations}]\n\
         enable_profiler: true\nenable_memory_profiler: true\n{SHORT}\n\
         models: [{{model: linear, shapes: [{{name: custom, shapes: [[32, 64, 64]]}}]}}]\n"
    ))
}

/// Traces and memory pages contain the phases of every pass with several phases, in order and with a duration.
fn check_phases(scene: &Scene, cases: usize) {
    let records = scene.run("run c.yml --out out --format jsonl").expect_code(0).records();
    let ok: Vec<_> = records.iter().filter(|record| record.is_ok()).collect();
    assert_eq!(ok.len(), cases, "{records:?}");
    for record in ok {
        let workload = record.case.workload.to_string();
        let phases: &[&str] = match workload {
            _ if workload.ends_with("_step") => &PHASES,
            _ if workload.ends_with("_forward_backward") => &PHASES[..2],
            _ => &[],
        };
        let file = fs::read(scene.path("out").join(record.profile.trace.as_ref().unwrap())).unwrap();
        let trace: Value = serde_json::from_slice(&file).unwrap();
        let spans: Vec<&Value> = trace["traceEvents"].as_array().unwrap().iter().filter(|it| it["ph"] == "X").collect();
        let of_phases: Vec<&&Value> =
            spans.iter().filter(|it| PHASES.iter().any(|phase| it["name"] == *phase)).collect();
        let names: Vec<&str> = of_phases.iter().map(|span| span["name"].as_str().unwrap()).collect();
        assert_eq!(names, phases, "{}", record.case.id);
        let times = of_phases.iter().map(|span| (span["ts"].as_f64().unwrap(), span["dur"].as_f64().unwrap()));
        let times: Vec<(f64, f64)> = times.collect();
        assert!(times.iter().all(|(_, length)| *length > 0.0), "{}: {times:?}", record.case.id);
        let last = spans.iter().filter(|span| span["name"].as_str().unwrap().starts_with("launch "));
        let mut end = last.map(|span| span["ts"].as_f64().unwrap()).fold(0.0, f64::max);
        for (begin, length) in times {
            // Times are in microseconds with three decimals.
            assert!(begin >= end - 0.002, "{}: {begin} is before {end}", record.case.id);
            end = begin + length;
        }
        let page = scene.path("out").join(record.footprint.memory_profile.as_ref().unwrap()).join("memory.html");
        let page = fs::read_to_string(page).unwrap();
        assert_eq!(page.contains(", phase by phase\""), !phases.is_empty(), "{}", record.case.id);
        let places: Vec<usize> = phases
            .iter()
            .map(|phase| page.rfind(&format!("\"name\":\"{phase}\"")).expect("a mark of the phase"))
            .collect();
        assert!(places.is_sorted(), "{}: {places:?}", record.case.id);
        // Peaks come from passes without synchronization between phases.
        assert!(record.footprint.peak_bytes.is_some(), "{:?}", record.footprint);
    }
}

#[test]
fn training_phases_are_marked_on_the_cpu() {
    check_phases(&scene("cpu", "f32", "baseline, float8dq-row", "eager"), 9);
}

#[test]
#[ignore = "needs Vulkan"]
fn training_phases_are_marked_on_vulkan() {
    let scene = scene("vulkan", "f32", "baseline", "fused");
    check_phases(&scene, 5);
}

#[test]
#[ignore = "needs CUDA"]
fn training_phases_are_marked_on_cuda() {
    // `cube` has no passes without both recipe and optimizer.
    check_phases(&scene("cuda", "bf16", "baseline", "eager, fused, cube, native"), 17);
}
