//! The records as one table, one row per case: the form in which other programs join, group and plot them.
//!
//! Every table has the same columns in the same order, whatever its records hold, so that tables of different runs can be
//! put under one another. What was not measured is null.

use calorimeter_case::Name;
use polars::prelude::{Column, DataFrame, NamedFrom, PolarsResult, Series};

use calorimeter_case::record::{Accuracy, Estimate, Record, Speedup, Telemetry, TelemetrySample, finite};

/// Builds the table. Lists become text: axes `m1024-k512-n256`, windows `launches:nanos;…`, warnings `…; …`.
pub fn data_frame(records: &[Record]) -> PolarsResult<DataFrame> {
    let rows = Rows(records);
    let columns = vec![
        rows.text("id", |r| Some(&r.case.id)),
        rows.text("mode", |r| Some(r.case.mode.name())),
        rows.text("name", |r| Some(r.case.name.as_str()).filter(|name| !name.is_empty())),
        rows.text("workload", |r| Some(r.case.workload.as_str())),
        rows.text("recipe", |r| Some(r.case.recipe.as_str())),
        rows.text("sparsity", |r| r.case.sparsity.map(Name::as_str)),
        rows.written("implementation", |r| Some(r.case.implementation.to_string())),
        rows.written("device", |r| Some(r.case.device.to_string())),
        rows.written("dtype", |r| Some(r.case.element.to_string())),
        rows.written("output_dtype", |r| r.case.output.map(|output| output.to_string())),
        rows.text("shape_name", |r| Some(&r.case.shape_name)),
        rows.count("m", |r| r.case.shape.get("m")),
        rows.count("k", |r| r.case.shape.get("k")),
        rows.count("n", |r| r.case.shape.get("n")),
        rows.written("shape", |r| Some(r.case.shape.to_string())),
        rows.written("regime", |r| Some(r.case.regime.to_string())),
        rows.count("flops", |r| r.case.flops),
        rows.count("bytes", |r| r.case.bytes),
        rows.count("published_flops", |r| r.case.published?.flops),
        rows.count("published_bytes", |r| r.case.published?.bytes),
        rows.count("unfused_bytes", |r| r.case.fusion.as_ref().map(|model| model.unfused_bytes)),
        rows.count("fused_bytes", |r| r.case.fusion.as_ref().map(|model| model.fused_bytes)),
        rows.count("memory_bytes", |r| r.case.memory_bytes),
        rows.number("counted_read_bytes", |r| r.traffic.map(|traffic| traffic.read_bytes)),
        rows.number("counted_written_bytes", |r| r.traffic.map(|traffic| traffic.written_bytes)),
        rows.flag("implied", |r| Some(r.case.implied)),
        rows.text("compile_mode", |r| r.case.compile_mode.as_deref()),
        rows.flag("profiler", |r| Some(r.case.profiler)),
        rows.flag("memory_profiler", |r| Some(r.case.memory_profiler)),
        rows.text("status", |r| Some(r.outcome.status.as_str())),
        rows.text("reason", |r| r.outcome.reason.as_deref()),
        rows.text("stopwatch", |r| r.execution.stopwatch.as_deref()),
        rows.text("kernel", |r| r.execution.kernel.as_deref()),
        rows.number("kernel_launches", |r| r.execution.kernel_launches),
        rows.text("fusion_state", |r| r.execution.fusion_state.as_deref()),
        rows.written("autotune", |r| (!r.execution.autotune.is_empty()).then(|| r.execution.autotune.join("; "))),
        rows.count("rotation_sets", |r| r.execution.rotation.map(|rotation| rotation.sets.into())),
        rows.count("rotation_bytes", |r| r.execution.rotation.map(|rotation| rotation.bytes)),
        rows.number("time_ns", |r| time(r).map(|t| t.median)),
        rows.number("time_ns_lo", |r| time(r)?.lo),
        rows.number("time_ns_hi", |r| time(r)?.hi),
        rows.count("n_windows", |r| measured(r).map(|r| r.time.windows.len() as u64)),
        rows.count("launches", |r| measured(r).map(|r| r.time.windows.iter().map(|w| u64::from(w.launches)).sum())),
        rows.written("windows", |r| measured(r).map(windows)),
        rows.flag("converged", |r| r.time.converged),
        rows.number("time_ns_min", |r| r.time.scatter.map(|scatter| scatter.min)),
        rows.number("time_ns_p05", |r| r.time.scatter.map(|scatter| scatter.p05)),
        rows.number("time_ns_p95", |r| r.time.scatter.map(|scatter| scatter.p95)),
        rows.number("time_ns_mad", |r| r.time.scatter.map(|scatter| scatter.mad)),
        rows.count("outliers", |r| r.time.scatter.map(|scatter| scatter.outliers.into())),
        rows.number("autocorrelation", |r| r.time.scatter?.autocorrelation),
        rows.number("enqueue_ns", |r| r.time.enqueue_ns),
        rows.flag("launch_bound", |r| r.time.launch_bound),
        rows.text("speedup_vs", |r| speedup(r).map(|s| &*s.vs)),
        rows.number("speedup", |r| speedup(r).map(|s| s.ratio)),
        rows.number("speedup_lo", |r| speedup(r)?.lo),
        rows.number("speedup_hi", |r| speedup(r)?.hi),
        rows.text("verdict", |r| speedup(r).map(|s| s.verdict.as_str())),
        rows.number("tflops", |r| r.rates.tflops),
        rows.number("gbps", |r| r.rates.gbps),
        rows.text("roofline_bound", |r| r.rates.roofline.as_ref().map(|roof| roof.bound.as_str())),
        rows.number("roofline_percent", |r| r.rates.roofline.as_ref().map(|roof| roof.percent)),
        rows.number("compute_percent", |r| r.rates.roofline.as_ref()?.compute_percent),
        rows.number("memory_percent", |r| r.rates.roofline.as_ref()?.memory_percent),
        rows.number("sqnr_db", |r| accuracy(r).sqnr_db),
        rows.number("rel_l2", |r| accuracy(r).rel_l2),
        rows.number("max_abs", |r| accuracy(r).max_abs),
        rows.number("cosine", |r| accuracy(r).cosine),
        rows.number("kernel_rel_l2", |r| accuracy(r).kernel_rel_l2),
        rows.count("weight_bytes", |r| r.weights.weight_bytes),
        rows.count("baseline_weight_bytes", |r| r.weights.baseline_weight_bytes),
        rows.count("quantise_ns", |r| r.weights.quantise_ns),
        rows.count("peak_bytes", |r| r.footprint.peak_bytes),
        rows.count("peak_active_bytes", |r| r.footprint.memory?.peak_active),
        rows.count("peak_reserved_bytes", |r| r.footprint.memory?.peak_reserved),
        rows.count("peak_above_inputs", |r| r.footprint.memory?.peak_above_inputs),
        rows.text("memory_bound", |r| Some(r.footprint.memory.as_ref()?.bound.as_str())),
        rows.number("memory_saving", |r| r.footprint.memory?.saving),
        rows.text("memory_saving_bound", |r| {
            r.footprint.memory.filter(|memory| memory.saving.is_some()).map(|m| m.saving_bound.as_str())
        }),
        rows.number("clock_mhz", |r| middle(r, |sample| sample.clock_mhz.map(f64::from))),
        rows.number("memory_clock_mhz", |r| middle(r, |sample| sample.memory_clock_mhz.map(f64::from))),
        rows.number("power_w", |r| middle(r, |sample| sample.power_w)),
        rows.number("temperature_c", |r| middle(r, |sample| sample.temperature_c)),
        rows.written("throttle", |r| r.telemetry.as_ref().and_then(throttle)),
        rows.number("joules", |r| r.telemetry.as_ref()?.joules),
        rows.number("cycles", |r| r.telemetry.as_ref()?.cycles),
        rows.number("instructions", |r| r.telemetry.as_ref()?.instructions),
        rows.number("cache_misses", |r| r.telemetry.as_ref()?.cache_misses),
        rows.text("trace", |r| r.profile.trace.as_deref()),
        rows.text("memory_profile", |r| r.footprint.memory_profile.as_deref()),
        rows.count("prime_ns", |r| r.preparation.prime_ns),
        rows.count("tuning_ns", |r| r.preparation.tuning.map(|tuning| tuning.nanos)),
        rows.count("tuning_events", |r| r.preparation.tuning.map(|tuning| tuning.events)),
        rows.count("granularity_ns", |r| r.preparation.granularity_ns),
        rows.count("empty_window_ns", |r| r.preparation.empty_window_ns),
        rows.text("stderr_tail", |r| r.outcome.stderr_tail.as_deref()),
        rows.written("warnings", |r| (!r.outcome.warnings.is_empty()).then(|| r.outcome.warnings.join("; "))),
    ];
    DataFrame::new(records.len(), columns)
}

/// One column at a time: a name and where its cells come from.
struct Rows<'a>(&'a [Record]);

impl<'a> Rows<'a> {
    fn text(&self, name: &str, cell: impl Fn(&'a Record) -> Option<&'a str>) -> Column {
        let cells: Vec<Option<&str>> = self.0.iter().map(cell).collect();
        Series::new(name.into(), cells).into()
    }

    fn written(&self, name: &str, cell: impl Fn(&'a Record) -> Option<String>) -> Column {
        let cells: Vec<Option<String>> = self.0.iter().map(cell).collect();
        Series::new(name.into(), cells).into()
    }

    fn count(&self, name: &str, cell: impl Fn(&'a Record) -> Option<u64>) -> Column {
        let cells: Vec<Option<u64>> = self.0.iter().map(cell).collect();
        Series::new(name.into(), cells).into()
    }

    fn number(&self, name: &str, cell: impl Fn(&'a Record) -> Option<f64>) -> Column {
        let cells: Vec<Option<f64>> = self.0.iter().map(|record| cell(record).and_then(finite)).collect();
        Series::new(name.into(), cells).into()
    }

    fn flag(&self, name: &str, cell: impl Fn(&'a Record) -> Option<bool>) -> Column {
        let cells: Vec<Option<bool>> = self.0.iter().map(cell).collect();
        Series::new(name.into(), cells).into()
    }
}

fn time(record: &Record) -> Option<&Estimate> {
    record.time.time_ns.as_ref()
}

fn speedup(record: &Record) -> Option<&Speedup> {
    record.speedup.as_ref()
}

fn accuracy(record: &Record) -> Accuracy {
    record.accuracy.unwrap_or_default()
}

fn measured(record: &Record) -> Option<&Record> {
    (!record.time.windows.is_empty()).then_some(record)
}

fn windows(record: &Record) -> String {
    let windows: Vec<String> = record.time.windows.iter().map(|w| format!("{}:{}", w.launches, w.nanos)).collect();
    windows.join(";")
}

/// The middle one of a case's samples.
fn middle(record: &Record, of: impl Fn(&TelemetrySample) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = record.telemetry.as_ref()?.samples.iter().filter_map(of).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Every reason that was seen, once.
fn throttle(telemetry: &Telemetry) -> Option<String> {
    let mut reasons: Vec<&str> = telemetry.samples.iter().flat_map(|s| s.throttle.iter().map(String::as_str)).collect();
    reasons.sort_unstable();
    reasons.dedup();
    (!reasons.is_empty()).then(|| reasons.join(", "))
}
