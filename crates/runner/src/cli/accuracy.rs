//! `calorimeter accuracy`: a run that times nothing, and its recipes side by side.

use super::options::AccuracyArguments;
use super::run::{colour, dry_run, read, report, start};
use super::{CliError, print};
use crate::Exit;
use crate::config::{Overrides, Source};
use crate::progress::{Format, Terminal};
use crate::run::Request;
use calorimeter_recipes::Recipe;
use calorimeter_sinks::terminal::{accuracy as table, summary};
use std::path::PathBuf;

pub fn accuracy(arguments: AccuracyArguments) -> Result<Exit, CliError> {
    let files: Vec<&PathBuf> = arguments.files.iter().collect();
    let sources = if files.is_empty() { vec![overview()] } else { read(&files)? };
    let overrides = Overrides { untimed: true, ..arguments.overrides.into() };
    let prepared = Request { sources, overrides }.prepare()?;
    if arguments.dry_run {
        return Ok(dry_run(&prepared, arguments.format));
    }
    let mut terminal = Terminal::without_rows(arguments.format);
    let outcome = start(&prepared, arguments.out.as_deref(), &mut terminal);
    terminal.finish();
    let outcome = outcome?;
    if arguments.format == Format::Table {
        let colour = colour(&arguments.colour);
        print(&format!(
            "{}\n\n{}\n",
            table(&outcome.records, colour),
            summary(&outcome.records, &outcome.suite, colour)
        ));
    }
    Ok(report(&outcome, false))
}

/// The configuration without a file: a few recipes of each family in each kind of model, small enough for any machine.
fn overview() -> Source {
    let recipes: Vec<String> = Recipe::typical().iter().map(ToString::to_string).collect();
    let models = ["linear", "ln_linear_gelu", "transformer_block"];
    let models =
        models.map(|model| format!("  - {{model: {model}, shapes: [{{name: custom, shapes: [[64, 512, 512]]}}]}}\n"));
    let text = format!(
        "recipes: [{}]\nsparsities: [semi-sparse, block]\ndtype: f32\nimplementations: [eager]\nmodels:\n{}",
        recipes.join(", "),
        models.concat()
    );
    Source { path: "overview.yml".into(), text }
}
