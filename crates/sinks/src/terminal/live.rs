//! Rows that can be printed as they come.

use super::text::{self, four_digits, indented, interval, listed, nanoseconds, operations, wrap};
use super::{Color, RECIPE_WIDTH, WIDTH, bold, group, paint};
use calorimeter_case::record::{KernelShare, Record, Status, finite};
use calorimeter_case::{Case, Verdict};

const IMPLEMENTATION_WIDTH: usize = 6;
/// What the time and the speed-up take, and what a line is still read at.
const NARROWEST: usize = 72;
const WIDEST: usize = 200;

/// Prints a heading whenever the group changes.
#[derive(Clone, Debug)]
pub struct LiveTable {
    color: Color,
    width: usize,
    last: Option<Case>,
}

impl LiveTable {
    /// A table with nothing in it yet.
    pub fn new(color: Color) -> LiveTable {
        LiveTable { color, width: WIDTH, last: None }
    }

    /// The same for lines of so many characters: on narrow terminals fewer figures stand in columns, and the others below.
    pub fn as_wide_as(self, width: usize) -> LiveTable {
        LiveTable { width: width.clamp(NARROWEST, WIDEST), ..self }
    }

    /// The lines to print for this record; none for what does not exist here, of which the summary tells once.
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

/// The two lines above a group: what its cases have in common, and the names of the columns.
pub fn heading(case: &Case, color: Color, width: usize) -> String {
    let shape = match case.shape_name.as_str() {
        // It was written down as it is.
        "" | "custom" => case.shape.to_string(),
        name => format!("{} ({name})", case.shape),
    };
    let output = case.output.map_or_else(String::new, |output| format!("-{output}"));
    let Case { workload, element, device, regime, .. } = case;
    let shape = if shape.is_empty() { shape } else { format!("{shape}  ") };
    let group = format!("{workload}  {element}{output}  {device}  {shape}{regime}");
    let columns = Cells {
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

/// One case. A measured one is a line of figures; another one says its status and the reason.
///
/// The interval of a figure is half its width, in percent of the figure. Rates are FLOP/s, or GB/s where it is said. SQNR
/// is in dB, `exact` where the output equals the reference. `-` was not measured. `UNCLEAR` is the verdict INCONCLUSIVE.
/// An operator has no recipe and no weights: there stand how many kernels one run takes and its GB/s.
/// After the stopwatch comes the share of the roof that binds: `compute` or `memory`; then what went to and from the
/// device's memory, where its counters were read.
pub fn row(record: &Record, color: Color, width: usize) -> String {
    let recipe = match record.case.mode {
        // What ran is told by its name.
        mode if mode.is_foreign() => record.case.implementation.to_string(),
        mode if mode.is_operator() => launched(record),
        _ => record.case.variant(),
    };
    let too_long = recipe.chars().count() > RECIPE_WIDTH;
    let cell = if too_long { "" } else { &recipe };
    let row = match record.outcome.status {
        Status::Ok => measured(record, cell, color, width),
        _ => not_measured(record, cell, color, width),
    };
    if too_long { format!("{recipe}\n{row}") } else { row }
}

/// The implementation, where it is not what the row is called by.
fn implementation(case: &Case) -> &'static str {
    if case.mode.is_foreign() { "" } else { case.implementation.name().as_str() }
}

/// The number of kernels, where they were counted, and whether they are fewer than unfused.
fn launched(record: &Record) -> String {
    let count = record.execution.kernel_launches.map_or("-".into(), |launches| format!("{launches:.0}"));
    record.execution.fusion_state.iter().fold(count, |text, state| format!("{text} {}", state.as_str()))
}

fn measured(record: &Record, recipe: &str, color: Color, width: usize) -> String {
    let cells = Cells {
        recipe,
        implementation: implementation(&record.case),
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
    let figures = if is_narrow(width) { cells.below(record) } else { Vec::new() };
    let mut notes: Vec<&str> = figures.iter().map(String::as_str).collect();
    notes.extend(record.execution.stopwatch.as_deref().into_iter().chain(roof.as_deref()));
    notes.extend(moved.as_deref());
    let in_turns = in_turns(record);
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
    if notes.is_empty() {
        line
    } else if !is_narrow(width) && taken + 2 + joined.chars().count() <= width {
        format!("{line}  {joined}")
    } else {
        format!("{line}\n{}", listed(&notes, 4, width))
    }
}

/// What the figures would be beside the other cases, where power or heat held the device back and each was timed alone.
fn in_turns(record: &Record) -> Option<String> {
    let time = nanoseconds(record.time.in_turns_ns.as_ref()?.median);
    let ratio = record.speedup.as_ref().and_then(|speedup| speedup.in_turns.as_ref());
    let ratio = ratio.map(|ratio| format!(", {}x", four_digits(ratio.median))).unwrap_or_default();
    Some(format!("held back, so timed alone; in turns {time}{ratio}"))
}

/// The kernels of a launch where they were recorded, the longest first.
fn kernels(record: &Record, width: usize) -> Vec<String> {
    const MOST: usize = 8;
    let line = |kernel: &KernelShare| {
        let KernelShare { name, calls, nanos, share } = kernel;
        let figures = format!("    {:>5.1} %  {:>8}  {calls:>5.1} x  ", 100.0 * share, nanoseconds(*nanos));
        let room = width.saturating_sub(figures.chars().count());
        figures + &name.chars().take(room).collect::<String>()
    };
    let mut lines: Vec<String> = record.profile.kernels.iter().take(MOST).map(line).collect();
    if record.profile.kernels.len() > MOST {
        lines.push(format!("    and {} more kernels", record.profile.kernels.len() - MOST));
    }
    lines
}

/// The peaks of its memory where it was followed.
fn memory(record: &Record, width: usize) -> Option<String> {
    let memory = record.footprint.memory.as_ref()?;
    let peak = |bytes: Option<u64>, what: &str| {
        bytes.map(|bytes| format!("{}{} {what}", memory.bound.sign(), text::memory(bytes)))
    };
    let peaks = [
        peak(memory.peak_allocated, "allocated"),
        peak(memory.peak_active, "active"),
        peak(memory.peak_reserved, "reserved"),
        memory.saving.map(|saving| {
            let sign = memory.saving_bound.sign();
            match 100.0 * (1.0 / saving - 1.0) {
                more if more >= 0.05 => format!("{more:.1} % more than the baseline"),
                less if less <= -0.05 => format!("{sign}{:.1} % less than the baseline", -less),
                _ => "as much as the baseline".into(),
            }
        }),
    ];
    let peaks = peaks.into_iter().flatten().collect::<Vec<_>>().join(", ");
    Some(indented(&format!("memory at its peak: {peaks}"), 4, width))
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

/// The columns of a measured row up to the notes. The verdict comes with its color, the rest is plain.
struct Cells<'a> {
    recipe: &'a str,
    implementation: &'a str,
    time: &'a str,
    time_interval: &'a str,
    speedup: &'a str,
    speedup_interval: &'a str,
    verdict: Painted,
    rate: &'a str,
    sqnr: &'a str,
    weights: &'a str,
}

impl Cells<'_> {
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

    /// What stands below a narrow line, in words.
    fn below(&self, record: &Record) -> Vec<String> {
        let is_operator = record.case.mode.is_operator();
        let rate = if self.rate.ends_with("/s") { self.rate.to_owned() } else { format!("{}FLOP/s", self.rate) };
        let weights = format!("{}{}", if is_operator { "" } else { "weights " }, self.weights);
        let weights = if is_operator { weights + " GB/s" } else { weights };
        let figures = [(self.rate, rate.clone()), (self.sqnr, format!("SQNR {}", self.sqnr)), (self.weights, weights)];
        let told = figures.into_iter().filter(|(cell, _)| *cell != "-").map(|(_, told)| told);
        told.collect()
    }
}

/// Whether all columns are wider than this.
fn is_narrow(width: usize) -> bool {
    const COLUMNS: usize = 109;
    width < COLUMNS
}

/// Text with characters that take no room.
struct Painted {
    text: String,
    invisible: usize,
}

impl From<&str> for Painted {
    fn from(text: &str) -> Painted {
        Painted { text: text.into(), invisible: 0 }
    }
}

fn verdict(verdict: Verdict, color: Color) -> Painted {
    let word = verdict.as_str();
    let text = match verdict {
        Verdict::Faster => paint(word, "32", color),
        Verdict::Slower => paint(word, "31", color),
        Verdict::Same | Verdict::Unclear => word.into(),
    };
    Painted { invisible: text.len() - word.len(), text }
}

fn rate(record: &Record) -> String {
    match (record.rates.tflops.and_then(finite), record.rates.gbps.and_then(finite)) {
        (Some(tflops), _) if tflops > 0.0 => operations(tflops),
        // A column of its own has it.
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
