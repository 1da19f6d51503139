//! Faults are confined to their case.

use crate::scene::{ProgramOutput, Scene, TIMING, find_record, not_ok};
use calorimeter_case::Verdict;
use calorimeter_sinks::{Record, Status};
use std::process::Command;

/// Two groups of four cases, one of which fails.
fn scene(fault: &str) -> Scene {
    Scene::with(&format!(
        "recipes: [baseline, int8wo]
device: mock
dtype: f32
{TIMING}
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8], [16, 16, 16]]}}]}}]
mock: [{{match: {VICTIM}, {fault}}}, {{match: int8wo, nanos: 5000}}]
"
    ))
}

const VICTIM: &str = "int8wo/eager/mock/f32/m8-";

/// Runs, and returns the only failing record; all other cases must be measured and compared with their baseline.
fn failing_record(run: &mut Command) -> Record {
    let ended = ProgramOutput::from_command(run);
    let records = ended.records();
    assert_eq!(records.len(), 8, "{ended:?}");
    let victim = find_record(&records, VICTIM).clone();
    assert_eq!(not_ok(&records), [&victim]);
    for other in records.iter().filter(|record| record.outcome.status == Status::Ok) {
        assert_eq!(other.time.windows.len(), 10);
        let faster = other.speedup.as_ref().is_some_and(|speedup| speedup.verdict == Verdict::Faster);
        assert_eq!(faster, other.case.recipe == "int8wo", "{other:?}");
    }
    let code = if victim.outcome.status == Status::Mismatch { 3 } else { 5 };
    ended.expect_code(code);
    victim
}

const RUN: &str = "run c.yml --out out --format jsonl";

#[test]
fn failing_cases_cost_only_themselves() {
    for (fault, status, reason, stderr) in [
        ("error", Status::Failed, "the mock device reports an error", None),
        ("panic", Status::Failed, "panicked: the mock workload panicked", Some("the mock workload panicked")),
        ("device_panic", Status::Failed, "panic on device thread DSD-9-0", Some("can't allocate buffer")),
        ("abort", Status::Crashed, "its worker process aborted (signal 6)", None),
        ("exit", Status::Crashed, "its worker process exited with code 0", None),
        ("kill", Status::Crashed, "its worker process was killed (signal 9)", None),
        ("mismatch", Status::Mismatch, "wrong output", None),
    ] {
        // At the first launch, whose output is checked, and during the measurement.
        for after in [0, 20] {
            let victim = failing_record(&mut scene(&format!("fault: {fault}, after: {after}")).command(RUN));
            assert_eq!(victim.outcome.status, status, "{fault} after {after}");
            let message = victim.outcome.reason.unwrap_or_default();
            assert!(message.starts_with(reason), "{fault} after {after}: {message}");
            let tail = victim.outcome.stderr_tail.unwrap_or_default();
            assert_eq!(stderr.is_some(), !tail.is_empty(), "{fault} after {after}: {tail}");
            assert!(tail.contains(stderr.unwrap_or_default()), "{fault} after {after}: {tail}");
            assert!(victim.time.time_ns.is_none() && victim.speedup.is_none() && victim.time.windows.is_empty());
        }
    }
}

/// After such a panic all outputs of a process are wrong, as on a real device. An arm measured there would be a
/// mismatch.
#[test]
fn device_thread_panics_replace_the_worker() {
    for after in [0, 1, 5, 40] {
        let victim = failing_record(&mut scene(&format!("fault: device_panic, after: {after}")).command(RUN));
        assert_eq!(victim.outcome.status, Status::Failed, "after {after}");
    }
}

#[test]
fn hanging_cases_end_at_their_timeout() {
    for after in [0, 20] {
        let scene = scene(&format!("fault: hang, after: {after}"));
        let victim = failing_record(&mut scene.command(&format!("{RUN} --timeout 1s")));
        assert_eq!(victim.outcome.status, Status::Timeout);
        assert_eq!(victim.outcome.reason.as_deref(), Some("took longer than 1s"));
    }
}

/// A stopped process sends no heartbeat, which is detected before the timeout of its case.
#[test]
fn frozen_workers_are_replaced() {
    let victim = failing_record(&mut scene("fault: freeze, after: 20").command(&format!("{RUN} --timeout 8s")));
    assert_eq!(victim.outcome.status, Status::Crashed);
    assert_eq!(victim.outcome.reason.as_deref(), Some("its worker process stopped responding (no heartbeat for 4s)"));
}

/// Only Linux limits the address space of a process.
#[cfg(target_os = "linux")]
#[test]
fn memory_exhaustion_costs_one_case() {
    let scene = scene("fault: exhaust_memory");
    // With many cores, the thread stacks of the table engine would exhaust the limit.
    let starved = "unset RUST_MIN_STACK; export POLARS_MAX_THREADS=1; ulimit -v 1000000";
    let victim = failing_record(&mut scene.limited_command(starved, RUN));
    assert_eq!(victim.outcome.status, Status::Crashed);
    assert_eq!(victim.outcome.reason.as_deref(), Some("its worker process aborted (signal 6)"));
    assert!(victim.outcome.stderr_tail.unwrap().contains("memory allocation of 67108864 bytes failed"));
}

#[test]
fn failed_baselines_leave_cases_without_speedup() {
    let scene = scene("nanos: 5000");
    let text = std::fs::read_to_string(scene.path("c.yml")).unwrap();
    scene.write("c.yml", text.replace(&format!("{{match: {VICTIM}, nanos: 5000}}"), "{match: baseline, fault: kill}"));
    let records = scene.run(RUN).expect_code(5).records();
    let statuses = |recipe| records.iter().filter(move |r| r.case.recipe == recipe).map(|r| r.outcome.status);
    assert!(statuses("baseline").all(|status| status == Status::Crashed));
    assert!(statuses("int8wo").all(|status| status == Status::Ok));
    assert!(records.iter().all(|record| record.speedup.is_none()));
}
