//! What each recipe costs in accuracy and saves in memory: a row for each recipe, a column for each model and shape.

use super::live::sqnr;
use super::text::nanoseconds;
use super::{Colour, WIDTH, bold, paint, recipe_with_sparsity};
use crate::record::{Case, Record, Status};
use std::collections::HashMap;

/// Blanks between columns.
const GAP: usize = 2;
const TAIL: &str = "  weights  quantise";

/// One table for each dtype, device and implementation; what is wider than [`WIDTH`] goes on in another one.
///
/// A cell is the SQNR in dB, `exact` where the output equals the reference, or the status of a case that is not ok.
/// `weights` is the size of the stored weights as a share of the baseline's, `quantise` the time in which the host pruned
/// and quantised them; both are sums over the measured cells of the row.
pub fn accuracy(records: &[Record], colour: Colour) -> String {
    let mut tables: Vec<Table> = Vec::new();
    for record in records {
        let key = key(&record.case);
        let place = tables.iter().position(|table| table.key == key).unwrap_or_else(|| {
            tables.push(Table { key, recipes: Vec::new(), columns: Vec::new() });
            tables.len() - 1
        });
        tables[place].put(record);
    }
    let parts: Vec<String> = tables.iter().flat_map(|table| table.parts(colour)).collect();
    parts.join("\n\n")
}

/// What the cells of a table have in common: a share of the weights means something in one dtype only.
fn key(case: &Case) -> [&str; 4] {
    [&case.mode, &case.dtype, &case.device, &case.implementation]
}

struct Table<'a> {
    key: [&'a str; 4],
    recipes: Vec<String>,
    columns: Vec<Column<'a>>,
}

/// A model at a shape, with the records of its recipes.
struct Column<'a> {
    case: &'a Case,
    records: HashMap<String, &'a Record>,
}

impl<'a> Table<'a> {
    fn put(&mut self, record: &'a Record) {
        let (case, recipe) = (&record.case, recipe_with_sparsity(&record.case));
        if !self.recipes.contains(&recipe) {
            self.recipes.push(recipe.clone());
        }
        let identity = |case: &'a Case| (&case.name, &case.workload, &case.shape, &case.shape_name);
        // A case that the plan has twice opens a column of its own.
        let free = |c: &&mut Column<'a>| identity(c.case) == identity(case) && !c.records.contains_key(&recipe);
        match self.columns.iter_mut().find(free) {
            Some(column) => drop(column.records.insert(recipe, record)),
            None => self.columns.push(Column { case, records: [(recipe, record)].into() }),
        }
    }

    /// The table, or as many of them as it takes to show all columns.
    fn parts(&self, colour: Colour) -> Vec<String> {
        let recipe_width = self.recipes.iter().map(|recipe| recipe.chars().count()).max().unwrap_or(0);
        let room = WIDTH.saturating_sub(recipe_width + TAIL.len());
        let mut parts: Vec<Vec<&Column>> = Vec::new();
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
        parts.iter().map(|columns| self.part(columns, recipe_width, colour)).collect()
    }

    fn part(&self, columns: &[&Column], recipe_width: usize, colour: Colour) -> String {
        let [_, dtype, device, implementation] = self.key;
        let mut lines = vec![bold(&format!("{dtype}  {device}  {implementation}  SQNR in dB"), colour)];
        for (line, recipe, tail) in [(0, "recipe", TAIL), (1, "", ""), (2, "", "")] {
            let labels = columns.iter().map(|column| format!("{:>1$}", column.labels()[line], column.width()));
            let text = format!("{recipe:recipe_width$}{}{tail}", labels.collect::<String>());
            if !text.trim().is_empty() {
                lines.push(bold(text.trim_end(), colour));
            }
        }
        for recipe in &self.recipes {
            let row: Vec<Option<&Record>> = columns.iter().map(|column| column.records.get(recipe).copied()).collect();
            if row.iter().any(Option::is_some) {
                let cells = columns.iter().zip(&row).map(|(column, record)| column.cell(*record, colour));
                lines.push(format!("{recipe:recipe_width$}{}{}", cells.collect::<String>(), tail(&row)));
            }
        }
        lines.join("\n")
    }
}

impl Column<'_> {
    /// The lines of its heading; entries without a name leave the last one empty.
    fn labels(&self) -> [String; 3] {
        [self.case.workload.clone(), self.case.shape.to_string(), self.case.name.clone()]
    }

    fn width(&self) -> usize {
        let texts = self.labels().into_iter().chain(self.records.values().map(|record| figure(record)));
        GAP + texts.map(|text| text.chars().count()).max().unwrap_or(0)
    }

    fn cell(&self, record: Option<&Record>, colour: Colour) -> String {
        let text = record.map(figure).unwrap_or_default();
        let blanks = " ".repeat(self.width().saturating_sub(text.chars().count()));
        match record {
            Some(record) if record.status != Status::Ok => blanks + &paint(&text, "33", colour),
            _ => blanks + &text,
        }
    }
}

fn figure(record: &Record) -> String {
    match record.status {
        Status::Ok => sqnr(record),
        status => status.to_string(),
    }
}

/// The last two columns of a row.
fn tail(row: &[Option<&Record>]) -> String {
    let measured = || row.iter().flatten().filter(|record| record.status == Status::Ok);
    let sizes = measured().filter_map(|record| record.weight_bytes.zip(record.baseline_weight_bytes));
    let (stored, baseline) = sizes.fold((0, 0), |(a, b), (stored, baseline)| (a + stored, b + baseline));
    let share = if baseline == 0 { "-".into() } else { format!("{:.1}%", 100.0 * stored as f64 / baseline as f64) };
    let nanos = measured().filter_map(|record| record.quantise_ns).reduce(|a, b| a + b);
    let time = nanos.map_or("-".into(), |nanos| nanoseconds(nanos as f64));
    format!("  {share:>7}  {time:>8}")
}
