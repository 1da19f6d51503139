//! Operator tables: one per operator, a row per shape, a column per implementation.

use super::column::{CellStyle, IMPORTANT, TextColumn, drop_columns, header_line, line_width, row_line};
use super::text::{self, four_digits, indented, nanoseconds, wrap};
use super::{Color, EVEN, bold, legend};
use calorimeter_case::record::{PeakMemory, Record, Status};
use calorimeter_case::{Axes, Case, Device, Element, Implementation, Name, Regime};

/// Formats a table per operator, dtype, device and regime, in lines of at most `width` characters.
///
/// A cell is the time of one run, or the status if there is none. The following columns show the fastest of several
/// implementations with its speed-up and verdict, rates, share of the binding peak, and peak memory above the inputs.
/// Columns that do not fit are dropped and named at the end. The table is followed by the geometric mean of each
/// implementation's speed-ups and by the size from which on one of them is the fastest, as far as confidence intervals
/// allow. Unsupported cases have no row and column.
pub fn operators(records: &[Record], color: Color, width: usize) -> String {
    let mut tables: Vec<OperatorTable> = Vec::new();
    let exists = |record: &&Record| record.outcome.status != Status::Unsupported;
    for record in records.iter().filter(|record| record.case.mode.is_operator()).filter(exists) {
        let place = tables.iter().position(|table| table.key == table_key(&record.case)).unwrap_or_else(|| {
            tables.push(OperatorTable { key: table_key(&record.case), rows: Vec::new() });
            tables.len() - 1
        });
        tables[place].add(record);
    }
    let (mut texts, mut dropped) = (Vec::new(), Vec::new());
    for table in &tables {
        let (text, names) = table.text(color, width);
        texts.push(text);
        dropped.extend(names);
    }
    texts.extend(legend::hidden_columns(&dropped).map(|line| indented(&line, 2, width)));
    texts.join("\n\n")
}

/// Key of a table.
fn table_key(case: &Case) -> OperatorKey {
    (case.workload, case.element, case.output, case.device, case.regime)
}

type OperatorKey = (Name, Element, Option<Element>, Device, Regime);

struct OperatorTable<'a> {
    key: OperatorKey,
    rows: Vec<OperatorRow<'a>>,
}

/// Shape with the record of each implementation.
struct OperatorRow<'a> {
    case: &'a Case,
    records: Vec<&'a Record>,
}

impl<'a> OperatorTable<'a> {
    fn add(&mut self, record: &'a Record) {
        let case = &record.case;
        let same = |row: &&mut OperatorRow<'a>| {
            row.case.shape == case.shape && !row.records.iter().any(|r| r.case.implementation == case.implementation)
        };
        match self.rows.iter_mut().find(same) {
            Some(row) => row.records.push(record),
            None => self.rows.push(OperatorRow { case, records: vec![record] }),
        }
    }

    fn implementations(&self) -> Vec<Implementation> {
        let mut once: Vec<Implementation> = Vec::new();
        for record in self.rows.iter().flat_map(|row| &row.records) {
            if !once.contains(&record.case.implementation) {
                once.push(record.case.implementation);
            }
        }
        once
    }

    /// Formats the table; also returns the names of dropped columns.
    fn text(&self, color: Color, width: usize) -> (String, Vec<String>) {
        let (workload, element, output, device, regime) = self.key;
        let output = output.map_or_else(String::new, |output| format!("{output}  "));
        let shape: Axes = self.axes().0.into_iter().map(|(name, size)| (name.to_owned(), size)).collect();
        let shape = Some(shape.to_string()).filter(|shape| !shape.is_empty()).map_or_else(String::new, |s| s + "  ");
        let title = format!("{workload}  {element}  {output}{device}  {shape}{regime}");
        let mut lines = vec![bold(&title, color)];
        let (rows, dropped) = self.lines(color, width);
        lines.extend(rows);
        let sentences = self.means().into_iter().chain(self.crossover());
        lines.extend(sentences.flat_map(|sentence| wrap(&sentence, width)));
        (lines.join("\n"), dropped)
    }

    /// Column names, and a row for each shape. Columns that do not fit are dropped; their names are returned.
    fn lines(&self, color: Color, width: usize) -> (Vec<String>, Vec<String>) {
        let mut columns: Vec<TextColumn> = self.shape().into_iter().chain(self.times()).chain(self.notes()).collect();
        let dropped = drop_columns(&mut columns, width);
        // Shapes with many varying axes are printed above their times.
        let shape_above = line_width(&columns) > width;
        if shape_above {
            columns = self.times();
        }
        let indent = if shape_above { "    " } else { "" };
        let mut lines = vec![format!("{indent}{}", header_line(&columns, color))];
        for (index, row) in self.rows.iter().enumerate() {
            if shape_above {
                lines.extend(wrap(&row.case.shape.to_string(), width));
            }
            lines.push(format!("{indent}{}", row_line(&columns, index, color)));
        }
        (lines, dropped)
    }

    /// Axes that all rows share with their sizes, and names of the other axes.
    fn axes(&self) -> (Vec<(&'a str, u64)>, Vec<&'a str>) {
        let Some(first) = self.rows.first() else { return Default::default() };
        let is_shared =
            |(name, size): &(&str, u64)| self.rows.iter().all(|row| row.case.shape.get(name) == Some(*size));
        let (shared, varying): (Vec<_>, Vec<_>) = first.case.shape.iter().partition(is_shared);
        (shared, varying.into_iter().map(|(name, _)| name).collect())
    }

    /// A column for each axis whose size varies.
    fn shape(&self) -> Vec<TextColumn> {
        let size = |row: &OperatorRow, axis: &str| row.case.shape.get(axis).map_or("-".into(), |size| size.to_string());
        let column = |axis: &str| TextColumn::right_aligned(axis, self.rows.iter().map(|row| size(row, axis)));
        self.axes().1.into_iter().map(column).collect()
    }

    /// A column for each implementation.
    fn times(&self) -> Vec<TextColumn> {
        let column = |name: Implementation| {
            TextColumn::right_aligned(name.name().as_str(), self.rows.iter().map(|row| row.cell(name)))
        };
        self.implementations().into_iter().map(column).collect()
    }

    /// Columns about the fastest implementation; empty ones are omitted.
    fn notes(&self) -> Vec<TextColumn> {
        let column = |rank, name: &str, cell: fn(&OperatorRow<'a>) -> Option<String>| {
            let cells = self.rows.iter().map(|row| cell(row).unwrap_or_default());
            TextColumn { rank, ..TextColumn::right_aligned(name, cells) }
        };
        let all = [
            TextColumn { style: CellStyle::Text, ..column(IMPORTANT, "fastest", OperatorRow::best_name) },
            column(2, "speed-up", OperatorRow::ratio),
            TextColumn { style: CellStyle::Verdict, ..column(3, "verdict", OperatorRow::verdict) },
            column(5, "FLOP/s", OperatorRow::operations),
            column(4, "GB/s", OperatorRow::rate),
            column(6, "of peak", OperatorRow::share),
            column(7, "memory", OperatorRow::peak_memory),
        ];
        all.into_iter().filter(|column| !column.is_empty()).collect()
    }

    /// Geometric means of each implementation's speed-ups over the shapes; one sentence per number of shapes.
    fn means(&self) -> Vec<String> {
        let mut means: Vec<(usize, Vec<String>)> = Vec::new();
        for name in self.implementations() {
            let of = |row: &OperatorRow| row.record(name)?.speedup.as_ref().map(|speedup| speedup.ratio.ln());
            let logs: Vec<f64> = self.rows.iter().filter_map(of).collect();
            if logs.len() < 2 {
                continue;
            }
            let mean = format!("{name} {}x", four_digits((logs.iter().sum::<f64>() / logs.len() as f64).exp()));
            match means.iter_mut().find(|(count, _)| *count == logs.len()) {
                Some((_, names)) => names.push(mean),
                None => means.push((logs.len(), vec![mean])),
            }
        }
        let sentence = |(count, names): (usize, Vec<String>)| {
            format!("speed-up over {count} shapes, geometric mean: {}", names.join(", "))
        };
        means.into_iter().map(sentence).collect()
    }

    /// Implementation that is the fastest at the largest shapes, and the size from which on it is.
    fn crossover(&self) -> Option<String> {
        let mut rows: Vec<(&OperatorRow, Implementation)> =
            self.rows.iter().filter_map(|row| Some((row, row.winner()?))).collect();
        rows.sort_by_key(|(row, _)| row.case.bytes);
        let (_, last) = *rows.last()?;
        match rows.iter().rposition(|(_, winner)| *winner != last) {
            None if rows.len() > 1 => Some(format!("{last} is the fastest at every shape")),
            None => None,
            Some(before) => {
                let (from, (_, below)) = (rows.get(before + 1)?.0, rows[before]);
                let moved =
                    from.case.bytes.map_or_else(String::new, |bytes| format!(" ({} moved)", text::memory(bytes)));
                Some(format!(
                    "{last} is the fastest from {}{moved} on; below that {below} sometimes is",
                    from.case.shape
                ))
            }
        }
    }
}

impl<'a> OperatorRow<'a> {
    fn record(&self, implementation: Implementation) -> Option<&'a Record> {
        self.records.iter().copied().find(|record| record.case.implementation == implementation)
    }

    fn cell(&self, implementation: Implementation) -> String {
        match self.record(implementation) {
            None => "-".into(),
            Some(record) if record.outcome.status == Status::Ok => {
                record.time.time_ns.map_or("checked".into(), |time| nanoseconds(time.median))
            }
            Some(record) => record.outcome.status.as_str().into(),
        }
    }

    /// Measured implementations with their times.
    fn timed(&self) -> impl Iterator<Item = (&'a Record, f64)> {
        let ok = self.records.iter().copied().filter(|record| record.outcome.status == Status::Ok);
        ok.filter_map(|record| Some((record, record.time.time_ns?.median)))
    }

    fn fastest(&self) -> Option<&'a Record> {
        self.timed().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(record, _)| record)
    }

    /// Fastest of several implementations, if no other confidence interval overlaps its own.
    fn winner(&self) -> Option<Implementation> {
        let fastest = (self.timed().count() > 1).then(|| self.fastest()).flatten()?;
        let end = |record: &Record| record.time.time_ns.map(|time| time.hi.unwrap_or(time.median));
        let start = |record: &Record| record.time.time_ns.map(|time| time.lo.unwrap_or(time.median));
        let mut others = self.timed().map(|(record, _)| record).filter(|record| record.case.id != fastest.case.id);
        others.all(|other| start(other) > end(fastest)).then_some(fastest.case.implementation)
    }

    /// Fastest of several implementations.
    fn fastest_of_several(&self) -> Option<&'a Record> {
        (self.timed().count() > 1).then(|| self.fastest()).flatten()
    }

    fn best_name(&self) -> Option<String> {
        self.fastest_of_several()?;
        Some(self.winner().map_or_else(|| EVEN.into(), |name| name.to_string()))
    }

    fn ratio(&self) -> Option<String> {
        self.winner()?;
        Some(format!("{}x", four_digits(self.fastest_of_several()?.speedup.as_ref()?.ratio)))
    }

    fn verdict(&self) -> Option<String> {
        self.winner()?;
        Some(self.fastest_of_several()?.speedup.as_ref()?.verdict.as_str().into())
    }

    fn operations(&self) -> Option<String> {
        self.fastest()?.rates.tflops.filter(|rate| *rate > 0.0).map(text::operations)
    }

    fn rate(&self) -> Option<String> {
        Some(four_digits(self.fastest()?.rates.gbps?))
    }

    fn share(&self) -> Option<String> {
        let roof = self.fastest()?.rates.roofline.as_ref()?;
        Some(format!("{:.0} % {}", roof.percent, roof.bound))
    }

    /// Peak memory above the inputs.
    fn peak_memory(&self) -> Option<String> {
        let memory: &PeakMemory = self.fastest()?.footprint.memory.as_deref()?;
        memory.peak_above_inputs.map(|bytes| format!("{}+{}", memory.bound.prefix(), text::memory(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Estimate, Speedup};
    use calorimeter_case::Verdict;
    use calorimeter_case::record::{Outcome, Rates, Time};

    fn record(implementation: &str, dimension: u64, nanos: f64, ratio: Option<f64>) -> Record {
        let case = Case {
            id: format!("{implementation}/{dimension}").into(),
            mode: "ops".parse().unwrap(),
            workload: "softmax".into(),
            element: "f32".parse().unwrap(),
            device: "cuda:0".parse().unwrap(),
            regime: "device-cold".parse().unwrap(),
            implementation: implementation.parse().unwrap(),
            shape: [("batch", 16), ("dimension", dimension)].into(),
            bytes: Some(dimension << 20),
            ..Case::default()
        };
        let speedup = ratio.map(|ratio| Speedup { ratio, verdict: Verdict::Faster, ..Speedup::default() });
        let time_ns = Some(Estimate { median: nanos, lo: None, hi: None });
        Record {
            speedup,
            time: Time { time_ns, ..Time::default() },
            rates: Rates { gbps: Some(100.0), ..Rates::default() },
            ..Record::new(case, Status::Ok)
        }
    }

    #[test]
    fn operator_table_matches_expected_text() {
        let mut records = vec![
            record("eager", 32, 1_000.0, None),
            record("cube", 32, 2_000.0, Some(0.5)),
            record("eager", 64, 4_000.0, None),
            record("cube", 64, 2_000.0, Some(2.0)),
            record("eager", 128, 8_000.0, None),
            record("cube", 128, 4_000.0, Some(2.0)),
        ];
        records.push(Record {
            outcome: Outcome { reason: Some("none".into()), ..Status::Unsupported.into() },
            ..Record::new(
                Case { implementation: "native".parse().unwrap(), ..records[0].case.clone() },
                Status::Unsupported,
            )
        });
        let expected = "\
softmax  f32  cuda:0  batch16  device-cold
dimension     eager      cube  fastest  speed-up  verdict   GB/s
       32  1.000 µs  2.000 µs  eager                       100.0
       64  4.000 µs  2.000 µs  cube       2.000x  FASTER   100.0
      128  8.000 µs  4.000 µs  cube       2.000x  FASTER   100.0
speed-up over 3 shapes, geometric mean: cube 1.260x
cube is the fastest from batch16-dimension64 (64.00 MiB moved) on; below that eager sometimes is";
        assert_eq!(operators(&records, Color::Never, 120), expected);
        let narrow = "\
softmax  f32  cuda:0  batch16  device-cold
dimension     eager      cube  fastest  speed-up
       32  1.000 µs  2.000 µs  eager
       64  4.000 µs  2.000 µs  cube       2.000x
      128  8.000 µs  4.000 µs  cube       2.000x
speed-up over 3 shapes, geometric mean: cube 1.260x
cube is the fastest from batch16-dimension64 (64.00
MiB moved) on; below that eager sometimes is

  hidden columns (wider terminal or results.csv):
  verdict, GB/s";
        assert_eq!(operators(&records, Color::Never, 52), narrow);
        let narrower = "\
softmax  f32  cuda:0  batch16  device-cold
       eager      cube
batch16-dimension32
    1.000 µs  2.000 µs
batch16-dimension64";
        assert!(operators(&records, Color::Never, 26).starts_with(narrower));
        for width in [52, 60, 80, 120] {
            let text = operators(&records, Color::Never, width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        }
    }

    #[test]
    fn overlapping_intervals_have_no_winner() {
        let mut records = vec![record("eager", 32, 1_000.0, None), record("cube", 32, 990.0, Some(1.01))];
        let time = |median: f64| Some(Estimate { median, lo: Some(median - 20.0), hi: Some(median + 20.0) });
        (records[0].time.time_ns, records[1].time.time_ns) = (time(1_000.0), time(990.0));
        let case = Case { id: "none".into(), implementation: "native".parse().unwrap(), ..records[0].case.clone() };
        records.push(Record::new(case, Status::Unsupported));
        records.push(Record {
            rates: Rates { tflops: Some(0.25), ..Rates::default() },
            ..record("eager", 64, 2_000.0, None)
        });
        let expected = "\
softmax  f32  cuda:0  batch16  device-cold
dimension     eager      cube  fastest   FLOP/s   GB/s
       32  1.000 µs  990.0 ns  even              100.0
       64  2.000 µs         -           250.0 G";
        assert_eq!(operators(&records, Color::Never, 80), expected);
    }

    #[test]
    fn every_suite_is_shown_except_models() {
        for (mode, expected) in [("inference", false), ("training", false), ("links", true), ("elsewhere", true)] {
            let mut record = record("eager", 1, 1.0, None);
            record.case.mode = mode.parse().unwrap();
            assert_eq!(!operators(&[record], Color::Never, 80).is_empty(), expected, "{mode}");
        }
    }
}
