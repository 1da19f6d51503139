//! `--dry-run`: prints the plan and its predicted time.

use super::error::CliError;
use crate::entries::ResolvedEntry;
use crate::plan::Prediction;
use crate::print::{ignore_broken_pipe, terminal_width};
use crate::progress::RecordFormat;
use crate::rough_time::{PLAN_ASSUMPTION, rough_range};
use crate::run::PreparedRun;
use calorimeter_sinks::terminal::{escape, wrap};
use calorimeter_sinks::{Case, log_line};
use serde::Serialize;
use std::io::{self, BufWriter, Write};

/// Line of the plan in JSON: a case, and the reason if it is unsupported.
#[derive(Serialize)]
struct PlanLine<'a> {
    #[serde(flatten)]
    case: &'a Case,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// Prints every case, then the resolved configuration and the predicted time.
pub(super) fn dry_run(prepared: &PreparedRun, format: RecordFormat) -> Result<(), CliError> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let width = terminal_width(out.get_ref());
    let mut print = || -> io::Result<()> {
        for (case, supported) in prepared.plan().cases() {
            let reason = supported.err();
            match format {
                RecordFormat::Jsonl => {
                    let status = reason.as_ref().map(|_| "unsupported");
                    let line = serde_json::to_string(&PlanLine { case: &case, status, reason })?;
                    writeln!(out, "{}", escape(&line))?;
                }
                RecordFormat::Table => writeln!(out, "{}", case_row(&case, reason, width))?,
            }
        }
        out.flush()
    };
    ignore_broken_pipe(print())?;
    for note in &prepared.notes {
        log_line!("note: {note}");
    }
    if format == RecordFormat::Table {
        let plan = prepared.plan();
        let resolved: Vec<_> = plan.entries().iter().map(ResolvedEntry::describe).collect();
        log_line!("\nresolved to\n{}", serde_yaml::to_string(&resolved).unwrap_or_default().trim_end());
        log_line!("{} cases in {} groups", plan.len(), plan.groups().len());
        let predicted: Prediction = prepared.predictions().map(|(_, _, predicted)| predicted).sum();
        if predicted != Prediction::default() {
            log_line!("about {}{PLAN_ASSUMPTION}", rough_range(predicted.min_total(), predicted.max_total()));
        }
    }
    Ok(())
}

/// Formats a case as one line, or as several if the line exceeds the width of the terminal.
fn case_row(case: &Case, reason: Option<&str>, width: Option<usize>) -> String {
    let gflop = format_scaled(case.flops, 1e9, 3);
    let [traffic, memory] = [case.bytes, case.memory_bytes].map(|bytes| format_scaled(bytes, 1e6, 2));
    let id = escape(&case.id);
    let note = reason.map_or_else(String::new, |reason| format!("unsupported: {}", escape(reason)));
    let line = format!("{id:<76} {gflop:>12} GFLOP {traffic:>10} MB moved {memory:>10} MB needed  {note}");
    match width.filter(|&width| line.trim_end().chars().count() > width) {
        None => line.trim_end().to_owned(),
        Some(width) => {
            let figures = format!("{gflop} GFLOP, {traffic} MB moved, {memory} MB needed");
            let lines =
                [figures, note].iter().flat_map(|text| wrap(text, width.saturating_sub(4).max(20))).collect::<Vec<_>>();
            format!("{id}\n    {}", lines.join("\n    "))
        }
    }
}

fn format_scaled(value: Option<u64>, unit: f64, decimals: usize) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{:.decimals$}", value as f64 / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_terminals_wrap_case_lines() {
        let case =
            Case { id: "inference/linear".into(), flops: Some(1 << 30), bytes: Some(1 << 20), ..Case::default() };
        let line = case_row(&case, None, None);
        assert_eq!((line.lines().count(), case_row(&case, None, Some(200))), (1, line));
        let narrow = case_row(&case, Some("kernel not available"), Some(30));
        let expected = "inference/linear
    1.074 GFLOP, 1.05 MB
    moved, - MB needed
    unsupported: kernel not
    available";
        assert_eq!(narrow, expected);
    }
}
