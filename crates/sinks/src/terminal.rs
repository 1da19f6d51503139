//! Live table of a run, summary, and accuracy table: pure functions from records to text.
//!
//! Columns have fixed widths, so that a row can be printed as soon as its case is done. Lines have at most [`WIDTH`]
//! characters. Colors carry no information of their own. No text ends in a line feed.

mod accuracy;
mod column;
mod escape;
mod live;
mod operators;
mod programs;
mod summary;
mod text;

pub use accuracy::accuracy;
pub use escape::{escape, escape_lines, escape_table};
pub use live::{LiveTable, heading, row};
pub use operators::operators;
pub use summary::summary;
pub use text::{four_digits, nanoseconds, operations, wrap};

use calorimeter_case::Case;

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
    /// Bold headings, green and red verdicts, yellow statuses.
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

    #[test]
    fn live_table_matches_expected_text() {
        let mut table = LiveTable::new(Color::Never);
        let lines: Vec<String> = records().iter().filter_map(|record| table.show(record)).collect();
        assert_eq!(
            lines.join("\n"),
            "\
linear  bf16  cuda:0  m1024-k1024-n1024 (llama_ffn.w2)  device-hot
recipe               impl        time ±       speed-up ±      verdict     FLOP/s   SQNR    weights  stopwatch
baseline             eager   12.34 µs ±0.4%          -                   723.4 T  exact  2.000 MiB  cupti
int8wo               native  1.000 ms ±0.4%     1.733x ±10%   FASTER   4100 GB/s   44.1  1.000 TiB  cupti, not converged
int8wo               fused     3200 s ±0.4%   0.04321x ±10%   SLOWER           -      -          -  cupti
int8dq               fused   50.50 ns ±0.4%     1.010x ±10%   UNCLEAR          -      -          -  cupti
int8_dynamic_activation_intx_weight-4-32-true
                     cube    1.000 ms ±0.4%     1.000x ±10%   SAME             -      -          -
    timestamp queries, not converged
float8dq-row         cube    crashed
    the worker ended by signal 11 the worker ended by signal 11 the worker ended by signal 11 the worker ended by signal
    11 the worker ended by signal 11 the worker ended by signal 11 the worker ended by signal 11 the worker ended by
    signal 11 the worker ended by signal 11
marlin               eager   timeout"
        );
        assert!(lines.iter().flat_map(|text| text.lines()).all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn narrow_terminals_keep_one_row_per_case() {
        let mut table = LiveTable::new(Color::Never).with_width(80);
        let lines: Vec<String> = records().iter().filter_map(|record| table.show(record)).take(3).collect();
        assert_eq!(
            lines.join("\n"),
            "\
linear  bf16  cuda:0  m1024-k1024-n1024 (llama_ffn.w2)  device-hot
recipe               impl        time ±       speed-up ±      verdict
baseline             eager   12.34 µs ±0.4%          -
    723.4 TFLOP/s, SQNR exact, weights 2.000 MiB, cupti
int8wo               native  1.000 ms ±0.4%     1.733x ±10%   FASTER
    4100 GB/s, SQNR 44.1, weights 1.000 TiB, cupti, not converged
int8wo               fused     3200 s ±0.4%   0.04321x ±10%   SLOWER
    cupti"
        );
        for width in [72, 80, 120, 200] {
            let mut table = LiveTable::new(Color::Never).with_width(width);
            let text: Vec<String> = records().iter().filter_map(|record| table.show(record)).collect();
            assert!(text.iter().flat_map(|text| text.lines()).all(|line| line.chars().count() <= width), "{text:?}");
        }
        let mut wide = LiveTable::new(Color::Never).with_width(200);
        let lines: Vec<String> = records().iter().filter_map(|record| wide.show(record)).collect();
        assert!(lines[4].ends_with("-  timestamp queries, not converged"), "{lines:?}");
    }

    #[test]
    fn new_groups_get_a_heading() {
        let mut table = LiveTable::new(Color::Never);
        let first = ok("baseline", "eager", 1.0);
        let mut second = first.clone();
        second.case.shape_name = String::new();
        second.case.shape = [("batch", 2)].into();
        let headings = [&first, &first, &second].map(|record| table.show(record).unwrap().lines().count());
        assert_eq!(headings, [3, 1, 4]);
        assert!(
            table
                .show(&first)
                .unwrap()
                .starts_with("\nlinear  bf16  cuda:0  m1024-k1024-n1024 (llama_ffn.w2)  device-hot\n")
        );
    }

    #[test]
    fn color_does_not_change_text() {
        let strip = |text: String| {
            ["0", "1", "31", "32", "33"].iter().fold(text, |text, code| text.replace(&format!("\x1b[{code}m"), ""))
        };
        for record in records() {
            assert_eq!(strip(row(&record, Color::Always, WIDTH)), row(&record, Color::Never, WIDTH));
            assert_eq!(strip(heading(&record.case, Color::Always, WIDTH)), heading(&record.case, Color::Never, WIDTH));
        }
        assert_eq!(
            strip(summary(&records(), &[], Color::Always, WIDTH)),
            summary(&records(), &[], Color::Never, WIDTH)
        );
        assert!(row(&records()[1], Color::Always, WIDTH).contains(" \x1b[32mFASTER\x1b[0m "));
        assert!(row(&records()[2], Color::Always, WIDTH).contains(" \x1b[31mSLOWER\x1b[0m "));
        assert!(row(&records()[5], Color::Always, WIDTH).contains(" \x1b[33munsupported\x1b[0m: native"));
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
            let mut table = LiveTable::new(Color::Never).with_width(width);
            let mut texts: Vec<String> = records.iter().filter_map(|record| table.show(record)).collect();
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
        records.push(ok("int8wo", "eager", 5.0));
        // Overlapping intervals.
        records.extend([ok("fp6", "eager", 100.0), ok("fp6", "fused", 100.5)]);
        for index in 0..12 {
            let mut wrong = failed(Status::Mismatch, "int4wo-32", "cube", "element 17 is NaN");
            wrong.case.id = format!("wrong/{index}").into();
            wrong.warnings.push("the clock was throttled".into());
            records.push(wrong);
        }
        assert_eq!(
            summary(&records, &[], Color::Never, WIDTH),
            "\
23 cases: 8 ok, 12 mismatch, 1 timeout, 1 crashed, 1 unsupported
fastest implementation, by number of shapes
  int8wo               eager 1
  fp6                  even 1
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
  unsupported, 1 case
    1 × native has no kernel for groups of 32
warnings
  12 × the clock was throttled"
        );
        assert_eq!(summary(&[], &[], Color::Never, WIDTH), "0 cases");
    }
}
