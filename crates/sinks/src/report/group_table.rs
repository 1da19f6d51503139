//! Tables with a row per group of cases. Plots evaluate them for all cases, the page for the selected ones.

use calorimeter_case::{Mode, Suite};
use serde::Serialize;

use super::derived_columns::{number, rank, text};
use super::number_format::NumberFormat;
use super::plots::bars::{BarColumn, BarLength, BarRow, BarTable};
use super::report_rows::{distinct, geometric_mean, group_by, is_model, median, nanos};
use crate::record::Record;

/// Table with a row per group of cases and a column per figure.
#[derive(Serialize)]
pub(super) struct GroupTable {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    lead: &'static str,
    #[serde(skip)]
    shows: fn(&Record) -> bool,
    /// Headings and names of the columns whose values identify a group.
    keys: &'static [(&'static str, &'static str)],
    /// Column that repeats the figures for each of its values.
    pivot: Option<&'static str>,
    figures: &'static [GroupFigure],
}

/// Value of a group, aggregated from a column.
#[derive(Serialize)]
struct GroupFigure {
    heading: &'static str,
    column: &'static str,
    aggregate: Aggregate,
    format: NumberFormat,
    bar: BarLength,
    /// Column that marks lower bounds.
    bound: Option<&'static str>,
}

/// Aggregation of the measured values of a group.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Aggregate {
    /// Geometric mean of positive ratios.
    GeometricMean,
    Median,
    /// Minimum and maximum.
    Range,
    /// Number of cases per word of a text.
    Words,
}

/// Mean of a ratio.
const fn mean(heading: &'static str, column: &'static str) -> GroupFigure {
    let (aggregate, format) = (Aggregate::GeometricMean, NumberFormat::Ratio);
    GroupFigure { heading, column, aggregate, format, bar: BarLength::Ratio, bound: None }
}

const fn middle(heading: &'static str, column: &'static str, format: NumberFormat) -> GroupFigure {
    GroupFigure { heading, column, aggregate: Aggregate::Median, format, bar: BarLength::Amount, bound: None }
}

const fn range(heading: &'static str, column: &'static str, format: NumberFormat) -> GroupFigure {
    GroupFigure { heading, column, aggregate: Aggregate::Range, format, bar: BarLength::None, bound: None }
}

const fn words(heading: &'static str, column: &'static str) -> GroupFigure {
    let (aggregate, format) = (Aggregate::Words, NumberFormat::Plain);
    GroupFigure { heading, column, aggregate, format, bar: BarLength::None, bound: None }
}

/// Tables, in the order of the page.
pub(super) static GROUP_TABLES: [GroupTable; 5] = [
    GroupTable {
        id: "memory",
        title: "Memory",
        lead: "Savings relative to the baseline: stored weights with their scales, and peak memory. ≥ marks a mean that includes lower bounds.",
        shows: |record| {
            let peak = is_model(record) && record.footprint.peak_bytes.is_some();
            record.is_ok()
                && (peak || ["weight_saving", "memory_saving"].iter().any(|name| number(name, record).is_some()))
        },
        keys: &[("recipe or operator, implementation", "series")],
        pivot: None,
        figures: &[
            mean("weight saving", "weight_saving"),
            range("weights", "weight_bytes", NumberFormat::Bytes),
            GroupFigure { bound: Some("memory_saving_bound"), ..mean("peak saving", "memory_saving") },
            range("peak", "peak_bytes", NumberFormat::Bytes),
        ],
    },
    GroupTable {
        id: "operators",
        title: "Operators",
        lead: "Mean speed-up over eager, or over the first program of foreign work; median rate and median share of the peak; over all sizes and dtypes of an operator.",
        shows: |record| {
            let is_fusion = record.case.mode == Mode::Operator(Suite::Fusion);
            record.is_ok() && !is_model(record) && !is_fusion && nanos(record).is_some()
        },
        keys: &[("operator", "workload"), ("suite", "mode")],
        pivot: Some("implementation"),
        figures: &[
            mean("speed-up", "speedup"),
            middle("bytes/s", "gbps", NumberFormat::Gbps),
            middle("of the peak", "roofline_percent", NumberFormat::Percent),
        ],
    },
    GroupTable {
        id: "training",
        title: "Training",
        lead: "Median time of each pass, and mean speed-up over the pass of the baseline, for each model and shape.",
        shows: |record| record.is_ok() && record.case.mode == Mode::Training && nanos(record).is_some(),
        keys: &[("model", "model"), ("shape", "shape"), ("recipe, implementation", "series")],
        pivot: Some("pass"),
        figures: &[middle("time", "time_ns", NumberFormat::Time), mean("speed-up", "speedup")],
    },
    GroupTable {
        id: "fusion",
        title: "Fusion",
        lead: "Fused if fewer kernels ran than the pattern has operators; the resulting speed-up, and its upper bound from the bytes saved.",
        shows: |record| record.execution.fusion_state.is_some() || record.case.mode == Mode::Operator(Suite::Fusion),
        keys: &[("pattern, implementation", "series")],
        pivot: None,
        figures: &[
            words("state", "fusion"),
            range("kernels per pass", "kernel_launches", NumberFormat::Plain),
            range("bytes unfused", "unfused_bytes", NumberFormat::Bytes),
            range("bytes fused", "fused_bytes", NumberFormat::Bytes),
            mean("speed-up", "speedup"),
            mean("bound from bytes", "fusion_bound"),
        ],
    },
    GroupTable {
        id: "clocks",
        title: "Clocks and power",
        lead: "Median sample of the device's sensors during each case. Table: median over the cases, and throttle reasons.",
        shows: |record| {
            let sensors = ["clock_mhz", "memory_clock_mhz", "power_w", "temperature_c", "held_back", "joules"];
            record.is_ok() && sensors.iter().any(|name| number(name, record).is_some())
        },
        keys: &[("device", "device"), ("recipe or operator, implementation", "series")],
        pivot: None,
        figures: &[
            middle("clock", "clock_mhz", NumberFormat::Megahertz),
            middle("memory clock", "memory_clock_mhz", NumberFormat::Megahertz),
            middle("power", "power_w", NumberFormat::Watts),
            middle("temperature", "temperature_c", NumberFormat::Celsius),
            middle("throttled windows", "held_back", NumberFormat::Share),
            middle("energy per pass", "joules", NumberFormat::Joules),
            words("throttled by", "throttle"),
        ],
    },
];

/// Table with the indices of its cases.
#[derive(Serialize)]
pub(super) struct GroupedCases {
    #[serde(flatten)]
    table: &'static GroupTable,
    cases: Vec<usize>,
    /// Values of the pivot, in order.
    pivots: Vec<String>,
}

impl GroupedCases {
    /// Tables with the cases that they show.
    pub(super) fn all(records: &[&Record]) -> Vec<Self> {
        let grouped = GROUP_TABLES.iter().map(|table| {
            let cases = (0..records.len()).filter(|&place| (table.shows)(records[place])).collect::<Vec<_>>();
            let shown: Vec<&Record> = cases.iter().map(|&place| records[place]).collect();
            Self { table, pivots: table.pivots(&shown), cases }
        });
        grouped.filter(|grouped| !grouped.cases.is_empty()).collect()
    }
}

impl GroupTable {
    fn pivots(&self, records: &[&Record]) -> Vec<String> {
        let Some(name) = self.pivot else { return Vec::new() };
        let mut pivots = distinct(records.iter().filter_map(|record| Some((rank(name, record), text(name, record)?))));
        pivots.sort_by_key(|(rank, _)| *rank);
        pivots.into_iter().map(|(_, pivot)| pivot).collect()
    }

    /// Evaluates the table for all cases that it shows.
    pub(super) fn bars(&'static self, records: &[&Record]) -> Option<BarTable> {
        let shown: Vec<&Record> = records.iter().copied().filter(|record| (self.shows)(record)).collect();
        let pivots = match self.pivot {
            Some(_) => self.pivots(&shown).into_iter().map(Some).collect(),
            None => vec![None],
        };
        let column = |figure: &GroupFigure, pivot: &Option<String>| {
            let header = pivot.iter().map(|pivot| format!("{pivot}: ")).collect::<String>() + figure.heading;
            BarColumn { header, length: figure.bar }
        };
        let figures = || pivots.iter().flat_map(|pivot| self.figures.iter().map(move |figure| (figure, pivot)));
        let cases = BarColumn { header: "cases".into(), length: BarLength::None };
        let columns = [cases].into_iter().chain(figures().map(|(figure, pivot)| column(figure, pivot))).collect();
        let key = |record: &&Record| -> Vec<Option<String>> {
            self.keys.iter().map(|(_, column)| text(column, record)).collect()
        };
        let row = |(key, group): (Vec<Option<String>>, Vec<&Record>)| {
            let value = |(figure, pivot): (&GroupFigure, &Option<String>)| {
                let of_pivot = |record: &&Record| self.pivot.and_then(|name| text(name, record)) == *pivot;
                figure.evaluate(&group.iter().copied().filter(of_pivot).collect::<Vec<_>>())
            };
            let count = Some((group.len() as f64, group.len().to_string()));
            BarRow {
                name: key.into_iter().flatten().collect::<Vec<_>>().join(" · "),
                values: [count].into_iter().chain(figures().map(value)).collect(),
            }
        };
        let rows: Vec<BarRow> = group_by(shown.into_iter(), key).into_iter().map(row).collect();
        let heading = self.keys.iter().map(|(heading, _)| *heading).collect::<Vec<_>>().join(" · ");
        let table = BarTable { title: self.title.into(), heading, columns, rows };
        (!table.rows.is_empty()).then(|| table.without_empty_columns())
    }
}

impl GroupFigure {
    /// Value of a group and its text; `None` if nothing was measured.
    fn evaluate(&self, group: &[&Record]) -> Option<(f64, String)> {
        let values = || group.iter().filter_map(|record| number(self.column, record));
        let value = match self.aggregate {
            Aggregate::GeometricMean => geometric_mean(values())?,
            Aggregate::Median => median(values())?,
            Aggregate::Range => {
                let (low, high) = (values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?);
                let low_end = if low < high { self.format.write(low) + " – " } else { String::new() };
                return Some((high, low_end + &self.format.write(high)));
            }
            Aggregate::Words => {
                let texts = group.iter().filter_map(|record| text(self.column, record));
                let words = texts.flat_map(|text| text.split(", ").map(String::from).collect::<Vec<_>>());
                let counted = group_by(words, Clone::clone).into_iter().map(|(word, all)| match all.len() {
                    1 => format!("{word} in 1 case"),
                    many => format!("{word} in {many} cases"),
                });
                let counted: Vec<String> = counted.collect();
                return (!counted.is_empty()).then(|| (0.0, counted.join(", ")));
            }
        };
        let is_bound = self
            .bound
            .is_some_and(|bound| group.iter().any(|record| text(bound, record).is_some_and(|bound| bound != "exact")));
        Some((value, format!("{}{}", if is_bound { "≥ " } else { "" }, self.format.write(value))))
    }
}
