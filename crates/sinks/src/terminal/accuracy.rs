//! Accuracy and weight size: a row per recipe, a column per model and shape.

use super::live::sqnr;
use super::text::nanoseconds;
use super::{Color, bold, escape, paint};
use calorimeter_case::record::{Record, Status};
use calorimeter_case::{Case, Device, Element, Implementation, Mode};
use std::collections::HashMap;

/// Blanks between columns.
const GAP: usize = 2;
const TRAILING_HEADERS: &str = "  weights  quantize";

/// Formats a table per dtype, device and implementation, in lines of at most `width` characters; wider tables are
/// split.
///
/// A cell is the SQNR in dB, `exact` if the output equals the reference, or the status of a case that is not ok.
/// `weights` is the size of the stored weights relative to the baseline, `quantize` the host time to prune and quantize
/// them; both are sums over the measured cells of the row. Recipes that are unsupported everywhere have no row.
pub fn accuracy(records: &[Record], color: Color, width: usize) -> String {
    let mut tables: Vec<AccuracyTable> = Vec::new();
    for record in records {
        let key = table_key(&record.case);
        let place = tables.iter().position(|table| table.key == key).unwrap_or_else(|| {
            tables.push(AccuracyTable { key, recipes: Vec::new(), columns: Vec::new() });
            tables.len() - 1
        });
        tables[place].add(record);
    }
    tables.iter_mut().for_each(AccuracyTable::remove_unsupported);
    let parts: Vec<String> = tables.iter().flat_map(|table| table.parts(color, width)).collect();
    parts.join("\n\n")
}

/// Key of a table; relative weight sizes are comparable within one dtype only.
fn table_key(case: &Case) -> AccuracyKey {
    (case.mode, case.element, case.device, case.implementation)
}

type AccuracyKey = (Mode, Element, Device, Implementation);

struct AccuracyTable<'a> {
    key: AccuracyKey,
    recipes: Vec<String>,
    columns: Vec<AccuracyColumn<'a>>,
}

/// Model at a shape, with the records of its recipes.
struct AccuracyColumn<'a> {
    case: &'a Case,
    records: HashMap<String, &'a Record>,
}

impl<'a> AccuracyTable<'a> {
    fn add(&mut self, record: &'a Record) {
        let (case, recipe) = (&record.case, escape(&record.case.variant()).into_owned());
        if !self.recipes.contains(&recipe) {
            self.recipes.push(recipe.clone());
        }
        let identity = |case: &'a Case| (&case.name, &case.workload, &case.shape, &case.shape_name);
        // A case that occurs twice in the plan opens a second column.
        let free = |c: &&mut AccuracyColumn<'a>| identity(c.case) == identity(case) && !c.records.contains_key(&recipe);
        match self.columns.iter_mut().find(free) {
            Some(column) => drop(column.records.insert(recipe, record)),
            None => self.columns.push(AccuracyColumn { case, records: [(recipe, record)].into() }),
        }
    }

    /// Removes recipes that are unsupported everywhere, and columns that are empty without them.
    fn remove_unsupported(&mut self) {
        let is_absent =
            |record: Option<&&Record>| record.is_none_or(|record| record.outcome.status == Status::Unsupported);
        let columns = &self.columns;
        let absent = |recipe: &String| columns.iter().all(|column| is_absent(column.records.get(recipe)));
        let (absent, recipes) = std::mem::take(&mut self.recipes).into_iter().partition(absent);
        let absent: Vec<String> = absent;
        self.recipes = recipes;
        for column in &mut self.columns {
            column.records.retain(|recipe, _| !absent.contains(recipe));
        }
        self.columns.retain(|column| !column.records.is_empty());
    }

    /// Formats the table, split if the columns exceed the width.
    fn parts(&self, color: Color, width: usize) -> Vec<String> {
        let widest = self.columns.iter().map(AccuracyColumn::width).max().unwrap_or(0);
        // A name that leaves too few characters for a column gets its own line.
        let most = width.saturating_sub(widest + TRAILING_HEADERS.len()).max("recipe".len());
        let names = self.recipes.iter().map(|recipe| recipe.chars().count());
        let recipe_width = names.filter(|&name| name <= most).max().unwrap_or(0).max("recipe".len());
        let room = width.saturating_sub(recipe_width + TRAILING_HEADERS.len());
        let mut parts: Vec<Vec<&AccuracyColumn>> = Vec::new();
        let mut taken = 0;
        for column in &self.columns {
            taken += column.width();
            match parts.last_mut() {
                Some(part) if taken <= room => part.push(column),
                _ => {
                    parts.push(vec![column]);
                    taken = column.width();
                }
            }
        }
        parts.iter().map(|columns| self.part(columns, recipe_width, color)).collect()
    }

    fn part(&self, columns: &[&AccuracyColumn], recipe_width: usize, color: Color) -> String {
        let (_, element, device, implementation) = self.key;
        let mut lines = vec![bold(&format!("{element}  {device}  {implementation}  SQNR in dB"), color)];
        for (line, recipe, tail) in [(0, "recipe", TRAILING_HEADERS), (1, "", ""), (2, "", "")] {
            let labels = columns.iter().map(|column| format!("{:>1$}", column.labels()[line], column.width()));
            let text = format!("{recipe:recipe_width$}{}{tail}", labels.collect::<String>());
            if !text.trim().is_empty() {
                lines.push(bold(text.trim_end(), color));
            }
        }
        for recipe in &self.recipes {
            let row: Vec<Option<&Record>> = columns.iter().map(|column| column.records.get(recipe).copied()).collect();
            if row.iter().any(Option::is_some) {
                let cells = columns.iter().zip(&row).map(|(column, record)| column.cell(*record, color));
                let cells = cells.collect::<String>() + &trailing_cells(&row);
                if recipe.chars().count() > recipe_width {
                    lines.push(recipe.clone());
                    lines.push(format!("{:recipe_width$}{cells}", ""));
                } else {
                    lines.push(format!("{recipe:recipe_width$}{cells}"));
                }
            }
        }
        lines.join("\n")
    }
}

impl AccuracyColumn<'_> {
    /// Lines of the heading; the last is empty for entries without a name.
    fn labels(&self) -> [String; 3] {
        let Case { workload, shape, name, .. } = self.case;
        [workload.to_string(), shape.to_string(), name.clone()].map(|label| escape(&label).into_owned())
    }

    fn width(&self) -> usize {
        let texts = self.labels().into_iter().chain(self.records.values().map(|record| cell_text(record)));
        GAP + texts.map(|text| text.chars().count()).max().unwrap_or(0)
    }

    fn cell(&self, record: Option<&Record>, color: Color) -> String {
        let text = record.map(cell_text).unwrap_or_default();
        let blanks = " ".repeat(self.width().saturating_sub(text.chars().count()));
        match record {
            Some(record) if record.outcome.status != Status::Ok => blanks + &paint(&text, "33", color),
            _ => blanks + &text,
        }
    }
}

fn cell_text(record: &Record) -> String {
    match record.outcome.status {
        Status::Ok => sqnr(record),
        status => status.to_string(),
    }
}

/// Last two columns of a row.
fn trailing_cells(row: &[Option<&Record>]) -> String {
    let measured = || row.iter().flatten().filter(|record| record.outcome.status == Status::Ok);
    let sizes = measured().filter_map(|record| record.weights.weight_bytes.zip(record.weights.baseline_weight_bytes));
    let (stored, baseline) = sizes.fold((0, 0), |(a, b), (stored, baseline)| (a + stored, b + baseline));
    let share = if baseline == 0 { "-".into() } else { format!("{:.1}%", 100.0 * stored as f64 / baseline as f64) };
    let nanos = measured().filter_map(|record| record.weights.quantise_ns).reduce(|a, b| a + b);
    let time = nanos.map_or("-".into(), |nanos| nanoseconds(nanos as f64));
    format!("  {share:>7}  {time:>8}")
}

#[cfg(test)]
mod tests {
    use super::super::WIDTH;
    use super::*;
    use crate::record::Accuracy;
    use calorimeter_case::record::Weights;

    fn case(recipe: &str, sparsity: Option<&str>, workload: &str) -> Case {
        Case {
            workload: workload.parse().unwrap(),
            recipe: recipe.parse().unwrap(),
            sparsity: sparsity.map(|sparsity| sparsity.parse().unwrap()),
            implementation: "eager".parse().unwrap(),
            device: "cpu".parse().unwrap(),
            element: "f32".parse().unwrap(),
            shape: [("m", 64), ("k", 512), ("n", 512)].into(),
            ..Case::default()
        }
    }

    fn ok(case: Case, sqnr_db: Option<f64>, bytes: u64, quantise_ns: Option<u64>) -> Record {
        let rel_l2 = Some(sqnr_db.map_or(0.0, |db| 10f64.powf(-db / 20.0)));
        Record {
            accuracy: Some(Box::new(Accuracy { sqnr_db, rel_l2, ..Accuracy::default() })),
            weights: Weights { weight_bytes: Some(bytes), baseline_weight_bytes: Some(1000), quantise_ns },
            ..Record::new(case, Status::Ok)
        }
    }

    fn records() -> Vec<Record> {
        let block = |recipe| case(recipe, None, "transformer_block");
        let [mut f16, mut named] = [case("baseline", None, "linear"), block("baseline")];
        f16.element = "f16".parse().unwrap();
        named.name = "small".into();
        vec![
            ok(case("baseline", None, "linear"), None, 1000, None),
            ok(case("int8wo", None, "linear"), Some(48.149), 252, Some(1_200_000)),
            Record::new(case("fp6", None, "linear"), Status::Mismatch),
            ok(block("baseline"), Some(126.26), 1000, None),
            ok(block("int8wo"), Some(44.1), 254, Some(800_000)),
            ok(block("fp6"), Some(25.9), 190, Some(500)),
            ok(case("baseline", Some("semi-sparse"), "linear"), Some(6.999), 531, Some(1_000_000_000)),
            Record::new(case("marlin", None, "linear"), Status::Unsupported),
            ok(named, None, 1000, None),
            ok(f16, Some(70.0), 1000, None),
        ]
    }

    #[test]
    fn accuracy_table_matches_expected_text() {
        assert_eq!(
            accuracy(&records(), Color::Never, WIDTH),
            "\
f32  cpu  eager  SQNR in dB
recipe                       linear  transformer_block  transformer_block  weights  quantize
                      m64-k512-n512      m64-k512-n512      m64-k512-n512
                                                                    small
baseline                      exact              126.3              exact   100.0%         -
int8wo                         48.1               44.1                       25.3%  2.000 ms
fp6                        mismatch               25.9                       19.0%  500.0 ns
baseline+semi-sparse            7.0                                          53.1%   1.000 s

f16  cpu  eager  SQNR in dB
recipe           linear  weights  quantize
          m64-k512-n512
baseline           70.0   100.0%         -"
        );
        assert_eq!(accuracy(&[], Color::Never, WIDTH), "");
    }

    #[test]
    fn wide_tables_are_split_completely() {
        let repeated: Vec<Record> = std::iter::repeat_with(records).take(4).flatten().collect();
        let mut long = ok(case("int8_dynamic_activation_intx_weight-4-32-true", None, "linear"), Some(19.9), 150, None);
        long.case.name = "small".into();
        let repeated: Vec<Record> = repeated.into_iter().chain([long]).collect();
        let text = accuracy(&repeated, Color::Never, WIDTH);
        for width in [60, 80, WIDTH, 200] {
            let text = accuracy(&repeated, Color::Never, width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            assert_eq!((text.matches("44.1").count(), text.matches("19.9").count()), (4, 1));
            assert_eq!(text.matches("unsupported").count(), 0);
        }
        let colored = accuracy(&repeated, Color::Always, WIDTH);
        let plain = ["0", "1", "33"].iter().fold(colored, |text, code| text.replace(&format!("\x1b[{code}m"), ""));
        assert_eq!(plain, text);
    }
}
