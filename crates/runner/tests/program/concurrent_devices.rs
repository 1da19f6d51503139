//! Several devices of one host share a plan and measure concurrently.

use crate::scene::{ProgramOutput, RunningProgram, Scene, TIMING, find_record, not_ok};
use calorimeter_case::{Device, Warning};
use calorimeter_sinks::{Record, Status};
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

/// Six groups of four cases, or more with more regimes, with slow launches.
fn config(more: &str, rules: &str) -> String {
    format!(
        "recipes: [baseline, int8wo]
device: mock:all
dtype: f32
{TIMING}
{more}
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8], [9, 8, 8], [10, 8, 8], [11, 8, 8], [12, 8, 8], [13, 8, 8]]}}]}}]
mock: [{rules} {{match: int8wo, nanos: 5000, sleep_ms: 1}}, {{sleep_ms: 1}}]
"
    )
}

const RUN: &str = "run c.yml --out out --format jsonl";

/// Command on a host with `devices` mock devices.
fn command_with_devices(devices: u16, scene: &Scene, arguments: &str) -> Command {
    let mut command = scene.command(arguments);
    command.env("CALORIMETER_MOCK_DEVICES", devices.to_string());
    command
}

fn start<'a>(devices: u16, scene: &'a Scene, arguments: &str) -> RunningProgram<'a> {
    scene.start_command(&mut command_with_devices(devices, scene, arguments))
}

fn ids(records: &[Record]) -> BTreeSet<String> {
    let ids: BTreeSet<String> = records.iter().map(|record| record.case.id.to_string()).collect();
    assert_eq!(ids.len(), records.len(), "a case has two records");
    ids
}

fn planned(devices: u16, scene: &Scene) -> BTreeSet<String> {
    let plan =
        ProgramOutput::from_command(&mut command_with_devices(devices, scene, "run c.yml --dry-run --format jsonl"));
    plan.expect_code(0).objects().iter().map(|case| case["id"].as_str().unwrap().to_owned()).collect()
}

/// Case id without its device.
fn id_without_device(id: &str) -> String {
    id.split('/').filter(|part| !part.starts_with("mock")).collect::<Vec<_>>().join("/")
}

/// Start and end of each group, by device.
fn group_periods(records: &[Record]) -> Vec<(Device, String, String)> {
    let mut turns: BTreeMap<(Device, String), String> = BTreeMap::new();
    for record in records {
        let started = record.outcome.started.clone().unwrap();
        let last = turns.entry((record.case.device, started)).or_default();
        *last = record.outcome.ended.clone().unwrap().max(last.clone());
    }
    turns.into_iter().map(|((device, started), ended)| (device, started, ended)).collect()
}

fn overlap(one: &(Device, String, String), other: &(Device, String, String)) -> bool {
    one.0 != other.0 && one.1 < other.2 && other.1 < one.2
}

/// Records of a device.
fn records_of(records: &[Record], device: u16) -> Vec<&Record> {
    records.iter().filter(|record| record.case.device == Device::Mock(device)).collect()
}

#[test]
fn two_devices_share_the_plan_concurrently() {
    let scene = Scene::with(&config("", ""));
    let one = ProgramOutput::from_command(&mut command_with_devices(1, &scene, "run c.yml --out one --format jsonl"))
        .expect_code(0)
        .records();
    assert!(one.iter().all(|record| record.case.id.contains("/mock/")));
    let two = ProgramOutput::from_command(&mut command_with_devices(2, &scene, RUN)).expect_code(0).records();
    let cases = |records: &[Record]| ids(records).iter().map(|id| id_without_device(id)).collect::<BTreeSet<_>>();
    assert_eq!((two.len(), cases(&two)), (24, cases(&one)));
    assert_eq!(ids(&two), planned(2, &scene));
    assert_eq!((records_of(&two, 0).len(), records_of(&two, 1).len()), (12, 12));
    for record in &two {
        let speedup = record.speedup.as_ref().map(|speedup| id_without_device(&speedup.vs));
        assert_eq!(
            speedup,
            find_record(&one, &id_on_device(record, "mock")).speedup.as_ref().map(|one| id_without_device(&one.vs))
        );
        assert!(record.warnings.is_empty(), "{record:?}");
    }
    let turns = group_periods(&two);
    assert_eq!(turns.len(), 6, "{turns:?}");
    assert!(turns.iter().any(|one| turns.iter().any(|other| overlap(one, other))), "one after the other: {turns:?}");
    // Groups are reported when complete, so that a table has one heading per group.
    let shapes: Vec<String> = two.iter().map(|record| record.case.shape.to_string()).collect();
    let runs = 1 + shapes.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(runs, 6, "{shapes:?}");
    let notes = scene.journal("out").summary.unwrap().notes;
    let is_noted = |device: &str| {
        notes.iter().any(|note| note.starts_with(device) && note.contains("took 1.000 times as long (1.000 to 1.000)"))
    };
    assert!(is_noted("mock: ") && is_noted("mock:1: "), "{notes:?}");
    ProgramOutput::from_command(&mut command_with_devices(2, &scene, "run c.yml --out again")).expect_code(0);
    ProgramOutput::from_command(&mut command_with_devices(2, &scene, "compare out again")).expect_code(0);
}

/// Id of a record's case on another device.
fn id_on_device(record: &Record, device: &str) -> String {
    record.case.id.replace(&format!("/{}/", record.case.device), &format!("/{device}/"))
}

#[test]
fn failures_on_one_device_spare_the_other() {
    let scene = Scene::with(&config("", ""));
    let victim = planned(2, &scene).into_iter().find(|id| id.contains("int8wo/eager/mock:1/")).unwrap();
    for (fault, status) in [("kill", Status::Crashed), ("hang", Status::Timeout), ("panic", Status::Failed)] {
        scene.write("c.yml", config("", &format!("{{match: {victim}, fault: {fault}, after: 20}},")));
        let out = format!("run c.yml --out {fault} --timeout 3s --format jsonl");
        let records = ProgramOutput::from_command(&mut command_with_devices(2, &scene, &out)).expect_code(5).records();
        assert_eq!(ids(&records), planned(2, &scene));
        let wrong: Vec<(&str, Status)> =
            not_ok(&records).into_iter().map(|record| (&*record.case.id, record.outcome.status)).collect();
        assert_eq!(wrong, [(victim.as_str(), status)]);
    }
}

#[test]
fn lost_devices_leave_their_cases_for_resume() {
    let scene = Scene::with(&config("regimes: [device-cold, host-e2e]", "{match: mock:1/, fault: lost},"));
    let ended = ProgramOutput::from_command(&mut command_with_devices(2, &scene, RUN));
    ended.expect_code(2);
    let message = "error: mock:1: worker processes exit before they start a case; last output: ";
    assert!(ended.stderr.contains(message) && ended.stderr.contains("continue with --resume"), "{ended:?}");
    let records = ended.records();
    assert_eq!((records_of(&records, 0).len(), records_of(&records, 1).len()), (24, 0));
    assert_eq!(not_ok(&records), [] as [&Record; 0]);
    assert!(scene.journal("out").summary.unwrap().interrupted);
}

#[test]
fn killed_multi_device_runs_resume_completely() {
    let scene = Scene::with(&config("", ""));
    let mut running = start(2, &scene, RUN);
    running.wait_for_records("out", 8);
    running.signal(Signal::KILL);
    running.wait();
    let before = scene.journal("out").records;
    assert!((8..24).contains(&before.len()), "{}", before.len());
    let refused = ProgramOutput::from_command(&mut command_with_devices(1, &scene, "run --resume out"));
    assert!(refused.expect_code(2).stderr.contains("other"), "{refused:?}");
    ProgramOutput::from_command(&mut command_with_devices(2, &scene, "run --resume out")).expect_code(0);
    let after = scene.journal("out").records;
    assert_eq!(ids(&after), planned(2, &scene));
    assert_eq!(after[..before.len()], before);
}

#[test]
fn interrupts_reach_every_device() {
    let scene = Scene::with(&config("", ""));
    let mut running = start(2, &scene, RUN);
    running.wait_for_records("out", 4);
    running.signal(Signal::INT);
    let ended = running.wait();
    ended.expect_code(130);
    let kept = scene.journal("out");
    assert!(kept.summary.unwrap().interrupted && kept.records.len() < 24, "{}", kept.records.len());
    // All records on disk were also reported.
    assert_eq!(ids(&ended.records()), ids(&kept.records));
    ProgramOutput::from_command(&mut command_with_devices(2, &scene, "run --resume out")).expect_code(0);
    assert_eq!(scene.journal("out").records.len(), 24);
}

#[test]
fn host_times_are_measured_exclusively() {
    let scene =
        Scene::with(&config("regimes: [device-cold, host-e2e, host-enqueue]", "{nanos: 9000, in_company: 1.5},"));
    let records = ProgramOutput::from_command(&mut command_with_devices(2, &scene, RUN)).expect_code(0).records();
    assert_eq!(ids(&records), planned(2, &scene));
    let (cold, host): (Vec<Record>, Vec<Record>) =
        records.into_iter().partition(|record| record.case.regime.clock().is_on_device());
    let (cold_turns, host_turns) = (group_periods(&cold), group_periods(&host));
    assert_eq!((cold_turns.len(), host_turns.len()), (6, 12));
    for one in &host_turns {
        let beside = cold_turns.iter().chain(&host_turns).find(|other| overlap(one, other));
        assert_eq!(beside, None, "{one:?}");
    }
    assert!(host.iter().all(|record| record.warnings.is_empty()));
    assert!(host.iter().all(|record| record.time.time_ns.unwrap().median == 9000.0));
}

#[test]
fn interference_is_detected_and_warned_per_record() {
    let scene = Scene::with(&config("", "{nanos: 10000, in_company: 1.25, sleep_ms: 1},"));
    let ended = ProgramOutput::from_command(&mut command_with_devices(2, &scene, RUN));
    let records = ended.expect_code(0).records();
    for record in &records {
        // The device that finishes last runs without the others at the end.
        let had_company = record.time.time_ns.unwrap().median == 12500.0;
        let is_expected = |warning: &Warning| *warning == Warning::busy_devices(record.case.device, "1.250");
        assert_eq!(record.warnings.iter().any(is_expected), had_company, "{record:?}");
    }
    let with_company = records.iter().filter(|record| !record.warnings.is_empty()).count();
    assert!(with_company >= 16, "{with_company}");
    let summaries = ended.stderr.lines().filter(|line| line.ends_with("concurrent measurements carry a warning"));
    assert_eq!(summaries.count(), 2, "{ended:?}");
}

#[test]
fn single_group_plans_use_one_device() {
    let scene = Scene::with(&format!(
        "device: mock:all\nrecipes: [baseline, int8wo]\nimplementations: [eager]\n{TIMING}
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8]]}}]}}]\n"
    ));
    let records = ProgramOutput::from_command(&mut command_with_devices(4, &scene, RUN)).expect_code(0).records();
    assert_eq!((records.len(), records_of(&records, 0).len()), (2, 2));
    let journal = scene.journal("out");
    assert_eq!(journal.header.environment["devices"].as_array().unwrap().len(), 4);
    assert_eq!(journal.summary.unwrap().notes, [""; 0], "no other device was busy");
}

#[test]
fn device_setup_applies_to_every_device() {
    let scene = Scene::with(&config("", ""));
    let options = "--lock-clocks=900 --launches 2 --profile";
    let records = ProgramOutput::from_command(&mut command_with_devices(2, &scene, &format!("{RUN} {options}")))
        .expect_code(0)
        .records();
    assert_eq!(records.len(), 24);
    for record in &records {
        assert_eq!(record.time.of_processes_ns.len(), 2, "{}", record.case.id);
        assert!(scene.path("out").join(record.profile.trace.as_ref().unwrap()).is_file());
    }
    let log = fs::read_to_string(scene.path("cache/calorimeter/mock/clock.log")).unwrap();
    assert_eq!(log.lines().collect::<Vec<_>>(), ["lock 900 MHz", "lock 900 MHz", "unlock", "unlock"]);
}

#[test]
fn shards_of_multi_device_hosts_merge() {
    let scene = Scene::with(&config("", ""));
    ProgramOutput::from_command(&mut command_with_devices(2, &scene, "run c.yml --out whole")).expect_code(0);
    for part in 1..=3 {
        ProgramOutput::from_command(&mut command_with_devices(
            2,
            &scene,
            &format!("run c.yml --out p{part} --shard {part}/3"),
        ))
        .expect_code(0);
        let records = scene.journal(&format!("p{part}")).records;
        assert_eq!(
            (records_of(&records, 0).len(), records_of(&records, 1).len()),
            (4, 4),
            "both devices have their share of a part"
        );
    }
    ProgramOutput::from_command(&mut command_with_devices(2, &scene, "merge p1 p2 p3 --out all")).expect_code(0);
    let ordered = |dir: &str| scene.journal(dir).records.into_iter().map(|record| record.case.id).collect::<Vec<_>>();
    let rows = |dir: &str| fs::read_to_string(scene.path(dir).join("results.csv")).unwrap();
    assert_eq!(ordered("all").len(), 24);
    // On a host with fewer devices: the recorded machine determines the order.
    scene.run("render all").expect_code(0);
    assert!(rows("all") == rows("whole"), "the rows differ, or their order");
}

#[test]
fn single_device_commands_reject_several() {
    let scene = Scene::with(&config("", ""));
    let none = ProgramOutput::from_command(&mut command_with_devices(0, &scene, RUN));
    assert!(none.error().contains("mock:all") && none.error().contains("available: "), "{none:?}");
    let wrong = ProgramOutput::from_command(scene.command(RUN).env("CALORIMETER_MOCK_DEVICES", "two"));
    assert!(
        wrong.expect_code(2).stderr.contains("invalid CALORIMETER_MOCK_DEVICES: expected a number of devices"),
        "{wrong:?}"
    );
    for command in ["noise", "doctor --deep", "peaks --measure"] {
        let refused = scene.run(&format!("{command} --device mock:all"));
        let message = "mock:all selects several devices, but one is expected, e.g. mock:0";
        assert!(refused.expect_code(2).stderr.contains(message), "{command}: {refused:?}");
    }
    let second = ProgramOutput::from_command(&mut command_with_devices(2, &scene, &format!("{RUN} --device mock:1")))
        .expect_code(0)
        .records();
    assert_eq!(records_of(&second, 1).len(), 24);
}
