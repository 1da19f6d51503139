//! Page: frame, style, scripts, and records.

use serde::Serialize;
use serde_json::Value;
use std::path::Path;

use super::calibration::Calibration;
use super::derived_columns::{FILTERS, PROPERTIES, WORK, item_and_implementation};
use super::forest::{ForestGroup, forest_groups};
use super::group_table::GroupedCases;
use super::headline::RunHeadline;
use super::packed_columns::{PackedColumn, pack_columns, pack_derived};
use super::plots::palette::SeriesStyle;
use super::plots::sizes::SizeMetric;
use super::plots::{heat_map, sizes};
use super::report_rows::{ReportRows, group_by};
use super::run::{ReportedProfile, ReportedRun, SummarizedRun};
use super::summary::ReportSummary;
use super::window_histogram::WindowHistogram;
use crate::SinkError;

const FRAME: &str = include_str!("page/frame.html");
const STYLE: &str = include_str!("page/style.css");

/// Scripts in order of their dependencies.
const SCRIPTS: [&str; 18] = [
    include_str!("page/data.js"),
    include_str!("page/element.js"),
    include_str!("page/figures.js"),
    include_str!("page/filter.js"),
    include_str!("page/windows.js"),
    include_str!("page/record.js"),
    include_str!("page/chart.js"),
    include_str!("page/forest.js"),
    include_str!("page/summary.js"),
    include_str!("page/heat_map.js"),
    include_str!("page/roofline.js"),
    include_str!("page/sizes.js"),
    include_str!("page/accuracy.js"),
    include_str!("page/group_tables.js"),
    include_str!("page/clocks.js"),
    include_str!("page/calibration.js"),
    include_str!("page/machine.js"),
    include_str!("page/table.js"),
];

/// Renders the page for its directory.
pub(super) fn html(runs: &[ReportedRun], profiles: &[ReportedProfile], path: &Path) -> Result<String, SinkError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let summarized: Vec<SummarizedRun> = runs.iter().map(SummarizedRun::from).collect();
    let rows = ReportRows::new(runs);
    // In order of the words of the column.
    let series = group_by(rows.all.iter(), |record| item_and_implementation(record));
    let data = ReportPageData {
        summary: ReportSummary::new(&summarized),
        runs: runs.iter().zip(&summarized).map(|(run, summarized)| RunFacts::new(run, summarized)).collect(),
        forest: forest_groups(&rows),
        windows: runs.iter().flat_map(histograms).collect(),
        columns: pack_columns(runs, folder),
        derived_columns: pack_derived(runs),
        styles: series.iter().map(|(_, records)| rows.style(records[0])).collect(),
        filters: &FILTERS,
        properties: &PROPERTIES,
        work: &WORK,
        heat_map: heat_map::default_axes(&rows),
        size: sizes::default_size(&rows),
        size_metrics: sizes::METRICS,
        group_tables: GroupedCases::all(&rows.all),
        calibration: (!profiles.is_empty()).then(|| Calibration::new(profiles)).transpose()?,
    };
    let json = serde_json::to_string(&data).map_err(|cause| SinkError::format(path, cause))?;
    // These characters occur only in strings, where the escapes are equivalent; unescaped they could end the script
    // element.
    let json = json.replace('<', r"\u003c").replace('>', r"\u003e").replace('&', r"\u0026");
    let page = FRAME.replacen("{{style}}", STYLE, 1).replacen("{{script}}", &SCRIPTS.concat(), 1);
    // Last, so that placeholders in the records are not replaced.
    Ok(page.replacen("{{data}}", &json, 1))
}

fn histograms(run: &ReportedRun) -> impl Iterator<Item = Option<&WindowHistogram>> {
    run.read.records.iter().map(|record| run.windows.get(&record.case.id))
}

/// Data of the page's scripts.
#[derive(Serialize)]
struct ReportPageData<'a> {
    summary: ReportSummary<'a>,
    runs: Vec<RunFacts<'a>>,
    /// Cases of the forest plot by comparison group.
    forest: Vec<ForestGroup>,
    /// Window times of each record.
    windows: Vec<Option<&'a WindowHistogram>>,
    columns: Vec<PackedColumn<'a>>,
    /// Columns that only figures show.
    derived_columns: Vec<PackedColumn<'a>>,
    /// Style of each series.
    styles: Vec<SeriesStyle>,
    filters: &'static [(&'static str, &'static str)],
    properties: &'static [(&'static str, &'static str)],
    work: &'static [(&'static str, &'static str)],
    /// Initial columns of the heat map's rows and columns.
    heat_map: [&'a str; 2],
    /// Initial size.
    size: Option<&'a str>,
    /// Plot, label, column and format of each metric over size.
    size_metrics: [SizeMetric; 5],
    group_tables: Vec<GroupedCases>,
    calibration: Option<Calibration>,
}

/// Provenance of a run; mostly empty for a Parquet file without a journal.
#[derive(Serialize)]
struct RunFacts<'a> {
    name: &'a str,
    #[serde(flatten)]
    headline: RunHeadline,
    cases: usize,
    planned: Option<u64>,
    resumed: Vec<&'a str>,
    id: Option<&'a str>,
    environment: Option<&'a Value>,
    sources: Vec<ConfigFile<'a>>,
}

/// Configuration file of a run.
#[derive(Serialize)]
struct ConfigFile<'a> {
    path: &'a str,
    text: &'a str,
    /// True if the text was truncated.
    cut: bool,
}

/// Maximum bytes shown of a configuration file; longer ones are generated.
const MAX_SOURCE_BYTES: usize = 16 << 10;

impl<'a> RunFacts<'a> {
    fn new(run: &'a ReportedRun, summarized: &SummarizedRun) -> Self {
        let header = run.read.header.as_ref();
        let sources = header.and_then(|header| header.config.get("sources")?.as_array()).into_iter().flatten();
        Self {
            name: &run.name,
            headline: RunHeadline::new(summarized),
            cases: run.read.records.len(),
            planned: header.and_then(|header| header.plan_cases),
            resumed: run.read.resumed.iter().map(|resumed| resumed.time.as_str()).collect(),
            id: header.map(|header| header.run_id.as_str()),
            environment: header.map(|header| &header.environment),
            sources: sources.filter_map(ConfigFile::parse).collect(),
        }
    }
}

impl<'a> ConfigFile<'a> {
    fn parse(source: &'a Value) -> Option<Self> {
        let (path, whole) = (source.get("path")?.as_str()?, source.get("text")?.as_str()?);
        let text = &whole[..whole.floor_char_boundary(MAX_SOURCE_BYTES)];
        Some(Self { path, text, cut: text.len() < whole.len() })
    }
}
