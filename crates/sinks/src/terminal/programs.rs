//! Columns of programs without buffers, such as commands, and sentences that compare external programs.

use super::escape;
use super::text::{nanoseconds, rounded_ratio};
use calorimeter_case::record::{Record, Speedup, WindowRecord};
use calorimeter_case::{Axes, Case, Element, Regime, Verdict};

/// True for commands and for libraries without buffers. Their dtype is a placeholder, and no output is compared.
pub(super) fn has_no_buffers(case: &Case) -> bool {
    case.mode.is_foreign() && case.element == Element::Unsigned(8) && case.regime == Regime::HostE2e
}

/// Times of the launches of a program in nanoseconds. A window of several launches counts with its mean.
fn launch_times(record: &Record) -> impl Iterator<Item = f64> {
    windows(record).map(|window| window.nanos as f64 / f64::from(window.launches))
}

fn windows(record: &Record) -> impl Iterator<Item = &WindowRecord> {
    let is_program = has_no_buffers(&record.case);
    record.time.windows.iter().filter(move |window| is_program && window.launches > 0)
}

/// Mean time of a launch.
pub(super) fn mean(record: &Record) -> Option<String> {
    let total: u64 = windows(record).map(|window| window.nanos).sum();
    let launches = launch_count(record);
    (launches > 0).then(|| nanoseconds(total as f64 / launches as f64))
}

/// Time of the shortest launch.
pub(super) fn minimum(record: &Record) -> Option<String> {
    launch_times(record).min_by(f64::total_cmp).map(nanoseconds)
}

/// Time of the longest launch.
pub(super) fn maximum(record: &Record) -> Option<String> {
    launch_times(record).max_by(f64::total_cmp).map(nanoseconds)
}

/// Number of launches.
pub(super) fn launches(record: &Record) -> Option<String> {
    Some(launch_count(record)).filter(|launches| *launches > 0).map(|launches| launches.to_string())
}

fn launch_count(record: &Record) -> u64 {
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
    let range = |lo: Option<f64>, hi: Option<f64>| {
        let bounds = lo.zip(hi).map(|(lo, hi)| format!(" [{}, {}]", rounded_ratio(lo), rounded_ratio(hi)));
        bounds.unwrap_or_default()
    };
    let (text, bounds) = (rounded_ratio(ratio), range(lo, hi));
    match verdict {
        Verdict::Faster => format!("{program} is {text}x faster than {reference}{bounds}"),
        Verdict::Slower => {
            let bounds = range(hi.map(f64::recip), lo.map(f64::recip));
            format!("{reference} is {}x faster than {program}{bounds}", rounded_ratio(ratio.recip()))
        }
        Verdict::Same => format!("{program} is as fast as {reference}: {text}x{bounds}"),
        Verdict::Unclear => format!("unclear which of {program} and {reference} is faster: {text}x{bounds}"),
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
program      time ±      speed-up ±      verdict       min  remarks
./old    200.0 ms ±1.0%         -                 100.0 ms
./new    108.0 ms ±1.0%    1.850x ±3.0%  FASTER   100.0 ms
./a.out --with-a-long-option input.txt
         400.0 ms ±1.0%   0.5000x ±11%   SLOWER   390.0 ms
./same   200.0 ms ±1.0%    1.000x ±5.5%  SAME     200.0 ms
./noisy  196.0 ms ±1.0%    1.020x ±5.4%  UNCLEAR  190.0 ms  not converged
  ±: half width of the 95 % interval; not converged if wider than requested
  speed-up: over ./old
  verdict: SAME is within the margin; UNCLEAR has too wide an interval
  hidden columns (wider terminal or results.csv): max, launches, mean"
        );
        assert_eq!(
            text(140).lines().nth(1),
            Some(
                "program                                     time ±      speed-up ±      verdict      mean       min       max  launches  remarks"
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

Noise: 1 of 5 cases did not converge; close programs or raise --max-time."
        );
    }

    #[test]
    fn windows_of_several_launches_count_with_their_mean() {
        let mut record = command("true", &[4]);
        record.time.windows[0].launches = 4;
        let cells = |record: &Record| [mean(record), minimum(record), maximum(record), launches(record)];
        assert_eq!(cells(&record).map(Option::unwrap), ["1.000 ms", "1.000 ms", "1.000 ms", "4"]);
        record.time.windows.clear();
        assert_eq!(cells(&record), [const { None }; 4]);
    }
}
