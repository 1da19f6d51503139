//! What this crate promises. `fixtures/golden.py` writes the golden files of the two compatible formats.

use calorimeter_case::record::Execution;
use calorimeter_case::record::Footprint;
use calorimeter_case::record::Outcome;
use calorimeter_case::record::Preparation;
use calorimeter_case::record::Rates;
use calorimeter_case::record::Time;
use calorimeter_case::record::Weights;
use std::fs;
use std::path::Path;

use calorimeter_case::{Axes, Case, Counts, Device, Export, FusionModel, Name, Regime};
use calorimeter_sinks::journal::{self, Header, JOURNAL_FILE, Journal, JournalWarning, Resumed, Summary};
use calorimeter_sinks::record::{Accuracy, Estimate, Record, Roofline, Speedup, Status, Tuning, Window, finite};
use calorimeter_sinks::{Run, SinkError, dashboard, sinks, table, torchao, write_all};
use polars::prelude::{CsvReadOptions, ParquetReader, SerReader};
use proptest::prelude::*;

fn header() -> Header {
    Header {
        run_id: "r1".into(),
        started: "2026-03-09T07:05:01+02:00".into(),
        argv: vec!["calorimeter".into(), "run".into(), "a.yml".into()],
        config: serde_json::json!({ "benchmark_mode": "inference", "precision": 0.01 }),
        config_fingerprint: "abc".into(),
        plan_cases: 3,
        environment: serde_json::json!({ "gpu": "none" }),
    }
}

fn resumed() -> Resumed {
    Resumed { time: "2026-03-09T08:00:00+02:00".into(), argv: vec!["calorimeter".into()] }
}

fn summary(interrupted: bool) -> Summary {
    Summary {
        finished: "2026-03-09T09:00:00+02:00".into(),
        interrupted,
        counts: [(Status::Ok, 2)].into(),
        notes: vec![],
        suite: vec![],
    }
}

/// A record with every field filled, and awkward text.
fn full(id: &str) -> Record {
    Record {
        speedup: Some(Speedup {
            vs: "base".into(),
            ratio: 1.7,
            lo: Some(1.6),
            hi: Some(1.8),
            verdict: "FASTER".into(),
            margin: Some(0.02),
            rounds_needed: Some(90),
        }),
        accuracy: Some(Accuracy {
            sqnr_db: Some(44.1),
            rel_l2: Some(1e-7),
            max_abs: Some(0.5),
            cosine: Some(0.999),
            kernel_rel_l2: Some(0.0),
        }),
        outcome: Outcome {
            reason: Some("a \"reason\",\nover two lines; with µ and ±".into()),
            stderr_tail: Some("warning: \u{1b}[33mdriver\u{1b}[0m\r\n".into()),
            warnings: vec!["throttled".into(), "hot".into()],
            ..Status::Ok.into()
        },
        execution: Execution {
            stopwatch: Some("cupti".into()),
            kernel: Some("gemm<bf16, 128>".into()),
            ..Execution::default()
        },
        time: Time {
            time_ns: Some(Estimate { median: 12_340.125, lo: Some(0.1 + 0.2), hi: Some(1e300) }),
            windows: vec![Window { launches: 10, nanos: 123_401 }, Window { launches: 12, nanos: u64::MAX }],
            iterations_ns: vec![12_340, u64::MAX],
            converged: Some(true),
            ..Time::default()
        },
        rates: Rates {
            tflops: Some(723.4),
            gbps: Some(4100.0),
            roofline: Some(Roofline { bound: "memory".into(), percent: 85.5, ..Roofline::default() }),
        },
        weights: Weights {
            weight_bytes: Some(1 << 20),
            baseline_weight_bytes: Some(1 << 21),
            quantise_ns: Some(2_000_000),
        },
        footprint: Footprint { peak_bytes: Some(1 << 30), ..Footprint::default() },
        preparation: Preparation {
            prime_ns: Some(1),
            tuning: Some(Tuning { nanos: 5, events: 2 }),
            granularity_ns: Some(32),
            ..Preparation::default()
        },
        ..Record::new(
            Case {
                id: id.into(),
                mode: "inference".parse().unwrap(),
                name: "small".into(),
                workload: "linear".into(),
                recipe: "int8wo".into(),
                sparsity: Some("semi-sparse".into()),
                implementation: "fused".parse().unwrap(),
                device: "cuda:0".parse().unwrap(),
                element: "bf16".parse().unwrap(),
                output: Some("e4m3".parse().unwrap()),
                shape_name: "custom".into(),
                shape: [("m", 1024), ("k", 512), ("n", u64::MAX)].into(),
                regime: "device-hot".parse().unwrap(),
                flops: Some(1),
                bytes: Some(2),
                published: Some(Counts { flops: None, bytes: Some(4) }),
                fusion: Some(FusionModel { operators: vec!["a".into()], unfused_bytes: 9, fused_bytes: 5 }),
                memory_bytes: Some(3),
                implied: true,
                compile_mode: Some("default".into()),
                profiler: true,
                memory_profiler: true,
                peak_memory: true,
                // Without folders: what is written there is checked where files are read.
                export: Some(Export { entry: 3, ..Export::default() }),
            },
            Status::Ok,
        )
    }
}

fn bare(id: &str) -> Record {
    Record::new(Case { id: id.into(), shape: [("batch", 8), ("m", 2)].into(), ..Case::default() }, Status::Crashed)
}

// ---- the schema

#[test]
fn what_was_not_measured_is_not_in_the_json() {
    let json = serde_json::to_string(&bare("a/b")).unwrap();
    assert_eq!(
        json,
        r#"{"id":"a/b","mode":"inference","workload":"","recipe":"baseline","implementation":"eager","device":"cpu","#
            .to_owned()
            + r#""dtype":"f32","shape_name":"","shape":{"batch":8,"m":2},"regime":"device-cold","status":"crashed"}"#
    );
    assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), bare("a/b"));
}

#[test]
fn numbers_that_json_cannot_hold_are_left_out() {
    let mut record = bare("a");
    let before = serde_json::to_string(&record).unwrap();
    record.rates.tflops = Some(f64::INFINITY);
    record.time.time_ns = Some(Estimate { median: f64::NAN, lo: Some(1.0), hi: None });
    record.rates.roofline = Some(Roofline { bound: "memory".into(), percent: f64::NAN, ..Roofline::default() });
    record.speedup = Some(Speedup {
        vs: "b".into(),
        ratio: f64::INFINITY,
        lo: None,
        hi: None,
        verdict: "FASTER".into(),
        ..Speedup::default()
    });
    assert_eq!(serde_json::to_string(&record).unwrap(), before);
    record.accuracy = Some(Accuracy { sqnr_db: Some(f64::INFINITY), rel_l2: Some(0.0), ..Accuracy::default() });
    let read: Record = serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
    assert_eq!(read.accuracy, Some(Accuracy { rel_l2: Some(0.0), ..Accuracy::default() }));
    assert!(read.accuracy.unwrap().is_exact());
}

#[test]
fn fields_from_the_future_are_ignored() {
    let json = serde_json::to_string(&full("a")).unwrap();
    let newer = json.replacen('{', "{\"power_watts\":700,", 1).replace("\"lo\":", "\"p99\":[1],\"lo\":");
    assert_eq!(serde_json::from_str::<Record>(&newer).unwrap(), full("a"));
}

#[test]
fn axes_keep_their_order_and_an_axis_named_twice_is_refused() {
    let twice = serde_json::from_str::<Axes>(r#"{"seq":4,"batch":2,"seq":8}"#).unwrap_err().to_string();
    assert!(twice.starts_with("seq is given twice"), "{twice}");
    let axes: Axes = serde_json::from_str(r#"{"seq":8,"batch":2}"#).unwrap();
    assert_eq!(axes.to_string(), "seq8-batch2");
    assert_eq!((axes.get("seq"), axes.get("dim")), (Some(8), None));
}

prop_compose! {
    fn estimates()(median in any::<f64>(), lo in any::<Option<f64>>(), hi in any::<Option<f64>>()) -> Option<Estimate> {
        finite(median).map(|median| Estimate { median, lo: lo.and_then(finite), hi: hi.and_then(finite) })
    }
}

prop_compose! {
    fn records()(
        texts in prop::array::uniform4(any::<String>()),
        device in prop::sample::select(vec![Device::Cuda(0), Device::Vulkan(7), Device::Cpu]),
        regime in prop::sample::select(Regime::ALL.to_vec()),
        reason in any::<Option<String>>(),
        axes in prop::collection::vec((any::<String>(), any::<u64>()), 0..5),
        flops in any::<Option<u64>>(),
        flags in any::<(bool, bool, bool, Option<bool>)>(),
        status in prop::sample::select(Status::ALL.to_vec()),
        time_ns in estimates(),
        windows in prop::collection::vec(any::<(u32, u64)>(), 0..5),
        numbers in prop::array::uniform7(any::<Option<f64>>()),
        counts in prop::array::uniform7(any::<Option<u64>>()),
        warnings in prop::collection::vec(any::<String>(), 0..3),
    ) -> Record {
        let [id, name, recipe, shape_name] = texts;
        let [tflops, gbps, percent, sqnr_db, rel_l2, ratio, lo] = numbers.map(|number| number.and_then(finite));
        let [weight_bytes, baseline_weight_bytes, quantise_ns, peak_bytes, prime_ns, tuned, granularity_ns] = counts;
        Record { case: Case {
                id: id.into(),
                recipe: recipe.into(),
                name, device, shape_name, regime, flops,
                sparsity: reason.clone().map(Name::from),
                shape: axes.into_iter().collect(),
                implied: flags.0,
                profiler: flags.1,
                memory_profiler: flags.2,
                ..Case::default()
            }, speedup: ratio.map(|ratio| Speedup { vs: "b".into(), ratio, lo, hi: None, verdict: "SAME".into(), ..Speedup::default() }), accuracy: flags.0.then_some(Accuracy { sqnr_db, rel_l2, ..Accuracy::default() }), time: Time { time_ns, windows: windows.into_iter().map(|(launches, nanos)| Window { launches, nanos }).collect(), converged: flags.3, ..Time::default() }, rates: Rates { tflops, gbps, roofline: percent.map(|percent| Roofline { bound: "compute".into(), percent, ..Roofline::default() }) }, weights: Weights { weight_bytes, baseline_weight_bytes, quantise_ns }, footprint: Footprint { peak_bytes, ..Footprint::default() }, preparation: Preparation { prime_ns, granularity_ns, tuning: tuned.map(|nanos| Tuning { nanos, events: 1 }), ..Preparation::default() }, outcome: Outcome { warnings, stderr_tail: reason.clone(), reason, ..status.into() }, ..Record::new(Case::default(), status) }
    }
}

proptest! {
    #[test]
    fn a_record_survives_json_to_the_last_bit(record in records()) {
        let json = serde_json::to_string(&record).unwrap();
        prop_assert!(!json.contains('\n'));
        prop_assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record);
    }
}

// ---- the journal

/// A finished journal with two records, and its bytes.
fn small_journal(dir: &Path) -> Vec<u8> {
    let mut journal = Journal::create(dir, &header()).unwrap();
    journal.append(&full("a")).unwrap();
    journal.append(&bare("b")).unwrap();
    journal.finish(&summary(false)).unwrap();
    fs::read(dir.join(JOURNAL_FILE)).unwrap()
}

#[test]
fn a_journal_gives_back_what_was_put_in() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = small_journal(dir.path());
    assert!(bytes.starts_with(br#"{"schema":"calorimeter-journal","version":1,"run_id":"r1","started":"#));
    let contents = journal::read(dir.path()).unwrap();
    assert_eq!(contents.header, header());
    assert_eq!(contents.records, [full("a"), bare("b")]);
    assert_eq!(contents.summary, Some(summary(false)));
    assert!(contents.warnings.is_empty() && contents.resumed.is_empty());
}

#[test]
fn a_journal_cut_anywhere_loses_at_most_its_last_record() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = small_journal(dir.path());
    let path = dir.path().join(JOURNAL_FILE);
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    for length in 0..=bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        if length < ends[0] {
            // Never seen after a crash: the file gets its name only with its header in it.
            assert!(matches!(journal::read(dir.path()), Err(SinkError::NotAJournal { .. })), "{length}");
            continue;
        }
        let complete = ends.iter().filter(|end| **end <= length).count();
        let all = [full("a"), bare("b")];
        let kept = &all[..(complete - 1).min(2)];
        let cut = length - ends[complete - 1];
        let warnings: Vec<JournalWarning> = (cut > 0)
            .then_some(JournalWarning::IncompleteLastLine { line: complete + 1, bytes: cut as u64 })
            .into_iter()
            .collect();
        let read = journal::read(dir.path()).unwrap();
        assert_eq!((read.records.as_slice(), &read.warnings), (kept, &warnings), "{length}");
        assert_eq!(fs::metadata(&path).unwrap().len(), length as u64, "reading changes nothing");

        let (mut journal, contents) = Journal::resume(dir.path(), "abc", &resumed()).unwrap();
        assert_eq!((contents.records.as_slice(), &contents.warnings), (kept, &warnings), "{length}");
        journal.append(&bare("c")).unwrap();
        drop(journal);
        let read = journal::read(dir.path()).unwrap();
        assert_eq!(read.records.len(), kept.len() + 1, "{length}");
        assert_eq!((read.resumed.len(), read.summary, read.warnings.len()), (1, None, 0), "{length}");
    }
}

#[test]
fn a_run_goes_on_after_its_summary_and_the_later_record_and_summary_count() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(dir.path(), &header()).unwrap();
    journal.append(&bare("a")).unwrap();
    journal.append(&bare("b")).unwrap();
    journal.finish(&summary(true)).unwrap();
    let (mut journal, contents) = Journal::resume(dir.path(), "abc", &resumed()).unwrap();
    assert_eq!((contents.records.len(), contents.resumed, contents.summary), (2, vec![resumed()], None));
    journal.append(&full("a")).unwrap();
    journal.finish(&summary(false)).unwrap();
    let contents = journal::read(dir.path()).unwrap();
    assert_eq!(contents.records, [full("a"), bare("b")]);
    assert_eq!(contents.summary, Some(summary(false)));
}

#[test]
fn a_journal_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = small_journal(dir.path());
    let error = Journal::create(dir.path(), &header()).unwrap_err().to_string();
    assert!(error.contains("already exists") && error.contains("--resume") && error.contains("--out"), "{error}");
    assert_eq!(fs::read(dir.path().join(JOURNAL_FILE)).unwrap(), bytes);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn two_processes_cannot_write_one_run() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::create(dir.path(), &header()).unwrap();
    let error = Journal::resume(dir.path(), "abc", &resumed()).unwrap_err();
    assert!(matches!(error, SinkError::Locked { .. }), "{error}");
    assert_eq!(journal::read(dir.path()).unwrap().header, header());
    drop(journal);
    Journal::resume(dir.path(), "abc", &resumed()).unwrap();
}

#[test]
fn what_is_no_journal_of_this_run_is_refused_and_left_alone() {
    let first = String::from_utf8({
        let dir = tempfile::tempdir().unwrap();
        small_journal(dir.path())
    })
    .unwrap();
    let newer = first.replacen("\"version\":1", "\"version\":2,\"speed\":\"warp\"", 1);
    let incomplete = first.replacen("\"run_id\":\"r1\",", "", 1);
    let broken = first.replacen("{\"record\":{\"id\":\"b\"", "{\"record\":{\"id\":b", 1);
    let unknown = first.replacen("{\"summary\":", "{\"epilogue\":", 1);
    for (name, content, expected) in [
        ("empty", "", "not a calorimeter journal"),
        ("foreign", "m,k,n\n1,2,3\n", "not a calorimeter journal"),
        ("binary", "\u{0}\u{1}\n", "not a calorimeter journal"),
        ("other json", "{\"schema\":\"x\",\"version\":1}\n", "not a calorimeter journal"),
        ("newer", &newer, "has journal version 2, and this program knows versions up to 1"),
        ("incomplete header", &incomplete, "journal.jsonl:1: not a journal line: missing field `run_id`"),
        ("broken record", &broken, "journal.jsonl:3: not a journal line: expected value"),
        ("unknown line", &unknown, "journal.jsonl:4: not a journal line: unknown variant `epilogue`"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(JOURNAL_FILE);
        fs::write(&path, content).unwrap();
        for error in [
            journal::read(dir.path()).unwrap_err().to_string(),
            Journal::resume(dir.path(), "abc", &resumed()).unwrap_err().to_string(),
        ] {
            assert!(error.contains(expected) && error.contains(path.to_str().unwrap()), "{name}: {error}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), content, "{name}");
    }
}

#[test]
fn another_configuration_is_refused_with_both_fingerprints() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = small_journal(dir.path());
    let error = Journal::resume(dir.path(), "xyz", &resumed()).unwrap_err().to_string();
    assert!(error.contains("fingerprint abc") && error.contains("has xyz"), "{error}");
    assert_eq!(fs::read(dir.path().join(JOURNAL_FILE)).unwrap(), bytes);
}

#[test]
fn a_missing_journal_and_an_unwritable_folder_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let error = Journal::resume(dir.path(), "abc", &resumed()).unwrap_err().to_string();
    assert!(error.contains(dir.path().to_str().unwrap()) && error.contains("does not exist"), "{error}");
    assert!(matches!(journal::read(dir.path()), Err(SinkError::JournalMissing { .. })));

    // A file in the way stops every user, which a read-only folder does not do for root.
    fs::write(dir.path().join("file"), "").unwrap();
    let inside = dir.path().join("file/results");
    let error = journal::check_writable(&inside).unwrap_err().to_string();
    assert!(error.contains(inside.to_str().unwrap()) && error.contains("--out"), "{error}");
    let fresh = dir.path().join("new/results");
    journal::check_writable(&fresh).unwrap();
    assert_eq!(fs::read_dir(&fresh).unwrap().count(), 0, "the probe is gone");
}

// ---- the derived files

fn run(dir: &Path, records: Vec<Record>) -> Run {
    Run { dir: dir.into(), output_dir: dir.join("out"), header: header(), records }
}

#[test]
fn csv_and_parquet_hold_the_same_table_as_the_records() {
    let dir = tempfile::tempdir().unwrap();
    let unmeasured = Case { sparsity: None, flops: None, compile_mode: None, ..full("b").case };
    let records = vec![full("a"), Record::new(unmeasured, Status::Timeout), full("c")];
    let written = write_all(&run(dir.path(), records.clone()));
    assert!(written.errors.is_empty(), "{:?}", written.errors);
    assert_eq!(written.paths, [dir.path().join("results.csv"), dir.path().join("results.parquet")]);

    let frame = table::data_frame(&records).unwrap();
    let csv = CsvReadOptions::default()
        .with_schema(Some(frame.schema().clone()))
        .try_into_reader_with_file_path(Some(written.paths[0].clone()))
        .unwrap()
        .finish()
        .unwrap();
    assert!(csv.equals_missing(&frame), "{csv}");
    let parquet = ParquetReader::new(fs::File::open(&written.paths[1]).unwrap()).finish().unwrap();
    assert!(parquet.equals_missing(&frame), "{parquet}");
}

#[test]
fn every_table_has_the_same_columns_in_the_same_order() {
    let schemas = [vec![], vec![bare("b")], vec![full("a"), bare("b")]]
        .map(|records| table::data_frame(&records).unwrap().schema().as_ref().clone());
    assert_eq!(schemas[0], schemas[1]);
    assert_eq!(schemas[0], schemas[2]);
    let names: Vec<&str> = schemas[0].iter_names().map(|name| name.as_str()).collect();
    assert_eq!(names[0], "id");
    assert_eq!(names[11..16], ["m", "k", "n", "shape", "regime"]);
    assert_eq!(names.len(), 97);
}

#[test]
fn lists_become_text_and_what_was_not_measured_null() {
    let frame = table::data_frame(&[full("a"), bare("b")]).unwrap();
    let cell = |name: &str, row| frame.column(name).unwrap().get(row).unwrap().to_string();
    for (name, measured, not_measured) in [
        ("shape", "\"m1024-k512-n18446744073709551615\"", "\"batch8-m2\""),
        ("n", "18446744073709551615", "null"),
        ("n_windows", "2", "null"),
        ("launches", "22", "null"),
        ("windows", "\"10:123401;12:18446744073709551615\"", "null"),
        ("warnings", "\"throttled; hot\"", "null"),
        ("status", "\"ok\"", "\"crashed\""),
        ("time_ns", "12340.125", "null"),
        ("converged", "true", "null"),
    ] {
        assert_eq!((cell(name, 0).as_str(), cell(name, 1).as_str()), (measured, not_measured), "{name}");
    }
}

#[test]
fn one_failing_sink_does_not_take_the_others_with_it() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("results.csv/in the way")).unwrap();
    let mut run = run(dir.path(), vec![full("a")]);
    run.header.started = "yesterday".into();
    run.records[0].case.implied = false;
    let written = write_all(&run);
    assert_eq!(written.paths, [dir.path().join("results.parquet")]);
    let errors: Vec<String> = written.errors.iter().map(ToString::to_string).collect();
    assert!(errors[0].contains("results.csv"), "{errors:?}");
    assert!(errors[1].contains("\"yesterday\" is not an RFC 3339 time"), "{errors:?}");
}

#[test]
fn the_sinks_have_these_names() {
    let names: Vec<&str> = sinks().iter().map(|sink| sink.name()).collect();
    assert_eq!(names, ["csv", "parquet", "torchao", "accelerator"]);
}

// ---- the files of torchao's micro-benchmarks

/// The records of which `fixtures/golden.py` writes the golden files.
fn torchao_records() -> Vec<Record> {
    let case = |recipe: &str, implementation: &str| Case {
        id: format!("{recipe}/{implementation}").into(),
        mode: "inference".parse().unwrap(),
        name: "the \"small\" one".into(),
        workload: "linear".into(),
        recipe: recipe.parse().unwrap(),
        implementation: implementation.parse().unwrap(),
        device: "cuda:0".parse().unwrap(),
        element: "bf16".parse().unwrap(),
        shape_name: "custom".into(),
        shape: [("m", 1024), ("k", 512), ("n", 256)].into(),
        regime: "device-hot".parse().unwrap(),
        compile_mode: Some("max-autotune".into()),
        memory_profiler: true,
        ..Case::default()
    };
    let ok = |case: Case, median: f64| Record {
        time: Time { time_ns: Some(Estimate { median, lo: None, hi: None }), ..Time::default() },
        ..Record::new(case, Status::Ok)
    };
    let implied = |case: Case| Case { implied: true, ..case };
    let plain = |implementation: &str| Case {
        name: "plain".into(),
        device: "cpu".parse().unwrap(),
        element: "f32".parse().unwrap(),
        shape: [("m", 1), ("k", 2), ("n", 3)].into(),
        compile_mode: None,
        profiler: true,
        memory_profiler: false,
        ..case("baseline", implementation)
    };
    let sparse = Case { sparsity: Some("semi-sparse".into()), ..case("int8dq", "native") };
    let other_axes = Case { shape: [("batch", 4), ("seq", 16)].into(), ..case("int8wo", "eager") };
    vec![
        ok(implied(case("baseline", "eager")), 12_345.0),
        ok(implied(case("baseline", "fused")), 9_000.0),
        ok(case("int8wo", "eager"), 10_000.5),
        ok(case("int8wo", "fused"), 6_000.0),
        Record {
            footprint: Footprint { peak_bytes: Some(123_456_789), ..ok(case("int8wo", "native"), 5_200.0).footprint },
            ..ok(case("int8wo", "native"), 5_200.0)
        },
        // Faster than all, and wrong.
        Record {
            outcome: Outcome { status: Status::Mismatch, ..ok(case("int8wo", "cube"), 1.0).outcome },
            ..ok(case("int8wo", "cube"), 1.0)
        },
        ok(case("int4wo-32", "eager"), 50.0),
        Record::new(case("int4wo-32", "native"), Status::Failed),
        Record::new(sparse, Status::Unsupported),
        ok(plain("eager"), 2e6),
        ok(plain("fused"), 1e6),
        ok(other_axes, 1.0),
    ]
}

#[test]
fn the_torchao_csv_is_what_python_would_have_written() {
    let golden = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/torchao.csv")).unwrap();
    let csv = torchao::to_csv(&torchao_records(), Path::new("out, put")).unwrap();
    assert_eq!(String::from_utf8(csv).unwrap(), String::from_utf8(golden).unwrap());
}

#[test]
fn the_torchao_sink_writes_one_file_per_mode_named_by_the_local_start() {
    let dir = tempfile::tempdir().unwrap();
    let mut records = torchao_records();
    records[9].case.mode = "training".parse().unwrap();
    let written = write_all(&run(dir.path(), records));
    let file = |mode: &str| dir.path().join("out").join(mode).join("results_09032026_070501.csv");
    assert_eq!(written.paths[2..], [file("inference"), file("training")]);
    let lines = |path| fs::read_to_string(path).unwrap().lines().count();
    assert_eq!((lines(file("inference")), lines(file("training"))), (5, 2));
}

#[test]
fn rows_never_mix_two_regimes() {
    let mut records = torchao_records();
    let cold: Vec<Record> = records[..5]
        .iter()
        .cloned()
        .map(|mut record| {
            record.case.regime = "device-cold".parse().unwrap();
            record.time.time_ns = record.time.time_ns.map(|time| Estimate { median: time.median * 2.0, ..time });
            record
        })
        .collect();
    records.extend(cold);
    let csv = String::from_utf8(torchao::to_csv(&records, Path::new("o")).unwrap()).unwrap();
    let int8wo: Vec<&str> = csv.lines().filter(|line| line.contains(",int8wo,")).collect();
    assert_eq!(int8wo.len(), 2);
    assert!(int8wo[0].contains(",0.012345,0.0100005,0.009,0.0052,1.23,1.73,1.92,"), "{}", int8wo[0]);
    assert!(int8wo[1].contains(",0.02469,0.020001,0.018,0.0104,1.23,1.73,1.92,"), "{}", int8wo[1]);
}

#[test]
fn the_dashboard_json_is_what_python_would_have_written() {
    let golden = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/dashboard.json")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("benchmark_results.json");
    dashboard::write(&path, &torchao_records(), "NVIDIA H200").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), golden);
    assert_eq!(dashboard::to_json(&[], "x").unwrap(), "[]");
}
