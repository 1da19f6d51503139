//! `calorimeter accuracy`: runs without timing and prints the accuracy of recipes as a table.

use super::dry_run::dry_run;
use super::error::CliError;
use super::options::AccuracyArguments;
use super::run::{color, read_sources, report_outcome, start_run};
use crate::Exit;
use crate::entries::{Entry, Origin, Overrides, Size};
use crate::print::{print_table, width};
use crate::progress::{RecordFormat, Terminal};
use crate::run::Request;
use calorimeter_recipes::{Dtype, Element, Recipe, Sparsity};
use calorimeter_shapes::Shape;
use calorimeter_sinks::terminal::{accuracy as table, summary};
use calorimeter_zoo::Implementation;
use std::path::PathBuf;

pub(super) fn accuracy(arguments: AccuracyArguments) -> Result<Exit, CliError> {
    let files: Vec<&PathBuf> = arguments.files.iter().collect();
    let entries = if files.is_empty() { overview()? } else { Vec::new() };
    let overrides = Overrides { untimed: true, ..arguments.models.apply_to(arguments.overrides.into()) };
    let prepared = Request { sources: read_sources(&files)?, entries, overrides }.prepare()?;
    if arguments.dry_run {
        dry_run(&prepared, arguments.format)?;
        return Ok(Exit::Success);
    }
    let mut terminal = Terminal::without_table(arguments.format).with_predictions(&prepared);
    let ended = start_run(&prepared, arguments.out.as_deref(), &mut terminal);
    let mut printed = terminal.finish();
    let (_, outcome) = ended?;
    if arguments.format == RecordFormat::Table && printed.is_ok() {
        let color = color(&arguments.color);
        printed = print_table(&format!(
            "{}\n\n{}\n",
            table(&outcome.records, color, width()),
            summary(&outcome.records, &outcome.suite, color, width())
        ));
    }
    let exit = report_outcome(&outcome, false);
    printed?;
    Ok(exit)
}

/// Default cases if no file is given: recipes of each family in three models, at one size that fits any machine.
fn overview() -> Result<Vec<Entry>, CliError> {
    let usage = |error: &dyn std::fmt::Display| CliError::Usage(error.to_string());
    let shape = Shape::new(64, 512, 512).map_err(|error| usage(&error))?;
    let entry = |model: &str| {
        let origin = Origin::command("overview");
        Ok(Entry {
            element: Element::Float(Dtype::F32),
            recipes: Recipe::examples(),
            sparsities: vec![Sparsity::SemiStructured, Sparsity::DEFAULT_BLOCK],
            implementations: Some(vec![Implementation::Eager]),
            ..Entry::new(origin, model.parse().map_err(|error| usage(&error))?, vec![Size::custom(shape.into())])
        })
    };
    ["linear", "ln_linear_gelu", "transformer_block"].into_iter().map(entry).collect()
}
