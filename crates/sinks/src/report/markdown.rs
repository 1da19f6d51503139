//! Summary as Markdown, for a pull request or a message.

use super::run::SummarizedRun;
use super::summary::{CauseLine, MeanLine, ReportSummary};
use crate::markdown::{code, escape_cell};

/// Formats status counts, mean speed-ups per recipe, and reasons for missing times.
pub fn markdown(runs: &[SummarizedRun]) -> String {
    let summary = ReportSummary::new(runs);
    let statuses: Vec<String> = summary.statuses.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let names: Vec<String> = runs.iter().map(|run| code(&run.name)).collect();
    let mut text = format!("### {}\n\n{} cases: **{}**\n", names.join(", "), summary.cases, statuses.join(", "));
    for run in runs {
        text += &machine(run).map_or_else(String::new, |machine| format!("- {machine}\n"));
    }
    if !summary.means.is_empty() {
        text += "\n| recipe | implementation | device, dtype, regime | cases | geometric mean | best | worst |\n|---|---|---|---|---|---|---|\n";
        text.extend(summary.means.iter().map(|line| mean(line, runs)));
    }
    if !summary.causes.is_empty() {
        text += "\n| not measured | cases | reason |\n|---|---|---|\n";
        text.extend(summary.causes.iter().map(cause));
    }
    text
}

fn machine(run: &SummarizedRun) -> Option<String> {
    let header = run.header.as_ref()?;
    let of = |name: &str| header.environment.get(name).and_then(|value| value.as_str());
    let devices = header.environment.get("devices").and_then(|devices| devices.as_array()).into_iter().flatten();
    let devices = devices.filter_map(|device| {
        let of = |name: &str| device.get(name)?.as_str().filter(|text| !text.is_empty());
        Some(format!(
            "{} {}{}",
            of("device")?,
            of("name")?,
            of("driver").map_or_else(String::new, |d| format!(", {d}"))
        ))
    });
    let facts: Vec<String> = devices.chain(of("cpu").map(String::from)).chain(of("os").map(String::from)).collect();
    Some(format!("{}, started {}: {}", code(&run.name), escape_cell(&header.started), escape_cell(&facts.join("; "))))
}

fn mean(line: &MeanLine, runs: &[SummarizedRun]) -> String {
    let MeanLine { run, together, best, worst } = line;
    let interval = match (together.lo, together.hi) {
        (Some(lo), Some(hi)) => format!(" [{lo:.3}, {hi:.3}]"),
        _ => String::new(),
    };
    let run = if runs.len() > 1 { format!("{}, ", code(&runs[*run].name)) } else { String::new() };
    format!(
        "| {} | {} | {run}{}, {}, {} | {} | {:.3}x{interval} | {:.3}x at {} | {:.3}x at {} |\n",
        code(&together.recipe),
        escape_cell(&together.implementation),
        escape_cell(&together.device),
        escape_cell(&together.dtype),
        escape_cell(&together.regime),
        together.cases,
        together.ratio,
        best.ratio,
        escape_cell(&best.shape),
        worst.ratio,
        escape_cell(&worst.shape),
    )
}

fn cause(CauseLine { status, reason, cases, examples }: &CauseLine) -> String {
    let examples: Vec<String> = examples.iter().map(|id| code(id)).collect();
    let more = if *cases > examples.len() { ", …" } else { "" };
    format!("| {status} | {cases} | {}: {}{more} |\n", escape_cell(reason), examples.join(", "))
}
