//! What this crate promises. `fixtures/golden.py` writes the golden files of the two compatible formats.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::{fs, io};

use calorimeter_case::{Axes, Case, Counts, Device, Export, FusionModel, Name, Regime};
use calorimeter_sinks::columns::{COLUMNS, Cell, JOURNAL_ONLY, markdown};
use calorimeter_sinks::journal::{self, Header, JOURNAL_FILE, Journal, JournalWarning, Resumed, Summary};
use calorimeter_sinks::record::{
    Accuracy, Bound, Estimate, Execution, Footprint, KernelShare, Memory, Outcome, Preparation, Profile, Rates, Record,
    Roofline, Rotation, Scatter, Speedup, Status, Telemetry, TelemetrySample, Time, Traffic, Tuning, Weights, Window,
    finite,
};
#[cfg(feature = "tables")]
use calorimeter_sinks::table;
use calorimeter_sinks::{Run, SinkError, dashboard, not_in_this_build, sinks, torchao, write_all};
#[cfg(feature = "tables")]
use polars::prelude::{ParquetReader, SerReader};
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
        telemetry: Some(Telemetry {
            source: "nvml".into(),
            samples: vec![TelemetrySample {
                round: 4,
                clock_mhz: Some(1980),
                memory_clock_mhz: Some(3201),
                power_w: Some(693.5),
                temperature_c: Some(61.0),
                throttle: vec!["power-cap".into(), "thermal".into()],
            }],
            joules: Some(0.25),
            cycles: Some(24_000.0),
            instructions: Some(48_000.0),
            cache_misses: Some(12.0),
            repeated_rounds: 1,
        }),
        traffic: Some(Traffic { read_bytes: 1e6, written_bytes: 2.5e5 }),
        outcome: Outcome {
            reason: Some("a \"reason\",\nover two lines; with µ and ±".into()),
            started: Some("2026-03-09T07:05:01+02:00".into()),
            ended: Some("2026-03-09T07:05:09+02:00".into()),
            stderr_tail: Some("warning: \u{1b}[33mdriver\u{1b}[0m\r\n".into()),
            warnings: vec!["throttled".into(), "hot".into()],
            ..Status::Ok.into()
        },
        execution: Execution {
            stopwatch: Some("cupti".into()),
            kernel: Some("gemm<bf16, 128>".into()),
            kernel_launches: Some(2.5),
            fusion_state: Some("not-fused".into()),
            autotune: vec!["m1024 bf16: tiled".into(), "m512 bf16: plane".into()],
            rotation: Some(Rotation { sets: 3, bytes: 1 << 24, cache_bytes: Some(1 << 25) }),
        },
        time: Time {
            time_ns: Some(Estimate { median: 12_340.125, lo: Some(0.1 + 0.2), hi: Some(1e300) }),
            windows: vec![Window { launches: 10, nanos: 123_401 }, Window { launches: 12, nanos: u64::MAX }],
            iterations_ns: vec![12_340, u64::MAX],
            converged: Some(true),
            enqueue_ns: Some(1e16),
            launch_bound: Some(false),
            scatter: Some(Scatter {
                min: 1.2e-5,
                p05: 12_300.0,
                p95: 12_400.5,
                mad: 17.25,
                outliers: 1,
                autocorrelation: Some(-0.125),
            }),
        },
        rates: Rates {
            tflops: Some(723.4),
            gbps: Some(4100.0),
            roofline: Some(Roofline {
                bound: "memory".into(),
                percent: 85.5,
                compute_percent: Some(9.0e-5),
                memory_percent: Some(85.5),
                peak_tflops: Some(800.0),
                peak_gbps: Some(4800.0),
            }),
        },
        weights: Weights {
            weight_bytes: Some(1 << 20),
            baseline_weight_bytes: Some(1 << 21),
            quantise_ns: Some(2_000_000),
        },
        footprint: Footprint {
            peak_bytes: Some(1 << 30),
            memory: Some(Memory {
                peak_allocated: Some(1 << 30),
                peak_active: Some(1 << 31),
                peak_reserved: Some(1 << 32),
                peak_above_inputs: Some(4096),
                bound: Bound::AtLeast,
                peak_at_most: Some((1 << 30) + 512),
                saving: Some(1.25),
                saving_bound: Bound::Exact,
            }),
            memory_profile: Some("memory_profiler/a".into()),
        },
        preparation: Preparation {
            prime_ns: Some(1),
            tuning: Some(Tuning { nanos: 5, events: 2 }),
            granularity_ns: Some(32),
            empty_window_ns: Some(700),
        },
        profile: Profile {
            kernels: vec![KernelShare { name: "gemm".into(), calls: 1.0, nanos: 12_000.0, share: 0.97 }],
            trace: Some("traces/a.json".into()),
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
                published: Some(Counts { flops: Some(3), bytes: Some(4) }),
                fusion: Some(FusionModel { operators: vec!["a".into()], unfused_bytes: 9, fused_bytes: 5 }),
                memory_bytes: Some(3),
                implied: true,
                compile_mode: Some("default".into()),
                profiler: true,
                memory_profiler: true,
                peak_memory: true,
                export: Some(Export {
                    entry: 3,
                    csv_path: Some("../csv".into()),
                    metrics_dir: Some("../report".into()),
                }),
            },
            Status::Ok,
        )
    }
}

/// The same as a file without an export would have it, so that no folder is written to.
fn stays_home(id: &str) -> Record {
    let record = full(id);
    Record { case: Case { export: None, ..record.case }, ..record }
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
    let error = Journal::create(dir.path(), &header()).unwrap_err();
    let path = dir.path().join(JOURNAL_FILE);
    assert_eq!(error.to_string(), format!("{} already exists", path.display()));
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
            journal::read(dir.path()).unwrap_err().with_causes(),
            Journal::resume(dir.path(), "abc", &resumed()).unwrap_err().with_causes(),
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
    let error = journal::check_writable(&inside).unwrap_err();
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).expect("what the system said");
    assert_eq!(error.to_string(), format!("cannot write in the folder {}", inside.display()));
    assert!(!cause.to_string().is_empty());
    let fresh = dir.path().join("new/results");
    journal::check_writable(&fresh).unwrap();
    assert_eq!(fs::read_dir(&fresh).unwrap().count(), 0, "the probe is gone");
}

// ---- the derived files

fn run(dir: &Path, records: Vec<Record>) -> Run {
    Run { dir: dir.into(), output_dir: dir.join("out"), header: header(), records }
}

#[test]
fn a_csv_gives_back_every_cell() {
    let dir = tempfile::tempdir().unwrap();
    let unmeasured = Case { sparsity: None, flops: None, compile_mode: None, ..stays_home("b").case };
    let records = vec![stays_home("a"), Record::new(unmeasured, Status::Timeout), stays_home("c")];
    let written = write_all(&run(dir.path(), records.clone()));
    assert!(written.errors.is_empty(), "{:?}", written.errors);
    assert_eq!(written.paths[0], dir.path().join("results.csv"));
    let mut reader = csv::Reader::from_path(&written.paths[0]).unwrap();
    let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>(), names);
    let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(lines.len(), records.len());
    for (line, record) in lines.iter().zip(&records) {
        for (text, column) in line.iter().zip(COLUMNS) {
            match column.cell(record) {
                Some(Cell::Text(expected)) => assert_eq!(text, expected, "{}", column.name),
                Some(Cell::Count(expected)) => assert_eq!(text.parse(), Ok(expected), "{}", column.name),
                Some(Cell::Number(expected)) => assert_eq!(text.parse(), Ok(expected), "{}", column.name),
                Some(Cell::Flag(expected)) => assert_eq!(text.parse(), Ok(expected), "{}", column.name),
                None => assert_eq!(text, "", "{}", column.name),
            }
        }
    }
}

#[cfg(feature = "tables")]
#[test]
fn parquet_holds_the_same_table_as_the_records() {
    let dir = tempfile::tempdir().unwrap();
    let unmeasured = Case { sparsity: None, flops: None, compile_mode: None, ..stays_home("b").case };
    let records = vec![stays_home("a"), Record::new(unmeasured, Status::Timeout), stays_home("c")];
    let written = write_all(&run(dir.path(), records.clone()));
    assert_eq!(written.paths, [dir.path().join("results.csv"), dir.path().join("results.parquet")]);
    let frame = table::data_frame(&records).unwrap();
    let parquet = ParquetReader::new(fs::File::open(&written.paths[1]).unwrap()).finish().unwrap();
    assert!(parquet.equals_missing(&frame), "{parquet}");
}

#[test]
fn a_build_without_tables_says_which_file_it_cannot_write() {
    let expected: &[&str] = if cfg!(feature = "tables") { &[] } else { &["results.parquet"] };
    assert_eq!(not_in_this_build(), expected);
}

/// Texts that need quotes and such that do not, an empty one, and numbers on either side of where exponents begin.
fn awkward() -> Vec<Record> {
    let with = |id: &str, number: f64| Record {
        rates: Rates { tflops: Some(number), gbps: Some(-number), ..bare(id).rates },
        execution: Execution { kernel: Some("#".into()), ..bare(id).execution },
        ..bare(id)
    };
    let mut records = vec![full("a"), bare("b"), bare("")];
    for (id, number) in [
        (" spaces ", 0.0),
        ("comma, in it", 1e-5),
        ("quote\"in it", 9.99e-6),
        ("\"quoted\"", 1e-4),
        ("line\nfeed", 123_456_789_012_345.0),
        ("carriage\rreturn", 9_999_999_999_999_998.0),
        ("tab\tand 'quotes'", 1e16),
        ("µ ± ×, \"", 1.234_567_890_123_456_7e19),
        ("back\\slash", 5e-324),
        ("#comment", f64::MAX),
        ("=1+1", 1.0),
        ("-", 0.1 + 0.2),
        ("nan", f64::NAN),
        ("null", f64::INFINITY),
    ] {
        records.push(with(id, number));
    }
    records
}

/// The file was written by the CSV writer of polars.
#[test]
fn the_csv_is_to_the_byte_what_it_was_when_polars_wrote_it() {
    let dir = tempfile::tempdir().unwrap();
    let records = awkward().into_iter().map(|record| Record { case: Case { export: None, ..record.case }, ..record });
    let written = write_all(&run(dir.path(), records.collect()));
    assert!(written.errors.is_empty(), "{:?}", written.errors);
    let csv = fs::read_to_string(&written.paths[0]).unwrap();
    let golden = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/results.csv")).unwrap();
    for (line, expected) in csv.lines().zip(golden.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(csv.len(), golden.len());
}

// ---- the columns

/// A field that is new in the record belongs into [`full`]: the text of a record shows every one, and absent ones by a word.
#[test]
fn the_full_record_leaves_no_field_out() {
    let text = format!("{:?}", full("a"));
    for absent in ["None", "[]", "\"\"", ": 0,"] {
        assert!(!text.contains(absent), "something is {absent} in {text}");
    }
    assert!(format!("{:?}", bare("a")).contains("None"));
}

#[test]
fn every_column_has_a_cell_in_the_full_record() {
    let full = full("a");
    for column in COLUMNS {
        assert!(column.cell(&full).is_some(), "{} is empty", column.name);
    }
}

/// The places of all numbers, texts and flags in a JSON value; lists are looked through.
fn leaves(value: &serde_json::Value, place: &str, found: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                leaves(value, &if place.is_empty() { name.clone() } else { format!("{place}.{name}") }, found);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| leaves(value, place, found)),
        _ => {
            found.insert(place.to_owned());
        }
    }
}

#[test]
fn every_field_of_the_journal_is_documented_once_and_nothing_else_is() {
    let mut written = BTreeSet::new();
    leaves(&serde_json::to_value(full("a")).unwrap(), "", &mut written);
    // Columns that show a list or an object as a whole name that; its parts are listed beside them.
    let whole = ["shape", "windows"];
    let documented: Vec<&str> = COLUMNS
        .iter()
        .map(|column| column.field)
        .filter(|field| !whole.contains(field))
        .chain(JOURNAL_ONLY.iter().map(|field| field.name))
        .collect();
    let unique: BTreeSet<String> = documented.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(unique.len(), documented.len(), "a field is documented twice");
    assert_eq!(written, unique);
}

#[test]
fn every_column_says_what_it_is() {
    let names: BTreeSet<&str> = COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(names.len(), COLUMNS.len());
    for column in COLUMNS {
        assert!(column.doc.len() > 3 && !column.doc.contains('|'), "{}: {}", column.name, column.doc);
    }
    let lines = markdown();
    assert_eq!(lines.lines().filter(|line| line.starts_with("| `")).count(), COLUMNS.len() + JOURNAL_ONLY.len());
}

#[cfg(feature = "tables")]
#[test]
fn every_table_has_the_same_columns_in_the_same_order() {
    let schemas = [vec![], vec![bare("b")], vec![full("a"), bare("b")]]
        .map(|records| table::data_frame(&records).unwrap().schema().as_ref().clone());
    assert_eq!(schemas[0], schemas[1]);
    assert_eq!(schemas[0], schemas[2]);
    let names: Vec<&str> = schemas[0].iter_names().map(|name| name.as_str()).collect();
    assert!(names.iter().eq(COLUMNS.iter().map(|column| &column.name)));
    assert_eq!(names[0], "id");
    assert_eq!(names[11..16], ["m", "k", "n", "shape", "regime"]);
}

#[test]
fn lists_become_text_and_what_was_not_measured_nothing() {
    let records = [full("a"), bare("b")];
    let cell = |name: &str, row: usize| {
        let column = COLUMNS.iter().find(|column| column.name == name).unwrap();
        column.cell(&records[row])
    };
    let text = |text: &'static str| Some(Cell::Text(text.into()));
    for (name, measured, not_measured) in [
        ("shape", text("m1024-k512-n18446744073709551615"), text("batch8-m2")),
        ("n", Some(Cell::Count(u64::MAX)), None),
        ("n_windows", Some(Cell::Count(2)), None),
        ("launches", Some(Cell::Count(22)), None),
        ("windows", text("10:123401;12:18446744073709551615"), None),
        ("warnings", text("throttled; hot"), None),
        ("status", text("ok"), text("crashed")),
        ("time_ns", Some(Cell::Number(12_340.125)), None),
        ("converged", Some(Cell::Flag(true)), None),
    ] {
        assert_eq!((cell(name, 0), cell(name, 1)), (measured, not_measured), "{name}");
    }
}

#[test]
fn one_failing_sink_does_not_take_the_others_with_it() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("results.csv/in the way")).unwrap();
    let mut run = run(dir.path(), vec![stays_home("a")]);
    run.header.started = "yesterday".into();
    run.records[0].case.implied = false;
    let written = write_all(&run);
    let others: &[&str] = if cfg!(feature = "tables") { &["results.parquet"] } else { &[] };
    assert_eq!(written.paths, others.iter().map(|name| dir.path().join(name)).collect::<Vec<_>>());
    let errors: Vec<String> = written.errors.iter().map(ToString::to_string).collect();
    assert!(errors[0].contains("results.csv"), "{errors:?}");
    assert!(errors[1].contains("\"yesterday\", is not an RFC 3339 time"), "{errors:?}");
    assert!(written.errors.iter().all(|error| error.source().is_some()));
}

#[test]
fn the_sinks_have_these_names() {
    let names: Vec<&str> = sinks().iter().map(|sink| sink.name()).collect();
    let all = ["csv", "parquet", "torchao", "accelerator"];
    let there = all.into_iter().filter(|&name| cfg!(feature = "tables") || name != "parquet");
    assert_eq!(names, there.collect::<Vec<_>>());
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
    assert_eq!(written.paths[written.paths.len() - 2..], [file("inference"), file("training")]);
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
