//! Rows that are printed as cases finish.

use super::text::{self, four_digits, indented, interval, join_wrapped, nanoseconds, operations, wrap};
use super::{Color, RECIPE_WIDTH, WIDTH, bold, escape, group, paint, programs};
use calorimeter_case::record::{KernelShare, Record, Status, finite};
use calorimeter_case::{Case, Verdict};
use std::borrow::Cow;

const IMPLEMENTATION_WIDTH: usize = 6;
/// Minimum width, for time and speed-up, and maximum width, for readability.
const MIN_WIDTH: usize = 72;
const MAX_WIDTH: usize = 200;

/// Table of finished cases with a heading for each group.
#[derive(Clone, Debug)]
pub struct LiveTable {
    color: Color,
    width: usize,
    last: Option<Case>,
}

impl LiveTable {
    /// Creates an empty table.
    pub fn new(color: Color) -> LiveTable {
        LiveTable { color, width: WIDTH, last: None }
    }

    /// Sets the line width. Narrow tables have fewer columns; other values are shown below the row.
    pub fn with_width(self, width: usize) -> LiveTable {
        LiveTable { width: width.clamp(MIN_WIDTH, MAX_WIDTH), ..self }
    }

    /// Formats a record; `None` for unsupported cases, which only the summary lists.
    pub fn show(&mut self, record: &Record) -> Option<String> {
        if record.outcome.status == Status::Unsupported {
            return None;
        }
        let row = [row(record, self.color, self.width)].into_iter();
        let row = row.chain(memory(record, self.width)).chain(kernels(record, self.width));
        let row = row.collect::<Vec<_>>().join("\n");
        if self.last.as_ref().is_some_and(|last| group(last) == group(&record.case)) {
            return Some(row);
        }
        let gap = if self.last.is_some() { "\n" } else { "" };
        self.last = Some(record.case.clone());
        Some(format!("{gap}{}\n{row}", heading(&record.case, self.color, self.width)))
    }
}

/// Heading of a group: common properties of its cases, and column names.
pub fn heading(case: &Case, color: Color, width: usize) -> String {
    if programs::has_no_buffers(case) {
        return programs::heading(case, color);
    }
    let shape = match case.shape_name.as_str() {
        // The user listed the shape without a name.
        "" | "custom" => case.shape.to_string(),
        name => format!("{} ({name})", case.shape),
    };
    let output = case.output.map_or_else(String::new, |output| format!("-{output}"));
    let Case { workload, element, device, regime, .. } = case;
    let shape = if shape.is_empty() { shape } else { format!("{shape}  ") };
    let group = format!("{workload}  {element}{output}  {device}  {shape}{regime}");
    let columns = LiveCells {
        recipe: match case.mode {
            mode if mode.is_foreign() => "program",
            mode if mode.is_operator() => "kernels of one run",
            _ => "recipe",
        },
        implementation: if case.mode.is_foreign() { "" } else { "impl" },
        time: "time",
        time_interval: "±",
        speedup: "speed-up",
        speedup_interval: "±",
        verdict: "verdict".into(),
        rate: "FLOP/s",
        sqnr: "SQNR",
        weights: if case.mode.is_operator() { "GB/s" } else { "weights" },
    };
    let names = if is_narrow(width) { columns.line(width) } else { columns.line(width) + "  stopwatch" };
    format!("{}\n{}", bold(&group, color), bold(&names, color))
}

/// Formats a case: a line of values if measured, otherwise status and reason.
///
/// The interval of a value is half its width, in percent of the value. Rates are FLOP/s, or GB/s where marked. SQNR is
/// in dB, `exact` if the output equals the reference. `-` was not measured. `UNCLEAR` is the verdict INCONCLUSIVE.
/// Operators have no recipe and weights; their columns show the kernels of one run and its GB/s. The stopwatch is
/// followed by the share of the binding peak, `compute` or `memory`, and by the bytes moved to and from device memory,
/// if its counters were read.
pub fn row(record: &Record, color: Color, width: usize) -> String {
    if record.outcome.status == Status::Ok && programs::has_no_buffers(&record.case) {
        return programs::row(record, width);
    }
    let recipe = match record.case.mode {
        // Foreign work is named by its implementation.
        mode if mode.is_foreign() => record.case.implementation.to_string(),
        mode if mode.is_operator() => kernel_count(record),
        _ => record.case.variant(),
    };
    let recipe = escape(&recipe);
    let too_long = recipe.chars().count() > RECIPE_WIDTH;
    let cell = if too_long { "" } else { &recipe };
    let row = match record.outcome.status {
        Status::Ok => measured(record, cell, color, width),
        _ => not_measured(record, cell, color, width),
    };
    if too_long { format!("{recipe}\n{row}") } else { row }
}

/// Implementation, unless the row is named by it.
fn implementation(case: &Case) -> Cow<'static, str> {
    if case.mode.is_foreign() { "".into() } else { escape(case.implementation.name().as_str()) }
}

/// Number of kernels, if counted, and the fusion state.
fn kernel_count(record: &Record) -> String {
    let count = record.execution.kernel_launches.map_or("-".into(), |launches| format!("{launches:.0}"));
    record.execution.fusion_state.iter().fold(count, |text, state| format!("{text} {}", state.as_str()))
}

fn measured(record: &Record, recipe: &str, color: Color, width: usize) -> String {
    let cells = LiveCells {
        recipe,
        implementation: &implementation(&record.case),
        time: &record.time.time_ns.map_or("-".into(), |time| nanoseconds(time.median)),
        time_interval: &record.time.time_ns.and_then(|t| interval(t.median, t.lo, t.hi)).unwrap_or_default(),
        speedup: &record.speedup.as_ref().map_or("-".into(), |s| format!("{}x", four_digits(s.ratio))),
        speedup_interval: &record.speedup.as_ref().and_then(|s| interval(s.ratio, s.lo, s.hi)).unwrap_or_default(),
        verdict: record.speedup.as_ref().map_or("".into(), |s| verdict(s.verdict, color)),
        rate: &rate(record),
        sqnr: &sqnr(record),
        weights: &match (record.case.mode.is_operator(), record.rates.gbps, record.weights.weight_bytes) {
            (true, Some(gbps), _) => four_digits(gbps),
            (false, _, Some(bytes)) => text::memory(bytes),
            _ => "-".into(),
        },
    };
    let roof = record.rates.roofline.as_ref().map(|roof| format!("{:.0} % {}", roof.percent, roof.bound));
    let moved = record.traffic.map(|traffic| format!("moves {}", text::memory(traffic.bytes() as u64)));
    let figures = if is_narrow(width) { cells.narrow_values(record) } else { Vec::new() };
    let mut notes: Vec<&str> = figures.iter().map(String::as_str).collect();
    notes.extend(record.execution.stopwatch.as_deref().into_iter().chain(roof.as_deref()));
    notes.extend(moved.as_deref());
    let in_turns = interleaved(record);
    notes.extend(in_turns.as_deref());
    if record.time.launch_bound == Some(true) {
        notes.push("launch-bound");
    }
    if record.time.converged == Some(false) {
        notes.push("not converged");
    }
    let line = cells.line(width);
    let taken = line.chars().count() - cells.verdict.invisible;
    let joined = notes.join(", ");
    let joined = escape(&joined);
    if notes.is_empty() {
        line
    } else if !is_narrow(width) && taken + 2 + joined.chars().count() <= width {
        format!("{line}  {joined}")
    } else {
        format!("{line}\n{}", join_wrapped(&notes, 4, width))
    }
}

/// Interleaved time and speed-up, for cases that were throttled and therefore timed in isolation.
fn interleaved(record: &Record) -> Option<String> {
    let time = nanoseconds(record.time.in_turns_ns.as_ref()?.median);
    let ratio = record.speedup.as_ref().and_then(|speedup| speedup.in_turns.as_ref());
    let ratio = ratio.map(|ratio| format!(", {}x", four_digits(ratio.median))).unwrap_or_default();
    Some(format!("throttled; timed in isolation (interleaved: {time}{ratio})"))
}

/// Kernels of a launch, if recorded, longest first.
fn kernels(record: &Record, width: usize) -> Vec<String> {
    const MAX_KERNELS: usize = 8;
    let line = |kernel: &KernelShare| {
        let KernelShare { name, calls, nanos, share } = kernel;
        let figures = format!("    {:>5.1} %  {:>8}  {calls:>5.1} x  ", 100.0 * share, nanoseconds(*nanos));
        let room = width.saturating_sub(figures.chars().count());
        figures + &escape(name).chars().take(room).collect::<String>()
    };
    let mut lines: Vec<String> = record.profile.kernels.iter().take(MAX_KERNELS).map(line).collect();
    if record.profile.kernels.len() > MAX_KERNELS {
        lines.push(format!("    and {} more kernels", record.profile.kernels.len() - MAX_KERNELS));
    }
    lines
}

/// Memory peaks, if recorded.
fn memory(record: &Record, width: usize) -> Option<String> {
    let memory = record.footprint.memory.as_ref()?;
    let peak = |bytes: Option<u64>, what: &str| {
        bytes.map(|bytes| format!("{}{} {what}", memory.bound.prefix(), text::memory(bytes)))
    };
    let peaks = [
        peak(memory.peak_allocated, "allocated"),
        peak(memory.peak_active, "active"),
        peak(memory.peak_reserved, "reserved"),
        memory.saving.map(|saving| {
            let sign = memory.saving_bound.prefix();
            match 100.0 * (1.0 / saving - 1.0) {
                more if more >= 0.05 => format!("{more:.1} % more than the baseline"),
                less if less <= -0.05 => format!("{sign}{:.1} % less than the baseline", -less),
                _ => "equal to the baseline".into(),
            }
        }),
    ];
    let peaks = peaks.into_iter().flatten().collect::<Vec<_>>().join(", ");
    Some(indented(&format!("peak memory: {peaks}"), 4, width))
}

fn not_measured(record: &Record, recipe: &str, color: Color, width: usize) -> String {
    let head = format!("{recipe:RECIPE_WIDTH$} {:IMPLEMENTATION_WIDTH$}  ", implementation(&record.case));
    let word = record.outcome.status.as_str();
    let status = paint(word, "33", color);
    let Some(reason) = &record.outcome.reason else { return format!("{head}{status}") };
    let room = width.saturating_sub(head.chars().count() + word.len() + 2);
    match wrap(reason, room.max(1)).as_slice() {
        [line] => format!("{head}{status}: {line}"),
        _ => format!("{head}{status}\n{}", indented(reason, 4, width)),
    }
}

/// Columns of a measured row without the notes. Only the verdict is colored.
struct LiveCells<'a> {
    recipe: &'a str,
    implementation: &'a str,
    time: &'a str,
    time_interval: &'a str,
    speedup: &'a str,
    speedup_interval: &'a str,
    verdict: PaintedText,
    rate: &'a str,
    sqnr: &'a str,
    weights: &'a str,
}

impl LiveCells<'_> {
    fn line(&self, width: usize) -> String {
        let verdict_width = 7 + self.verdict.invisible;
        let line = format!(
            "{:RECIPE_WIDTH$} {:IMPLEMENTATION_WIDTH$}  {:>8} {:<6}  {:>8} {:<6} {:verdict_width$}",
            self.recipe,
            self.implementation,
            self.time,
            self.time_interval,
            self.speedup,
            self.speedup_interval,
            self.verdict.text,
        );
        if is_narrow(width) {
            return line.trim_end().to_owned();
        }
        format!("{line}  {:>9}  {:>5}  {:>9}", self.rate, self.sqnr, self.weights)
    }

    /// Values shown below a narrow line, in words.
    fn narrow_values(&self, record: &Record) -> Vec<String> {
        let is_operator = record.case.mode.is_operator();
        let rate = if self.rate.ends_with("/s") { self.rate.to_owned() } else { format!("{}FLOP/s", self.rate) };
        let weights = format!("{}{}", if is_operator { "" } else { "weights " }, self.weights);
        let weights = if is_operator { weights + " GB/s" } else { weights };
        let figures = [(self.rate, rate.clone()), (self.sqnr, format!("SQNR {}", self.sqnr)), (self.weights, weights)];
        let told = figures.into_iter().filter(|(cell, _)| *cell != "-").map(|(_, told)| told);
        told.collect()
    }
}

/// True if the line is too narrow for all columns.
fn is_narrow(width: usize) -> bool {
    const COLUMNS: usize = 109;
    width < COLUMNS
}

/// Text with escape codes; they have zero width.
struct PaintedText {
    text: String,
    invisible: usize,
}

impl From<&str> for PaintedText {
    fn from(text: &str) -> PaintedText {
        PaintedText { text: text.into(), invisible: 0 }
    }
}

fn verdict(verdict: Verdict, color: Color) -> PaintedText {
    let word = verdict.as_str();
    let text = match verdict {
        Verdict::Faster => paint(word, "32", color),
        Verdict::Slower => paint(word, "31", color),
        Verdict::Same | Verdict::Unclear => word.into(),
    };
    PaintedText { invisible: text.len() - word.len(), text }
}

fn rate(record: &Record) -> String {
    match (record.rates.tflops.and_then(finite), record.rates.gbps.and_then(finite)) {
        (Some(tflops), _) if tflops > 0.0 => operations(tflops),
        // Shown in its own column.
        _ if record.case.mode.is_operator() => "-".into(),
        (_, Some(gbps)) => format!("{} GB/s", four_digits(gbps)),
        _ => "-".into(),
    }
}

pub(super) fn sqnr(record: &Record) -> String {
    match &record.accuracy {
        Some(accuracy) if accuracy.is_exact() => "exact".into(),
        Some(accuracy) => accuracy.sqnr_db.and_then(finite).map_or("-".into(), |db| format!("{db:.1}")),
        None => "-".into(),
    }
}
