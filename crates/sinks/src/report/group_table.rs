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

/// Heading, column, aggregation and format of a figure.
type GroupFigure = (&'static str, &'static str, Aggregate, NumberFormat);

/// Aggregation of the measured values of a group.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Aggregate {
    /// Geometric mean of positive ratios; a column with the suffix `_bound` marks lower bounds.
    Mean,
    Median,
    /// Minimum and maximum.
    Range,
    /// Number of cases per word of a text.
    Words,
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
            ("weight saving", "weight_saving", Aggregate::Mean, NumberFormat::Ratio),
            ("weights", "weight_bytes", Aggregate::Range, NumberFormat::Bytes),
            ("peak saving", "memory_saving", Aggregate::Mean, NumberFormat::Ratio),
            ("peak", "peak_bytes", Aggregate::Range, NumberFormat::Bytes),
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
            ("speed-up", "speedup", Aggregate::Mean, NumberFormat::Ratio),
            ("bytes/s", "gbps", Aggregate::Median, NumberFormat::Gbps),
            ("of the peak", "roofline_percent", Aggregate::Median, NumberFormat::Percent),
        ],
    },
    GroupTable {
        id: "training",
        title: "Training",
        lead: "Median time of each pass, and mean speed-up over the pass of the baseline, for each model and shape.",
        shows: |record| record.is_ok() && record.case.mode == Mode::Training && nanos(record).is_some(),
        keys: &[("model", "model"), ("shape", "shape"), ("recipe, implementation", "series")],
        pivot: Some("pass"),
        figures: &[
            ("time", "time_ns", Aggregate::Median, NumberFormat::Time),
            ("speed-up", "speedup", Aggregate::Mean, NumberFormat::Ratio),
        ],
    },
    GroupTable {
        id: "fusion",
        title: "Fusion",
        lead: "Fused if fewer kernels ran than the pattern has operators; the resulting speed-up, and its upper bound from the bytes saved.",
        shows: |record| record.execution.fusion_state.is_some() || record.case.mode == Mode::Operator(Suite::Fusion),
        keys: &[("pattern, implementation", "series")],
        pivot: None,
        figures: &[
            ("state", "fusion", Aggregate::Words, NumberFormat::Plain),
            ("kernels per pass", "measured_launches", Aggregate::Range, NumberFormat::Plain),
            ("bytes unfused", "unfused_bytes", Aggregate::Range, NumberFormat::Bytes),
            ("bytes fused", "fused_bytes", Aggregate::Range, NumberFormat::Bytes),
            ("speed-up", "speedup", Aggregate::Mean, NumberFormat::Ratio),
            ("bound from bytes", "fusion_bound", Aggregate::Mean, NumberFormat::Ratio),
        ],
    },
    GroupTable {
        id: "clocks",
        title: "Clocks and power",
        lead: "Median sample of the device's sensors during each case. Table: median over the cases, and throttle reasons.",
        shows: |record| {
            let sensors = ["clock_mhz", "memory_clock_mhz", "power_w", "temperature_c", "joules"];
            record.is_ok() && sensors.iter().any(|name| number(name, record).is_some())
        },
        keys: &[("device", "device"), ("recipe or operator, implementation", "series")],
        pivot: None,
        figures: &[
            ("clock", "clock_mhz", Aggregate::Median, NumberFormat::Megahertz),
            ("memory clock", "memory_clock_mhz", Aggregate::Median, NumberFormat::Megahertz),
            ("power", "power_w", Aggregate::Median, NumberFormat::Watts),
            ("temperature", "temperature_c", Aggregate::Median, NumberFormat::Celsius),
            ("throttled windows", "held_back", Aggregate::Median, NumberFormat::Share),
            ("energy per pass", "joules", Aggregate::Median, NumberFormat::Joules),
            ("throttled by", "throttle", Aggregate::Words, NumberFormat::Plain),
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
        let figures = || pivots.iter().flat_map(|pivot| self.figures.iter().map(move |figure| (figure, pivot)));
        let column = |((heading, _, aggregate, _), pivot): (&GroupFigure, &Option<String>)| {
            let length = match aggregate {
                Aggregate::Mean => BarLength::Ratio,
                Aggregate::Median => BarLength::Amount,
                Aggregate::Range | Aggregate::Words => BarLength::None,
            };
            let before = pivot.as_ref().map_or_else(String::new, |pivot| format!("{pivot}: "));
            BarColumn { header: before + heading, length }
        };
        let cases = BarColumn { header: "cases".into(), length: BarLength::None };
        let columns = [cases].into_iter().chain(figures().map(column)).collect();
        let key = |record: &&Record| -> Vec<Option<String>> {
            self.keys.iter().map(|(_, column)| text(column, record)).collect()
        };
        let row = |(key, group): (Vec<Option<String>>, Vec<&Record>)| {
            let value = |(figure, pivot): (&GroupFigure, &Option<String>)| {
                let of_pivot = |record: &&Record| self.pivot.and_then(|name| text(name, record)) == *pivot;
                evaluate(*figure, &group.iter().copied().filter(of_pivot).collect::<Vec<_>>())
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

/// Value of a group and its text; `None` if nothing was measured.
fn evaluate((_, column, aggregate, format): GroupFigure, group: &[&Record]) -> Option<(f64, String)> {
    let values = || group.iter().filter_map(|record| number(column, record));
    match aggregate {
        Aggregate::Mean => {
            let (mean, bound) = (geometric_mean(values())?, format!("{column}_bound"));
            let is_bound = group.iter().any(|record| text(&bound, record).is_some_and(|bound| bound != "exact"));
            Some((mean, format!("{}{}", if is_bound { "≥ " } else { "" }, format.write(mean))))
        }
        Aggregate::Median => median(values()).map(|median| (median, format.write(median))),
        Aggregate::Range => {
            let (low, high) = (values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?);
            let low_end = if low < high { format.write(low) + " – " } else { String::new() };
            Some((high, low_end + &format.write(high)))
        }
        Aggregate::Words => {
            let texts = group.iter().filter_map(|record| text(column, record));
            let words = texts.flat_map(|text| text.split(", ").map(String::from).collect::<Vec<_>>());
            let counted = group_by(words, Clone::clone).into_iter().map(|(word, all)| match all.len() {
                1 => format!("{word} in 1 case"),
                many => format!("{word} in {many} cases"),
            });
            let counted: Vec<String> = counted.collect();
            (!counted.is_empty()).then(|| (0.0, counted.join(", ")))
        }
    }
}
