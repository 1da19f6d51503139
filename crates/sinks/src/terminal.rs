//! Tables of a run, summary, and accuracy table: pure functions from records to text.
//!
//! A group of cases that are compared with each other is printed when all of them are done, without empty columns and
//! without columns that do not fit. Colors carry no information of their own. No text ends in a line feed.

mod accuracy;
mod column;
mod conclusion;
mod escape;
mod legend;
mod live;
mod operators;
mod programs;
mod summary;
mod text;

pub use accuracy::accuracy;
pub use escape::{escape, escape_lines, escape_table};
pub use live::LiveTable;
pub use operators::operators;
pub use summary::summary;
pub use text::{four_digits, nanoseconds, operations, wrap};

use calorimeter_case::{Case, Verdict};

/// Maximum line length in characters. Only a single long name can exceed it.
pub const WIDTH: usize = 120;

const RECIPE_WIDTH: usize = 20;

/// Shown if the confidence intervals of the fastest implementations overlap.
const EVEN: &str = "even";

/// Use of ANSI colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Color {
    /// Plain text.
    Never,
    /// Bold headings, colored verdicts, yellow statuses.
    Always,
}

fn bold(text: &str, color: Color) -> String {
    paint(text, "1", color)
}

/// Colors a text within a line, which may come from a file.
fn paint(text: &str, code: &str, color: Color) -> String {
    let text = escape(text);
    match color {
        Color::Never => text.into_owned(),
        Color::Always => format!("\x1b[{code}m{text}\x1b[0m"),
    }
}

/// Colors a verdict, which may be padded with blanks.
fn paint_verdict(padded: &str, color: Color) -> String {
    let word = padded.trim_end();
    let code = match word.parse() {
        Ok(Verdict::Faster) => "32",
        Ok(Verdict::Slower) => "31",
        Ok(Verdict::Same) => "2",
        Ok(Verdict::Unclear) => "33",
        Err(_) => return padded.to_owned(),
    };
    paint(word, code, color) + &padded[word.len()..]
}

/// Key of cases under one heading, which are compared with each other.
fn group(case: &Case) -> impl Eq + std::hash::Hash + '_ {
    let Case { mode, name, workload, element, output, device, shape_name, shape, regime, .. } = case;
    (mode, name, workload, element, output, device, shape_name, shape, regime)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Accuracy, Estimate, Record, Speedup, Status};
    use calorimeter_case::Implementation;
    use calorimeter_case::record::{Execution, KernelShare, Outcome, Rates, SuiteSpeedup, Time, Weights};

    fn case(recipe: &str, implementation: &str) -> Case {
        Case {
            id: format!("{recipe}/{implementation}").into(),
            workload: "linear".into(),
            recipe: recipe.parse().unwrap(),
            implementation: implementation.parse().unwrap(),
            device: "cuda:0".parse().unwrap(),
            element: "bf16".parse().unwrap(),
            shape_name: "llama_ffn.w2".into(),
            shape: [("m", 1024), ("k", 1024), ("n", 1024)].into(),
            regime: "device-hot".parse().unwrap(),
            ..Case::default()
        }
    }

    fn ok(recipe: &str, implementation: &str, median: f64) -> Record {
        Record {
            time: Time {
                time_ns: Some(Estimate { median, lo: Some(median * 0.996), hi: Some(median * 1.004) }),
                ..Time::default()
            },
            execution: Execution { stopwatch: Some("cupti".into()), ..Execution::default() },
            ..Record::new(case(recipe, implementation), Status::Ok)
        }
    }

    fn against(verdict: &str, ratio: f64, record: Record) -> Record {
        let vs = "baseline/eager".into();
        let speedup = Speedup {
            vs,
            ratio,
            lo: Some(ratio * 0.9),
            hi: Some(ratio * 1.1),
            verdict: verdict.parse().unwrap(),
            ..Speedup::default()
        };
        Record { speedup: Some(speedup), ..record }
    }

    fn failed(status: Status, recipe: &str, implementation: &str, reason: &str) -> Record {
        Record {
            outcome: Outcome { reason: Some(reason.into()), ..status.into() },
            ..Record::new(case(recipe, implementation), status)
        }
    }

    fn records() -> Vec<Record> {
        let exact = Some(Box::new(Accuracy { rel_l2: Some(0.0), ..Accuracy::default() }));
        let coarse = Some(Box::new(Accuracy { sqnr_db: Some(44.149), rel_l2: Some(0.006), ..Accuracy::default() }));
        vec![
            Record {
                accuracy: exact,
                rates: Rates { tflops: Some(723.44), ..ok("baseline", "eager", 12_340.4).rates },
                weights: Weights { weight_bytes: Some(2 << 20), ..ok("baseline", "eager", 12_340.4).weights },
                ..ok("baseline", "eager", 12_340.4)
            },
            Record {
                accuracy: coarse,
                rates: Rates {
                    gbps: Some(4100.0),
                    ..against("FASTER", 1.7333, ok("int8wo", "native", 999_960.0)).rates
                },
                weights: Weights {
                    weight_bytes: Some(1 << 40),
                    ..against("FASTER", 1.7333, ok("int8wo", "native", 999_960.0)).weights
                },
                time: Time {
                    converged: Some(false),
                    ..against("FASTER", 1.7333, ok("int8wo", "native", 999_960.0)).time
                },
                ..against("FASTER", 1.7333, ok("int8wo", "native", 999_960.0))
            },
            against("SLOWER", 0.04321, ok("int8wo", "fused", 3.2e12)),
            against("INCONCLUSIVE", 1.01, ok("int8dq", "fused", 50.5)),
            Record {
                execution: Execution {
                    stopwatch: Some("timestamp queries".into()),
                    ..against("SAME", 1.0, ok("int8_dynamic_activation_intx_weight-4-32-true", "cube", 1e6)).execution
                },
                time: Time {
                    converged: Some(false),
                    ..against("SAME", 1.0, ok("int8_dynamic_activation_intx_weight-4-32-true", "cube", 1e6)).time
                },
                ..against("SAME", 1.0, ok("int8_dynamic_activation_intx_weight-4-32-true", "cube", 1e6))
            },
            failed(Status::Unsupported, "int4wo-32", "native", "native has no kernel for groups of 32"),
            failed(Status::Crashed, "float8dq-row", "cube", &"the worker\nended by signal 11 ".repeat(9)),
            Record::new(case("marlin", "eager"), Status::Timeout),
        ]
    }

    /// Text of the groups of some records.
    fn table(records: &[Record], color: Color, width: usize) -> Vec<String> {
        let mut table = LiveTable::new(color).with_width(width);
        let mut texts: Vec<String> = records.iter().filter_map(|record| table.add(record)).collect();
        texts.extend(table.finish_group());
        texts
    }

    #[test]
    fn table_matches_expected_text() {
        assert_eq!(table(&records(), Color::Never, 200).join("\n"), "\
linear  bf16  cuda:0  m1024-k1024-n1024 (llama_ffn.w2)  device-hot
recipe                                         impl        time ±      speed-up ±     verdict   SQNR   FLOP/s  GB/s    weights  stopwatch          remarks
baseline                                       eager   12.34 µs ±0.4%         -                exact  723.4 T     -  2.000 MiB  cupti
int8wo                                         native  1.000 ms ±0.4%    1.733x ±10%  FASTER    44.1        -  4100  1.000 TiB  cupti              not converged
int8wo                                         fused     3200 s ±0.4%  0.04321x ±10%  SLOWER       -        -     -          -  cupti
int8dq                                         fused   50.50 ns ±0.4%    1.010x ±10%  UNCLEAR      -        -     -          -  cupti
int8_dynamic_activation_intx_weight-4-32-true  cube    1.000 ms ±0.4%    1.000x ±10%  SAME         -        -     -          -  timestamp queries  not converged
float8dq-row                                   cube    crashed: the worker ended by signal 11 the worker ended by signal 11 the worker ended by signal 11 the worker ended by signal 11 the worker …
marlin                                         eager   timeout
  ±: half width of the 95 % interval; not converged if wider than requested
  speed-up: over recipe baseline in the same impl, or in eager
  SQNR: signal to quantization noise ratio in dB; higher is better
  verdict: SAME is within the margin; UNCLEAR has too wide an interval");
        assert_eq!(
            table(&records()[..4], Color::Never, 100).join("\n"),
            "\
linear  bf16  cuda:0  m1024-k1024-n1024 (llama_ffn.w2)  device-hot  stopwatch cupti
recipe    impl        time ±      speed-up ±     verdict   SQNR   FLOP/s  GB/s  remarks
baseline  eager   12.34 µs ±0.4%         -                exact  723.4 T     -
int8wo    native  1.000 ms ±0.4%    1.733x ±10%  FASTER    44.1        -  4100  not converged
int8wo    fused     3200 s ±0.4%  0.04321x ±10%  SLOWER       -        -     -
int8dq    fused   50.50 ns ±0.4%    1.010x ±10%  UNCLEAR      -        -     -
  ±: half width of the 95 % interval; not converged if wider than requested
  speed-up: over recipe baseline in the same impl, or in eager
  SQNR: signal to quantization noise ratio in dB; higher is better
  verdict: SAME is within the margin; UNCLEAR has too wide an interval
  hidden columns (wider terminal or results.csv): weights"
        );
        assert_eq!(
            table(&records(), Color::Never, 80).join("\n"),
            "\
linear  bf16  cuda:0  m1024-k1024-n1024 (llama_ffn.w2)  device-hot
recipe        impl        time ±      speed-up ±     verdict  remarks
baseline      eager   12.34 µs ±0.4%         -
int8wo        native  1.000 ms ±0.4%    1.733x ±10%  FASTER   not converged
int8wo        fused     3200 s ±0.4%  0.04321x ±10%  SLOWER
int8dq        fused   50.50 ns ±0.4%    1.010x ±10%  UNCLEAR
int8_dynamic_activation_intx_weight-4-32-true
              cube    1.000 ms ±0.4%    1.000x ±10%  SAME     not converged
float8dq-row  cube    crashed: the worker ended by signal 11 the worker ended …
marlin        eager   timeout
  ±: half width of the 95 % interval; not converged if wider than requested
  speed-up: over recipe baseline in the same impl, or in eager
  verdict: SAME is within the margin; UNCLEAR has too wide an interval
  hidden columns (wider terminal or results.csv): SQNR, GB/s, FLOP/s, weights,
  stopwatch"
        );
        for width in [72, 80, 100, 120, 200] {
            let text = table(&records(), Color::Never, width).concat();
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        }
    }

    #[test]
    fn columns_without_values_are_omitted() {
        let records = [ok("baseline", "eager", 1.0), against("SAME", 1.0, ok("int8wo", "eager", 1.0))];
        let names = |records: &[Record]| table(records, Color::Never, 120)[0].lines().nth(1).unwrap().to_owned();
        let columns = |records: &[Record]| names(records).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(columns(&records), ["recipe", "impl", "time", "±", "speed-up", "±", "verdict"]);
        assert_eq!(columns(&records[..1]), ["recipe", "impl", "time", "±"]);
        let failed = failed(Status::Failed, "int8wo", "eager", "broken");
        assert_eq!(columns(&[failed]), ["recipe", "impl", "time"]);
    }

    #[test]
    fn terms_are_explained_once() {
        let first = against("FASTER", 2.0, ok("int8wo", "eager", 1.0));
        let mut second = first.clone();
        second.case.shape = [("batch", 2)].into();
        second.time.launch_bound = Some(true);
        let texts = table(&[first.clone(), first, second], Color::Never, 120);
        let explained = |text: &str, term: &str| text.contains(&format!("\n  {term}: "));
        for term in ["±", "speed-up", "verdict"] {
            assert!(explained(&texts[0], term) && !explained(&texts[1], term), "{texts:?}");
        }
        assert!(!explained(&texts[0], "launch-bound") && explained(&texts[1], "launch-bound"), "{texts:?}");
        assert!(texts[1].starts_with("\nlinear  bf16  cuda:0  batch2 (llama_ffn.w2)  device-hot  stopwatch cupti\n"));
    }

    #[test]
    fn explanations_that_differ_by_group_are_repeated() {
        let margin = |margin, shape, record: Record| {
            let speedup = record.speedup.map(|speedup| Speedup { margin: Some(margin), ..speedup });
            Record { case: Case { shape: [("m", shape)].into(), ..record.case }, speedup, ..record }
        };
        let record = against("SAME", 1.0, ok("int8wo", "eager", 1.0));
        let texts = table(
            &[(0.02, 1), (0.02, 2), (0.05, 3)].map(|(m, shape)| margin(m, shape, record.clone())),
            Color::Never,
            120,
        );
        let stated = |text: &String| text.lines().find(|line| line.starts_with("  verdict: ")).map(str::to_owned);
        let [first, second, third] = [0, 1, 2].map(|group| stated(&texts[group]));
        assert!(first.unwrap().contains("2 %") && second.is_none() && third.unwrap().contains("5 %"), "{texts:?}");
    }

    #[test]
    fn color_does_not_change_text() {
        let strip = |text: String| {
            let codes = ["0", "1", "2", "31", "32", "33"];
            codes.iter().fold(text, |text, code| text.replace(&format!("\x1b[{code}m"), ""))
        };
        let colored = table(&records(), Color::Always, WIDTH).concat();
        assert_eq!(strip(colored.clone()), table(&records(), Color::Never, WIDTH).concat());
        assert_eq!(
            strip(summary(&records(), &[], Color::Always, WIDTH)),
            summary(&records(), &[], Color::Never, WIDTH)
        );
        for word in ["\x1b[32mFASTER", "\x1b[31mSLOWER", "\x1b[2mSAME", "\x1b[33mUNCLEAR", "\x1b[33mcrashed"] {
            assert!(colored.contains(&format!("{word}\x1b[0m")), "{word}: {colored:?}");
        }
        assert_eq!(escape_table(&colored), colored);
    }

    /// Records whose texts come from files, as a journal may hold them.
    fn hostile_records() -> Vec<Record> {
        const HOSTILE: &str = "\u{1b}[31mred\u{1b}[0m\n::error::\u{9b}2J\u{202e}x";
        let hostile = |mode: &str, implementation: Implementation| {
            let mut record = ok("baseline", "eager", 1.0);
            record.case = Case {
                id: format!("{implementation}{HOSTILE}").into(),
                mode: mode.parse().unwrap(),
                name: HOSTILE.into(),
                workload: HOSTILE.into(),
                recipe: HOSTILE.into(),
                sparsity: Some(HOSTILE.into()),
                implementation,
                shape_name: HOSTILE.into(),
                shape: [(HOSTILE, 8)].into(),
                ..record.case
            };
            record.execution.stopwatch = Some(HOSTILE.into());
            record.warnings.push(HOSTILE.into());
            record.profile.kernels = vec![KernelShare { name: HOSTILE.into(), calls: 1.0, nanos: 1.0, share: 1.0 }];
            record
        };
        let mut records = Vec::new();
        for mode in ["inference", "gemm"] {
            let measured = hostile(mode, Implementation::Other(HOSTILE.into()));
            let outcome = Outcome { reason: Some(HOSTILE.into()), ..Status::Failed.into() };
            records.extend([Record { outcome, ..measured.clone() }, measured, hostile(mode, Implementation::Eager)]);
        }
        records
    }

    #[test]
    fn text_from_files_stays_in_its_cell() {
        let records = hostile_records();
        let text = || records[0].case.name.clone();
        let speedup = SuiteSpeedup {
            recipe: text(),
            implementation: text(),
            device: text(),
            dtype: text(),
            regime: text(),
            cases: 2,
            ..SuiteSpeedup::default()
        };
        for width in [80, 200] {
            let mut texts = table(&records, Color::Never, width);
            texts.push(summary(&records, std::slice::from_ref(&speedup), Color::Never, width));
            texts.push(accuracy(&records, Color::Never, width));
            texts.push(operators(&records, Color::Never, width));
            for text in texts {
                assert!(text.contains("red"), "{text:?}");
                let found = text.chars().find(|&c| c != '\n' && escape::is_interpreted(c));
                assert_eq!(found, None, "{text:?}");
                assert!(!text.lines().any(|line| line.starts_with("::")), "{text}");
            }
        }
    }

    #[test]
    fn summary_matches_expected_text() {
        let mut records = records();
        for shape in 0..3 {
            let at = |record: Record| Record {
                case: Case { shape: [("m", shape)].into(), ..record.case.clone() },
                ..record
            };
            // The intervals of fp6 overlap.
            let measured = [("int8wo", "eager", 5.0), ("int8wo", "fused", 9.0), ("fp6", "eager", 100.0)];
            records.extend(measured.map(|(recipe, name, median)| at(ok(recipe, name, median))));
            records.push(at(ok("fp6", "fused", 100.5)));
        }
        for index in 0..12 {
            let mut wrong = failed(Status::Mismatch, "int4wo-32", "cube", "element 17 is NaN");
            wrong.case.id = format!("wrong/{index}").into();
            wrong.warnings.push("the clock was throttled".into());
            records.push(wrong);
        }
        assert_eq!(
            summary(&records, &[], Color::Never, WIDTH),
            "\
32 cases: 17 ok, 12 mismatch, 1 timeout, 1 crashed, 1 unsupported
fastest implementation, by number of shapes
  int8wo               eager 3, native 1
  fp6                  even 3
not measured
  mismatch, 12 cases
    element 17 is NaN
      wrong/0
      wrong/1
      wrong/2
      wrong/3
      wrong/4
      wrong/5
      wrong/6
      wrong/7
      wrong/8
      wrong/9
      and 2 more
  timeout, 1 case
      marlin/eager
  crashed, 1 case
    the worker ended by signal 11 the worker ended by signal 11 the worker ended by signal 11 the worker ended by signal
    11 the worker ended by signal 11 the worker ended by signal 11 the worker ended by signal 11 the worker ended by
    signal 11 the worker ended by signal 11
      float8dq-row/cube
  1 case unsupported: native has no kernel for groups of 32
warnings
  12 × the clock was throttled

int8wo native is up to 1.73x (±10%) faster than the eager bf16 baseline, at 44 dB SQNR (linear, m1024-k1024-n1024).
Noise: 2 of 17 cases did not converge; close programs or raise --max-time."
        );
        assert_eq!(summary(&[], &[], Color::Never, WIDTH), "0 cases");
    }
}
