//! Summary as Markdown, for a pull request or a message.

use super::headline::RunHeadline;
use super::run::SummarizedRun;
use super::summary::{CauseLine, MeanLine, ReportSummary};
use crate::markdown::{code, escape_cell};
use crate::{CaseExcerpt, SpeedupExcerpt, Status};

/// Formats status counts, mean speed-ups per recipe, the speed-up of each case, and reasons for missing times.
pub fn markdown(runs: &[SummarizedRun]) -> String {
    let summary = ReportSummary::new(runs);
    let statuses: Vec<String> = summary.statuses.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let names: Vec<String> = runs.iter().map(|run| code(&run.name)).collect();
    let mut text = format!("### {}\n\n{} cases: **{}**\n", names.join(", "), summary.cases, statuses.join(", "));
    for run in runs {
        text += &headline(run);
    }
    if !summary.means.is_empty() {
        text += "\n| recipe | implementation | device, dtype, regime | geometric mean [95 % interval] | verdicts | best | worst |\n|---|---|---|---|---|---|---|\n";
        text.extend(summary.means.iter().map(|line| mean(line, runs)));
        text += &speedups(runs);
    }
    if !summary.causes.is_empty() {
        text += "\n| not measured | cases | reason |\n|---|---|---|\n";
        text.extend(summary.causes.iter().map(cause));
    }
    text
}

/// Line with device, dtypes, date and command of a run.
fn headline(run: &SummarizedRun) -> String {
    let RunHeadline { devices, dtypes, started, command, .. } = RunHeadline::new(run);
    let facts = [Some(devices.join("; ")), Some(dtypes.join(", ")), started];
    let facts: Vec<String> = facts.into_iter().flatten().filter(|fact| !fact.is_empty()).collect();
    let command = command.map_or_else(String::new, |command| format!("; {}", code(&command)));
    format!("- {}: {}{command}\n", code(&run.name), escape_cell(&facts.join("; ")))
}

fn mean(line: &MeanLine, runs: &[SummarizedRun]) -> String {
    let MeanLine { run, together, verdicts, best, worst } = line;
    let verdicts: Vec<String> = verdicts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
    let run = if runs.len() > 1 { format!("{}, ", code(&runs[*run].name)) } else { String::new() };
    format!(
        "| {} | {} | {run}{}, {}, {} | {} | {} | {:.3}x at {} | {:.3}x at {} |\n",
        code(&together.recipe),
        escape_cell(&together.implementation),
        escape_cell(&together.device),
        escape_cell(&together.dtype),
        escape_cell(&together.regime),
        with_interval(together.ratio, together.lo, together.hi),
        verdicts.join(", "),
        best.ratio,
        escape_cell(&best.shape),
        worst.ratio,
        escape_cell(&worst.shape),
    )
}

/// Ratio with its 95 % interval; too few cases have none.
fn with_interval(ratio: f64, lo: Option<f64>, hi: Option<f64>) -> String {
    let interval = lo.zip(hi).map_or_else(String::new, |(lo, hi)| format!(" [{lo:.3}, {hi:.3}]"));
    format!("{ratio:.3}x{interval}")
}

/// Maximum number of cases with a line each.
const MAX_CASES: usize = 40;

/// Table of the speed-ups of single cases.
fn speedups(runs: &[SummarizedRun]) -> String {
    let compared = || {
        let cases = runs.iter().flat_map(|run| run.cases.iter().map(move |case| (run, case)));
        cases.filter(|(_, case)| case.status == Status::Ok).filter_map(|(run, case)| Some((run, case, case.speedup?)))
    };
    let line = |(run, case, speedup): (&SummarizedRun, &CaseExcerpt, SpeedupExcerpt)| {
        let run = if runs.len() > 1 { format!("{}: ", code(&run.name)) } else { String::new() };
        let SpeedupExcerpt { ratio, lo, hi, verdict } = speedup;
        format!("| {run}{} | {} | {verdict} |\n", code(&case.id), with_interval(ratio, lo, hi))
    };
    let head = "\n| case | speed-up [95 % interval] | verdict |\n|---|---|---|\n";
    let lines: String = compared().take(MAX_CASES).map(line).collect();
    let more = compared().count().saturating_sub(MAX_CASES);
    let more = if more > 0 { format!("\n`results.csv` lists {more} further speed-ups.\n") } else { String::new() };
    format!("{head}{lines}{more}")
}

fn cause(CauseLine { status, reason, cases, examples }: &CauseLine) -> String {
    let examples: Vec<String> = examples.iter().map(|id| code(id)).collect();
    let more = if *cases > examples.len() { ", …" } else { "" };
    format!("| {status} | {cases} | {}: {}{more} |\n", escape_cell(reason), examples.join(", "))
}
