//! Operators side by side: a table for each, a row for each shape, a column for each implementation.

use super::text::{self, four_digits, nanoseconds};
use super::{Colour, bold};
use calorimeter_case::record::{Memory, Record, Status};
use calorimeter_case::{Case, Device, Element, Implementation, Name, Regime};

const CELL: usize = 11;

/// One table for each operator, number type, device and regime. A cell is the time of one run, or why there is none; then
/// come the fastest implementation with its speed-up, rate, share of the measured roof that binds and peak of memory above
/// its inputs. Under a table stand the geometric mean of the speed-ups of each implementation, and the size from which on
/// one of them stays the fastest, as far as intervals tell.
pub fn operators(records: &[Record], colour: Colour) -> String {
    let mut tables: Vec<Table> = Vec::new();
    for record in records.iter().filter(|record| record.case.mode.is_operator()) {
        let place = tables.iter().position(|table| table.key == key(&record.case)).unwrap_or_else(|| {
            tables.push(Table { key: key(&record.case), rows: Vec::new() });
            tables.len() - 1
        });
        tables[place].put(record);
    }
    tables.iter().map(|table| table.text(colour)).collect::<Vec<_>>().join("\n\n")
}

/// What the cells of a table have in common.
fn key(case: &Case) -> Key {
    (case.workload, case.element, case.output, case.device, case.regime)
}

type Key = (Name, Element, Option<Element>, Device, Regime);

struct Table<'a> {
    key: Key,
    rows: Vec<Row<'a>>,
}

/// A shape, with the record of each implementation.
struct Row<'a> {
    case: &'a Case,
    records: Vec<&'a Record>,
}

impl<'a> Table<'a> {
    fn put(&mut self, record: &'a Record) {
        let case = &record.case;
        let same = |row: &&mut Row<'a>| {
            row.case.shape == case.shape && !row.records.iter().any(|r| r.case.implementation == case.implementation)
        };
        match self.rows.iter_mut().find(same) {
            Some(row) => row.records.push(record),
            None => self.rows.push(Row { case, records: vec![record] }),
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

    fn text(&self, colour: Colour) -> String {
        let implementations = self.implementations();
        let axes: Vec<&str> =
            self.rows.first().map(|row| row.case.shape.iter().map(|(name, _)| name).collect()).unwrap_or_default();
        let width = |axis: &&str| axis.len().max(6);
        let mut heading: String = axes.iter().map(|axis| format!("{axis:>0$}  ", width(axis))).collect();
        heading.extend(implementations.iter().map(|name| format!("{name:>CELL$}")));
        heading.push_str("   fastest");
        let (workload, element, output, device, regime) = self.key;
        let output = output.map_or_else(String::new, |output| format!("{output}  "));
        let title = format!("{workload}  {element}  {output}{device}  {regime}");
        let mut lines = vec![bold(&title, colour), bold(&heading, colour)];
        for row in &self.rows {
            let shape = axes.iter().map(|axis| {
                let size = row.case.shape.get(axis).map_or("-".into(), |size| size.to_string());
                format!("{size:>0$}  ", width(axis))
            });
            let cells = implementations.iter().map(|name| format!("{:>CELL$}", row.cell(*name)));
            let line: String = shape.chain(cells).chain([format!("   {}", row.best())]).collect();
            lines.push(line.trim_end().to_owned());
        }
        lines.extend(implementations.iter().filter_map(|name| self.mean(*name)));
        lines.extend(self.crossover());
        lines.join("\n")
    }

    /// The geometric mean of an implementation's speed-ups over the shapes.
    fn mean(&self, implementation: Implementation) -> Option<String> {
        let of = |row: &Row| row.record(implementation)?.speedup.as_ref().map(|speedup| speedup.ratio.ln());
        let logs: Vec<f64> = self.rows.iter().filter_map(of).collect();
        let ratio = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        (logs.len() > 1).then(|| {
            format!("{implementation}: {}x by the geometric mean over {} shapes", four_digits(ratio), logs.len())
        })
    }

    /// The implementation that is the fastest at the largest shapes, and from which size on it is.
    fn crossover(&self) -> Option<String> {
        let mut rows: Vec<(&Row, Implementation)> =
            self.rows.iter().filter_map(|row| Some((row, row.winner()?))).collect();
        rows.sort_by_key(|(row, _)| row.case.bytes);
        let (_, last) = *rows.last()?;
        match rows.iter().rposition(|(_, winner)| *winner != last) {
            None if rows.len() > 1 => Some(format!("{last} is the fastest at every shape")),
            None => None,
            Some(before) => {
                let (from, (_, below)) = (rows.get(before + 1)?.0, rows[before]);
                let moved =
                    from.case.bytes.map_or_else(String::new, |bytes| format!(", {} moved", text::memory(bytes)));
                Some(format!(
                    "{last} is the fastest from {}{moved}, on; below it {below} wins at times",
                    from.case.shape
                ))
            }
        }
    }
}

impl<'a> Row<'a> {
    fn record(&self, implementation: Implementation) -> Option<&'a Record> {
        self.records.iter().copied().find(|record| record.case.implementation == implementation)
    }

    fn cell(&self, implementation: Implementation) -> String {
        match self.record(implementation) {
            None => "-".into(),
            Some(record) if record.outcome.status == Status::Ok => {
                record.time.time_ns.map_or("checked".into(), |time| nanoseconds(time.median))
            }
            // Too long for a cell; the reason stands in the list of what was not measured.
            Some(record) if record.outcome.status == Status::Unsupported => "unsupp.".into(),
            Some(record) => record.outcome.status.as_str().into(),
        }
    }

    /// The measured implementations.
    fn timed(&self) -> impl Iterator<Item = (&'a Record, f64)> {
        let ok = self.records.iter().copied().filter(|record| record.outcome.status == Status::Ok);
        ok.filter_map(|record| Some((record, record.time.time_ns?.median)))
    }

    fn fastest(&self) -> Option<&'a Record> {
        self.timed().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(record, _)| record)
    }

    /// The fastest of several, where the intervals of the others do not reach its own.
    fn winner(&self) -> Option<Implementation> {
        let fastest = (self.timed().count() > 1).then(|| self.fastest()).flatten()?;
        let end = |record: &Record| record.time.time_ns.map(|time| time.hi.unwrap_or(time.median));
        let start = |record: &Record| record.time.time_ns.map(|time| time.lo.unwrap_or(time.median));
        let mut others = self.timed().map(|(record, _)| record).filter(|record| record.case.id != fastest.case.id);
        others.all(|other| start(other) > end(fastest)).then_some(fastest.case.implementation)
    }

    fn best(&self) -> String {
        let Some(record) = self.fastest() else { return "-".into() };
        let speedup = record.speedup.as_ref().filter(|_| self.timed().count() > 1);
        let parts = [
            Some(record.case.implementation.to_string()),
            speedup.map(|speedup| format!("{}x {}", four_digits(speedup.ratio), speedup.verdict)),
            record.rates.gbps.map(|gbps| format!("{} GB/s", four_digits(gbps))),
            record.rates.roofline.as_ref().map(|roof| format!("{:.0} % {}", roof.percent, roof.bound)),
            record.footprint.memory.as_deref().and_then(above),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
    }
}

/// The peak above the inputs.
fn above(memory: &Memory) -> Option<String> {
    memory.peak_above_inputs.map(|bytes| format!("{}+{}", memory.bound.sign(), text::memory(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Estimate, Speedup};
    use calorimeter_case::Verdict;
    use calorimeter_case::record::{Outcome, Rates, Time};

    fn record(implementation: &str, dimension: u64, nanos: f64, ratio: Option<f64>) -> Record {
        let case = Case {
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
    fn shapes_are_rows_implementations_columns_and_the_crossover_is_told() {
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
softmax  f32  cuda:0  device-cold
 batch  dimension        eager       cube     native   fastest
    16         32     1.000 µs   2.000 µs    unsupp.   eager  100.0 GB/s
    16         64     4.000 µs   2.000 µs          -   cube  2.000x FASTER  100.0 GB/s
    16        128     8.000 µs   4.000 µs          -   cube  2.000x FASTER  100.0 GB/s
cube: 1.260x by the geometric mean over 3 shapes
cube is the fastest from batch16-dimension64, 64.00 MiB moved, on; below it eager wins at times";
        assert_eq!(operators(&records, Colour::Never), expected);
    }

    #[test]
    fn models_are_not_operators_and_every_suite_is_of_some() {
        for (mode, expected) in [("inference", false), ("training", false), ("links", true), ("elsewhere", true)] {
            let mut record = record("eager", 1, 1.0, None);
            record.case.mode = mode.parse().unwrap();
            assert_eq!(!operators(&[record], Colour::Never).is_empty(), expected, "{mode}");
        }
    }
}
