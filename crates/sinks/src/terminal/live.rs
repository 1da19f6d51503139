//! Tables of measured groups.

use super::column::{
    CellStyle, IMPORTANT, REQUIRED, TextColumn, drop_columns, header_line, important_width, line_width, row_line,
};
use super::legend::{Legend, Term};
use super::text::{self, four_digits, indented, interval, nanoseconds, operations, wrap};
use super::{Color, RECIPE_WIDTH, WIDTH, bold, escape, group, paint, programs};
use calorimeter_case::Case;
use calorimeter_case::record::{KernelShare, Record, Status, finite};

/// Minimum width, for time and speed-up, and maximum width, for readability.
const MIN_WIDTH: usize = 72;
const MAX_WIDTH: usize = 200;

/// Collects records, and formats a table for each group of cases that are compared with each other.
#[derive(Clone, Debug)]
pub struct LiveTable {
    color: Color,
    width: usize,
    /// Records of the current group without their series.
    records: Vec<Record>,
    legend: Legend,
    has_printed: bool,
}

impl LiveTable {
    /// Creates an empty table.
    pub fn new(color: Color) -> LiveTable {
        LiveTable { color, width: WIDTH, records: Vec::new(), legend: Legend::default(), has_printed: false }
    }

    /// Sets the line width. Columns that do not fit are dropped and named in the legend.
    pub fn with_width(self, width: usize) -> LiveTable {
        LiveTable { width: width.clamp(MIN_WIDTH, MAX_WIDTH), ..self }
    }

    /// Adds a record. Returns the table of the preceding group if the record starts another one. Unsupported cases are
    /// listed by the summary only.
    pub fn add(&mut self, record: &Record) -> Option<String> {
        if record.outcome.status == Status::Unsupported {
            return None;
        }
        let is_new_group = self.records.first().is_some_and(|first| group(&first.case) != group(&record.case));
        let complete = if is_new_group { self.finish_group() } else { None };
        let mut record = record.clone();
        // The columns of programs without buffers summarize the windows.
        if !programs::has_no_buffers(&record.case) {
            drop(record.take_series());
        }
        self.records.push(record);
        complete
    }

    /// True if a case of the current group is measured. Cases that fail early precede the others by the time of a
    /// measurement.
    pub fn has_measured_case(&self) -> bool {
        self.records.iter().any(|record| record.outcome.status == Status::Ok)
    }

    /// Formats the table of the current group, with a legend of its new terms. Returns `None` if there are no records.
    pub fn finish_group(&mut self) -> Option<String> {
        let mut records = std::mem::take(&mut self.records);
        records.sort_by_key(|record| record.outcome.status != Status::Ok);
        let (mut lines, hidden) = group_table(&records, self.color, self.width)?;
        let legend = self.legend.lines(&records, &hidden);
        lines.extend(legend.iter().map(|line| indented(line, 2, self.width)));
        let gap = if self.has_printed { "\n" } else { "" };
        self.has_printed = true;
        Some(format!("{gap}{}", lines.join("\n")))
    }
}

/// Formats the records of a group, measured ones first: heading, column names, and a line per case. Also returns the
/// names of columns that do not fit.
///
/// The interval of a value is half its width, in percent of the value. SQNR is in dB, `exact` if the output equals the
/// reference. `-` was not measured. Columns without values are omitted, and a stopwatch that all cases share is part of
/// the heading.
fn group_table(records: &[Record], color: Color, width: usize) -> Option<(Vec<String>, Vec<String>)> {
    let first = records.first()?;
    let measured: Vec<&Record> = records.iter().filter(|record| record.outcome.status == Status::Ok).collect();
    let stopwatch = |record: &Record| record.execution.stopwatch.clone();
    let shared = measured.first().and_then(|first| stopwatch(first));
    let shared = shared.filter(|_| measured.windows(2).all(|pair| stopwatch(pair[0]) == stopwatch(pair[1])));
    let mut columns = name_columns(records);
    let names = columns.len();
    columns.extend(value_columns(&measured, records.len(), shared.is_some()));
    let long_names = move_long_names(&mut columns, width);
    let hidden = drop_columns(&mut columns, width);
    let mut lines = vec![heading(&first.case, shared.as_deref(), color, width), header_line(&columns, color)];
    for (index, record) in records.iter().enumerate() {
        lines.extend(long_names.get(index).cloned().flatten());
        lines.push(match record.outcome.status {
            Status::Ok => row_line(&columns, index, color),
            _ => not_measured(record, &columns[..names], index, color, width),
        });
        lines.extend(kernels(record, width));
    }
    Some((lines, hidden))
}

/// Heading of a group: common properties of its cases.
fn heading(case: &Case, stopwatch: Option<&str>, color: Color, width: usize) -> String {
    let shape = match case.shape_name.as_str() {
        // The user listed the shape without a name.
        "" | "custom" => case.shape.to_string(),
        name => format!("{} ({name})", case.shape),
    };
    let output = case.output.map_or_else(String::new, |output| format!("-{output}"));
    let Case { workload, element, device, regime, .. } = case;
    let shape = if shape.is_empty() { shape } else { format!("{shape}  ") };
    let group = if programs::has_no_buffers(case) {
        format!("{workload}  {device}  {shape}").trim_end().to_owned()
    } else {
        format!("{workload}  {element}{output}  {device}  {shape}{regime}")
    };
    let timed = stopwatch.map(|stopwatch| format!("{group}  stopwatch {stopwatch}"));
    bold(&timed.filter(|text| text.chars().count() <= width).unwrap_or(group), color)
}

/// Columns that name a case: recipe, kernels of one run, or program; and the implementation.
fn name_columns(records: &[Record]) -> Vec<TextColumn> {
    let column = |name: &str, cell: fn(&Record) -> String| TextColumn::left_aligned(name, records.iter().map(cell));
    let implementation = column("impl", |record| record.case.implementation.to_string());
    match records[0].case.mode {
        mode if mode.is_foreign() => vec![TextColumn { name: "program".into(), ..implementation }],
        mode if mode.is_operator() => {
            let kernels = Some(column("kernels", kernel_count)).filter(|column| !column.is_empty());
            kernels.into_iter().chain([implementation]).collect()
        }
        _ => vec![column("recipe", |record| record.case.variant()), implementation],
    }
}

/// Columns of measured values, without empty ones. The cells of the other cases, which come last, are empty.
fn value_columns(measured: &[&Record], rows: usize, shares_stopwatch: bool) -> Vec<TextColumn> {
    let column = |rank, name: &str, cell: fn(&Record) -> Option<String>| {
        let cells = measured.iter().map(|record| cell(record).unwrap_or_else(|| "-".into()));
        let empty = (measured.len()..rows).map(|_| String::new());
        TextColumn { rank, ..TextColumn::right_aligned(name, cells.chain(empty)) }
    };
    let blank = |mut column: TextColumn| {
        column.cells.iter_mut().filter(|cell| *cell == "-").for_each(String::clear);
        TextColumn { style: CellStyle::Text, ..column }
    };
    let interval_column = |cell| TextColumn { gap: 1, ..blank(column(REQUIRED, "±", cell)) };
    let mut columns = vec![
        column(REQUIRED, "time", |record| Some(nanoseconds(record.time.time_ns?.median))),
        interval_column(|record| record.time.time_ns.and_then(|time| interval(time.median, time.lo, time.hi))),
        column(REQUIRED, "speed-up", |record| Some(format!("{}x", four_digits(record.speedup.as_ref()?.ratio)))),
        interval_column(|record| record.speedup.as_ref().and_then(|s| interval(s.ratio, s.lo, s.hi))),
        TextColumn {
            style: CellStyle::Verdict,
            ..blank(column(REQUIRED, "verdict", |record| Some(record.speedup.as_ref()?.verdict.to_string())))
        },
        column(11, "mean", programs::mean),
        column(2, "min", programs::minimum),
        column(3, "max", programs::maximum),
        column(10, "launches", programs::launches),
        column(2, "SQNR", |record| Some(sqnr(record)).filter(|text| text != "-")),
        column(3, "of peak", |record| {
            let roof = record.rates.roofline.as_ref()?;
            Some(format!("{:.0} % {}", roof.percent, roof.bound))
        }),
        column(5, "FLOP/s", |record| flops(record).map(operations)),
        column(4, "GB/s", |record| {
            let is_shown = record.case.mode.is_operator() || flops(record).is_none();
            record.rates.gbps.and_then(finite).filter(|_| is_shown).map(four_digits)
        }),
        column(8, "weights", |record| {
            record.weights.weight_bytes.filter(|_| !record.case.mode.is_operator()).map(text::memory)
        }),
        column(6, "peak memory", peak_memory),
        column(7, "memory saved", memory_saved),
        column(9, "moved", |record| record.traffic.map(|traffic| text::memory(traffic.bytes() as u64))),
    ];
    if !shares_stopwatch {
        columns.push(blank(column(10, "stopwatch", |record| record.execution.stopwatch.clone())));
    }
    columns.push(blank(column(IMPORTANT, "remarks", |record| {
        let words: Vec<&str> =
            Term::REMARKS.into_iter().filter(|term| term.applies_to(record)).map(Term::word).collect();
        Some(words.join(", "))
    })));
    // The time of untimed cases is shown as absent.
    let is_shown = |(index, column): (usize, TextColumn)| (index == 0 || !column.is_empty()).then_some(column);
    columns.into_iter().enumerate().filter_map(is_shown).collect()
}

/// Moves long names to a line of their own if the important columns do not fit into a line. Returns these
/// lines by row.
fn move_long_names(columns: &mut [TextColumn], width: usize) -> Vec<Option<String>> {
    if important_width(columns) <= width {
        return Vec::new();
    }
    let is_long = |cell: &&mut String| cell.chars().count() > RECIPE_WIDTH;
    columns[0].cells.iter_mut().map(|cell| Some(cell).filter(is_long).map(std::mem::take)).collect()
}

fn flops(record: &Record) -> Option<f64> {
    record.rates.tflops.and_then(finite).filter(|tflops| *tflops > 0.0)
}

/// Peak memory during the case, if recorded: the first known level.
fn peak_memory(record: &Record) -> Option<String> {
    let memory = record.footprint.memory.as_ref()?;
    let peak = memory.peak_allocated.or(memory.peak_active).or(memory.peak_reserved)?;
    Some(format!("{}{}", memory.bound.prefix(), text::memory(peak)))
}

/// Share of the peak memory of the baseline that a case saves; negative if it needs more.
fn memory_saved(record: &Record) -> Option<String> {
    let memory = record.footprint.memory.as_ref()?;
    Some(format!("{}{:.1} %", memory.saving_bound.prefix(), 100.0 * (1.0 - 1.0 / memory.saving?)))
}

/// Number of kernels, if counted, and the fusion state.
fn kernel_count(record: &Record) -> String {
    let count = record.execution.kernel_launches.map_or("-".into(), |launches| format!("{launches:.0}"));
    record.execution.fusion_state.iter().fold(count, |text, state| format!("{text} {}", state.as_str()))
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

/// Formats a case without time: names, status, and as much of the reason as fits. The summary has all of it.
fn not_measured(record: &Record, names: &[TextColumn], index: usize, color: Color, width: usize) -> String {
    let word = record.outcome.status.as_str();
    let names = format!("{:1$}", row_line(names, index, color), line_width(names));
    let text = format!("{names}  {}", paint(word, "33", color));
    let room = width.saturating_sub(names.chars().count() + word.len() + 6).max(1);
    match wrap(record.outcome.reason.as_deref().unwrap_or_default(), room).as_slice() {
        [] => text,
        [reason] => format!("{text}: {reason}"),
        [start, ..] => format!("{text}: {start} …"),
    }
}

pub(super) fn sqnr(record: &Record) -> String {
    match &record.accuracy {
        Some(accuracy) if accuracy.is_exact() => "exact".into(),
        Some(accuracy) => accuracy.sqnr_db.and_then(finite).map_or("-".into(), |db| format!("{db:.1}")),
        None => "-".into(),
    }
}
