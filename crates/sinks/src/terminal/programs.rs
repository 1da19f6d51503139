//! Columns of programs without buffers, such as commands, and sentences that compare external programs.

use super::escape;
use super::text::nanoseconds;
use calorimeter_case::record::{Record, Speedup, WindowRecord};
use calorimeter_case::{Axes, Case, Element, Regime, Verdict};

/// True for commands and for libraries without buffers. Their dtype is a placeholder, and no output is compared.
pub(super) fn has_no_buffers(case: &Case) -> bool {
    case.mode.is_foreign() && case.element == Element::Unsigned(8) && case.regime == Regime::HostE2e
}

/// Durations of the runs of a program in nanoseconds. A window of several runs counts with its mean.
fn run_times(record: &Record) -> impl Iterator<Item = f64> {
    windows(record).map(|window| window.nanos as f64 / f64::from(window.launches))
}

fn windows(record: &Record) -> impl Iterator<Item = &WindowRecord> {
    let is_program = has_no_buffers(&record.case);
    record.time.windows.iter().filter(move |window| is_program && window.launches > 0)
}

/// Mean time of a run.
pub(super) fn mean(record: &Record) -> Option<String> {
    let total: u64 = windows(record).map(|window| window.nanos).sum();
    let runs = run_count(record);
    (runs > 0).then(|| nanoseconds(total as f64 / runs as f64))
}

/// Time of the shortest run.
pub(super) fn minimum(record: &Record) -> Option<String> {
    run_times(record).min_by(f64::total_cmp).map(nanoseconds)
}

/// Time of the longest run.
pub(super) fn maximum(record: &Record) -> Option<String> {
    run_times(record).max_by(f64::total_cmp).map(nanoseconds)
}

/// Number of runs.
pub(super) fn runs(record: &Record) -> Option<String> {
    Some(run_count(record)).filter(|runs| *runs > 0).map(|runs| runs.to_string())
}

fn run_count(record: &Record) -> u64 {
    windows(record).map(|window| u64::from(window.launches)).sum()
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
    use super::super::{Color, LiveTable, summary};
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
        let text = |width| {
            let mut table = LiveTable::new(Color::Never).with_width(width);
            records().iter().for_each(|record| assert_eq!(table.add(record), None));
            table.finish_group().unwrap()
        };
        assert_eq!(
            text(80),
            "\
command  cpu
program      time ±      speed-up ±      verdict       min       max  runs
./old    200.0 ms ±1.0%         -                 100.0 ms  210.0 ms     3
./new    108.0 ms ±1.0%    1.850x ±3.0%  FASTER   100.0 ms  110.0 ms     3
./a.out --with-a-long-option input.txt
         400.0 ms ±1.0%   0.5000x ±11%   SLOWER   390.0 ms   1.000 s     3
./same   200.0 ms ±1.0%    1.000x ±5.5%  SAME     200.0 ms  200.0 ms     1
./noisy  196.0 ms ±1.0%    1.020x ±5.4%  UNCLEAR  190.0 ms  300.0 ms     3
  ±: half width of the 95 % interval; not converged if too wide or drifting
  speed-up: over ./old
  verdict: SAME is within the margin; UNCLEAR has too wide an interval
  hidden columns (see results.csv): remarks, mean"
        );
        assert_eq!(
            text(140).lines().nth(1),
            Some(
                "program                                     time ±      speed-up ±      verdict      mean       min       max  runs  remarks"
            )
        );
    }

    #[test]
    fn summary_compares_programs_in_sentences() {
        let suite = SuiteSpeedup {
            recipe: "command".into(),
            implementation: "./new".into(),
            device: "cpu".into(),
            dtype: "u8".into(),
            regime: "host-e2e".into(),
            cases: 3,
            ratio: 1.5,
            ..SuiteSpeedup::default()
        };
        let text = summary(&records(), &[suite], Color::Never, 80);
        assert_eq!(
            text,
            "\
5 cases: 5 ok
speed-up over all shapes, geometric mean
  3 shapes  cpu
    command              ./new     1.500x too few for an interval
comparison, with 95 % intervals
  ./new is 1.85x faster than ./old [1.80, 1.91]
  ./old is 2.00x faster than ./a.out --with-a-long-option input.txt [1.79, 2.22]
  ./same is as fast as ./old: 1.00x [0.95, 1.06]
  unclear which of ./noisy and ./old is faster: 1.02x [0.97, 1.08]

Noise: 1 of 5 not converged; close programs or raise --max-time."
        );
    }

    #[test]
    fn windows_of_several_runs_count_with_their_mean() {
        let mut record = command("true", &[4]);
        record.time.windows[0].launches = 4;
        let cells = |record: &Record| [mean(record), minimum(record), maximum(record), runs(record)];
        assert_eq!(cells(&record).map(Option::unwrap), ["1.000 ms", "1.000 ms", "1.000 ms", "4"]);
        record.time.windows.clear();
        assert_eq!(cells(&record), [const { None }; 4]);
    }
}
