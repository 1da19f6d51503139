//! Records and journals shared by the tests.

use calorimeter_case::{Case, Export, FusionModel, PublishedCounts, TuningLevel, Verdict};
use calorimeter_sinks::journal::{Header, Resumed, RunSummary};
use calorimeter_sinks::record::{
    Accuracy, Estimate, Execution, Footprint, FusionState, KernelShare, LaunchTimes, Outcome, PeakBound, PeakKind,
    PeakMemory, Preparation, Profile, Rates, Record, Roofline, RooflineBound, Rotation, Scatter, Speedup, Status,
    Telemetry, TelemetrySample, Time, Traffic, Tuning, Weights, WindowRecord,
};
use calorimeter_sinks::{SeriesStore, SinkInput};
use std::path::Path;

pub(crate) fn header() -> Header {
    Header {
        run_id: "r1".into(),
        started: "2026-03-09T07:05:01+02:00".into(),
        argv: vec!["calorimeter".into(), "run".into(), "a.yml".into()],
        config: serde_json::json!({ "benchmark_mode": "inference", "precision": 0.01 }),
        config_fingerprint: "abc".into(),
        plan_cases: Some(3),
        environment: serde_json::json!({ "gpu": "none" }),
        output_dir: None,
    }
}

pub(crate) fn resumed() -> Resumed {
    Resumed { time: "2026-03-09T08:00:00+02:00".into(), argv: vec!["calorimeter".into()], environment: None }
}

pub(crate) fn summary(interrupted: bool) -> RunSummary {
    RunSummary {
        finished: "2026-03-09T09:00:00+02:00".into(),
        interrupted,
        counts: [(Status::Ok, 2)].into(),
        notes: vec![],
        suite: vec![],
    }
}

/// Record with every field set, and text that needs escaping.
pub(crate) fn full(id: &str) -> Record {
    Record {
        speedup: Some(Speedup {
            vs: "base".into(),
            ratio: 1.7,
            lo: Some(1.6),
            hi: Some(1.8),
            verdict: Verdict::Faster,
            margin: Some(0.02),
            rounds_needed: Some(90),
            in_turns: Some(Box::new(Estimate { median: 1.9, lo: Some(1.8), hi: Some(2.0) })),
        }),
        accuracy: Some(Box::new(Accuracy {
            sqnr_db: Some(44.1),
            rel_l2: Some(1e-7),
            max_abs: Some(0.5),
            max_rel: Some(0.25),
            cosine: Some(0.999),
            kernel_rel_l2: Some(0.0),
        })),
        telemetry: Some(Box::new(Telemetry {
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
            joules_lo: Some(0.2375),
            joules_hi: Some(0.2625),
            idle_power_w: Some(71.5),
            cycles: Some(24_000.0),
            instructions: Some(48_000.0),
            cache_misses: Some(12.0),
            repeated_rounds: 1,
        })),
        traffic: Some(Traffic { read_bytes: 1e6, written_bytes: 2.5e5 }),
        outcome: Outcome {
            reason: Some("a \"reason\",\nover two lines; with µ and ±".into()),
            started: Some("2026-03-09T07:05:01+02:00".into()),
            ended: Some("2026-03-09T07:05:09+02:00".into()),
            stderr_tail: Some("warning: \u{1b}[33mdriver\u{1b}[0m\r\n".into()),
            ..Status::Ok.into()
        },
        warnings: ["throttled".into(), "hot".into()].into_iter().collect(),
        execution: Execution {
            stopwatch: Some("cupti".into()),
            kernel: Some("gemm<bf16, 128>".into()),
            kernel_launches: Some(2.5),
            tf32: true,
            fusion_state: Some(FusionState::NotFused),
            autotune: vec!["m1024 bf16: tiled".into(), "m512 bf16: plane".into()],
            autotune_level: Some(TuningLevel::Quick),
            rotation: Some(Rotation { sets: 3, bytes: 1 << 24, cache_bytes: Some(1 << 25) }),
        },
        time: Time {
            time_ns: Some(Estimate { median: 12_340.125, lo: Some(0.1 + 0.2), hi: Some(1e300) }),
            windows: vec![
                WindowRecord { launches: 10, nanos: 123_401, clock_mhz: Some(1_755), held_back: true },
                WindowRecord { launches: 12, nanos: u64::MAX, clock_mhz: Some(1_740), held_back: false },
            ],
            iterations_ns: vec![12_340, u64::MAX],
            launch_ns: Some(Box::new(LaunchTimes {
                count: 1000,
                p50: Some(12_345.0),
                p95: Some(12_900.5),
                p99: Some(19_000.0),
            })),
            converged: Some(true),
            enqueue_ns: Some(1e16),
            launch_bound: Some(false),
            of_processes_ns: vec![12_300.0, 12_380.5],
            of_places_ns: vec![12_290.0, 12_410.25],
            in_turns_ns: Some(Box::new(Estimate { median: 11_980.5, lo: Some(11_950.0), hi: Some(12_010.25) })),
            with_gaps_ns: Some(15_425.25),
            busy: Some(0.8),
            clock_mhz: Some(1_755.0),
            held_back: Some(0.5),
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
            roofline: Some(Box::new(Roofline {
                bound: RooflineBound::Memory,
                percent: 85.5,
                against: Some(PeakKind::Burst),
                compute_percent: Some(9.0e-5),
                memory_percent: Some(85.5),
                peak_tflops: Some(800.0),
                peak_dtype: Some("bf16".into()),
                burst_tflops: Some(850.5),
                peak_gbps: Some(4800.0),
            })),
        },
        weights: Weights {
            weight_bytes: Some(1 << 20),
            baseline_weight_bytes: Some(1 << 21),
            quantise_ns: Some(2_000_000),
        },
        footprint: Footprint {
            peak_bytes: Some(1 << 30),
            memory: Some(Box::new(PeakMemory {
                peak_allocated: Some(1 << 30),
                peak_active: Some(1 << 31),
                peak_reserved: Some(1 << 32),
                peak_above_inputs: Some(4096),
                bound: PeakBound::AtLeast,
                peak_at_most: Some((1 << 30) + 512),
                saving: Some(1.25),
                saving_bound: PeakBound::Exact,
            })),
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
                tokens: Some(5),
                flops: Some(1),
                bytes: Some(2),
                published: Some(Box::new(PublishedCounts { flops: Some(3), bytes: Some(4) })),
                fusion: Some(Box::new(FusionModel { operators: vec!["a".into()], unfused_bytes: 9, fused_bytes: 5 })),
                memory_bytes: Some(3),
                implied: true,
                scaling: Some("e4m3 per row".into()),
                compile_mode: Some("default".into()),
                profiler: true,
                memory_profiler: true,
                percentiles: true,
                peak_memory: true,
                export: Some(Box::new(Export {
                    entry: 3,
                    csv_path: Some("../csv".into()),
                    metrics_dir: Some("../report".into()),
                    benchmark: Some("{}".into()),
                })),
                flashinfer_workload: Some("{}".into()),
            },
            Status::Ok,
        )
    }
}

/// Full record without an export, so that no directory outside the run is written.
pub(crate) fn without_export(id: &str) -> Record {
    let record = full(id);
    Record { case: Case { export: None, ..record.case }, ..record }
}

pub(crate) fn bare(id: &str) -> Record {
    Record::new(Case { id: id.into(), shape: [("batch", 8), ("m", 2)].into(), ..Case::default() }, Status::Crashed)
}

pub(crate) fn run(dir: &Path, records: Vec<Record>) -> SinkInput {
    SinkInput {
        dir: dir.into(),
        output_dir: dir.join("out"),
        header: header(),
        records,
        stored: SeriesStore::default(),
    }
}

/// Records without their time series.
pub(crate) fn without_series(records: &[Record]) -> Vec<Record> {
    let slim = |record: &Record| {
        let mut record = record.clone();
        record.take_series();
        record
    };
    records.iter().map(slim).collect()
}
