//! Rows of programs without buffers, such as commands, and sentences that compare external programs.

use super::text::{interval, join_wrapped, nanoseconds};
use super::{Color, bold, escape};
use calorimeter_case::record::{Record, Speedup};
use calorimeter_case::{Axes, Case, Element, Regime, Verdict};

const NAME_WIDTH: usize = 24;

/// True for commands and for libraries without buffers. Their dtype is a placeholder, and no output is compared.
pub(super) fn has_no_buffers(case: &Case) -> bool {
    case.mode.is_foreign() && case.element == Element::Unsigned(8) && case.regime == Regime::HostE2e
}

/// Heading of a group, and column names.
pub(super) fn heading(case: &Case, color: Color) -> String {
    let group = format!("{}  {}  {}", case.workload, case.device, case.shape);
    let names = line(["program", "median", "±", "mean", "min", "max", "runs"]);
    format!("{}\n{}", bold(group.trim_end(), color), bold(&names, color))
}

/// Formats a measured program: median with its interval, then mean, extremes and number of runs. A window of several
/// runs counts with its mean.
pub(super) fn row(record: &Record, width: usize) -> String {
    let windows = || record.time.windows.iter().filter(|window| window.launches > 0);
    let per_run = || windows().map(|window| window.nanos as f64 / f64::from(window.launches));
    let runs: u64 = windows().map(|window| u64::from(window.launches)).sum();
    let total: u64 = windows().map(|window| window.nanos).sum();
    let time = |nanos: Option<f64>| nanos.map_or("-".into(), nanoseconds);
    let estimate = record.time.time_ns;
    let name = record.case.implementation.to_string();
    let name = escape(&name);
    let is_long = name.chars().count() > NAME_WIDTH;
    let row = line([
        if is_long { "" } else { &name },
        &time(estimate.map(|time| time.median)),
        &estimate.and_then(|time| interval(time.median, time.lo, time.hi)).unwrap_or_default(),
        &time((runs > 0).then(|| total as f64 / runs as f64)),
        &time(per_run().min_by(f64::total_cmp)),
        &time(per_run().max_by(f64::total_cmp)),
        &if runs > 0 { runs.to_string() } else { "-".into() },
    ]);
    let row = if is_long { format!("{name}\n{row}") } else { row };
    match record.time.converged {
        Some(false) => format!("{row}\n{}", join_wrapped(&["not converged"], 4, width)),
        _ => row,
    }
}

fn line([name, median, half_width, mean, min, max, runs]: [&str; 7]) -> String {
    format!("{name:NAME_WIDTH$} {median:>9} {half_width:<6} {mean:>9} {min:>9} {max:>9} {runs:>6}")
}

/// Compares each external program with its reference in a sentence, the faster one first.
pub(super) fn comparisons(records: &[Record]) -> Vec<String> {
    let sentence = |record: &Record| {
        let speedup = record.speedup.as_ref().filter(|_| record.case.mode.is_foreign())?;
        let reference = records.iter().find(|reference| reference.case.id == speedup.vs)?;
        let size = match record.case.shape == Axes::default() {
            true => String::new(),
            false => format!("{}: ", record.case.shape),
        };
        let [program, reference] = [record, reference].map(|record| record.case.implementation.to_string());
        Some(escape(&format!("  {size}{}", comparison(&program, &reference, speedup))).into_owned())
    };
    records.iter().filter_map(sentence).collect()
}

fn comparison(program: &str, reference: &str, speedup: &Speedup) -> String {
    let Speedup { ratio, lo, hi, verdict, .. } = *speedup;
    let range = |lo: Option<f64>, hi: Option<f64>| match (lo, hi) {
        (Some(lo), Some(hi)) => format!(" [{lo:.2}, {hi:.2}]"),
        _ => String::new(),
    };
    match verdict {
        Verdict::Faster => format!("{program} is {ratio:.2}x faster than {reference}{}", range(lo, hi)),
        Verdict::Slower => {
            let inverse = range(hi.map(f64::recip), lo.map(f64::recip));
            format!("{reference} is {:.2}x faster than {program}{inverse}", ratio.recip())
        }
        Verdict::Same => format!("{program} is as fast as {reference}: {ratio:.2}x{}", range(lo, hi)),
        Verdict::Unclear => {
            format!("unclear which of {program} and {reference} is faster: {ratio:.2}x{}", range(lo, hi))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LiveTable, summary};
    use super::*;
    use crate::record::{Estimate, Status};
    use calorimeter_case::Implementation;
    use calorimeter_case::record::{SuiteSpeedup, Time, WindowRecord};

    fn command(line: &'static str, millis: &[u64]) -> Record {
        let windows = millis.iter().map(|millis| WindowRecord {
            launches: 1,
            nanos: millis * 1_000_000,
            ..WindowRecord::default()
        });
        let median = 1e6 * millis[millis.len() / 2] as f64;
        let case = Case {
            id: line.into(),
            mode: "foreign".parse().unwrap(),
            workload: "command".into(),
            implementation: Implementation::Other(line.into()),
            element: Element::Unsigned(8),
            regime: Regime::HostE2e,
            ..Case::default()
        };
        let time_ns = Some(Estimate { median, lo: Some(median * 0.99), hi: Some(median * 1.01) });
        Record {
            time: Time { time_ns, windows: windows.collect(), ..Time::default() },
            ..Record::new(case, Status::Ok)
        }
    }

    fn compared(verdict: Verdict, ratio: f64, record: Record) -> Record {
        let (lo, hi) = (Some(ratio - 0.05), Some(ratio + 0.06));
        Record { speedup: Some(Speedup { vs: "./old".into(), ratio, lo, hi, verdict, ..Speedup::default() }), ..record }
    }

    fn records() -> Vec<Record> {
        let long = "./a.out --with-a-long-option input.txt";
        let mut records = vec![
            command("./old", &[100, 200, 210]),
            compared(Verdict::Faster, 1.85, command("./new", &[100, 108, 110])),
            compared(Verdict::Slower, 0.5, command(long, &[390, 400, 1000])),
            compared(Verdict::Same, 1.0, command("./same", &[200])),
            compared(Verdict::Unclear, 1.02, command("./noisy", &[190, 196, 300])),
        ];
        records[4].time.converged = Some(false);
        records
    }

    #[test]
    fn command_table_matches_expected_text() {
        for width in [80, 120] {
            let mut table = LiveTable::new(Color::Never).with_width(width);
            let lines: Vec<String> = records().iter().filter_map(|record| table.show(record)).collect();
            assert_eq!(
                lines.join("\n"),
                "\
command  cpu
program                     median ±           mean       min       max   runs
./old                     200.0 ms ±1.0%   170.0 ms  100.0 ms  210.0 ms      3
./new                     108.0 ms ±1.0%   106.0 ms  100.0 ms  110.0 ms      3
./a.out --with-a-long-option input.txt
                          400.0 ms ±1.0%   596.7 ms  390.0 ms   1.000 s      3
./same                    200.0 ms ±1.0%   200.0 ms  200.0 ms  200.0 ms      1
./noisy                   196.0 ms ±1.0%   228.7 ms  190.0 ms  300.0 ms      3
    not converged"
            );
        }
    }

    #[test]
    fn summary_compares_programs_in_sentences() {
        let suite = SuiteSpeedup {
            recipe: "command".into(),
            implementation: "./new".into(),
            device: "cpu".into(),
            dtype: "u8".into(),
            regime: "host-e2e".into(),
            cases: 2,
            ratio: 1.5,
            ..SuiteSpeedup::default()
        };
        let text = summary(&records(), &[suite], Color::Never, 80);
        assert_eq!(
            text,
            "\
5 cases: 5 ok
speed-up over all shapes, geometric mean
  2 shapes  cpu
    command              ./new     1.500x too few for an interval
comparison, with 95 % intervals
  ./new is 1.85x faster than ./old [1.80, 1.91]
  ./old is 2.00x faster than ./a.out --with-a-long-option input.txt [1.79, 2.22]
  ./same is as fast as ./old: 1.00x [0.95, 1.06]
  unclear which of ./noisy and ./old is faster: 1.02x [0.97, 1.08]"
        );
    }

    #[test]
    fn windows_of_several_runs_count_with_their_mean() {
        let mut record = command("true", &[4]);
        record.time.windows[0].launches = 4;
        assert!(row(&record, 80).ends_with("  1.000 ms  1.000 ms  1.000 ms      4"), "{}", row(&record, 80));
        record.time.windows.clear();
        assert!(row(&record, 80).ends_with("-         -         -      -"), "{}", row(&record, 80));
    }
}
