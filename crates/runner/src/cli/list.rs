//! `calorimeter list`.

use super::command::Listing;
use super::doctor::missing_features_section;
use super::kernels;
use super::layout::{paragraph, rows};
use crate::dialects::trained_models;
use calorimeter_probe::devices;
use calorimeter_recipes::Recipe;
use calorimeter_zoo::{Implementation, Model, Operator, Suite};
use clap::ValueEnum;
use std::fmt::Write;

/// Names per kind in the overview.
const EXAMPLES: usize = 8;

/// Lists the names of a kind, or counts and examples of all kinds, in lines of `width` characters.
pub(super) fn list(what: Option<Listing>, width: usize) -> String {
    match what {
        Some(Listing::Operators) => operators(width),
        Some(Listing::Shapes) => shapes(width),
        Some(Listing::Kernels) => kernels::text(width),
        Some(Listing::Devices) => devices(width),
        Some(what) => rows(&with_shared_descriptions(items(what)), width),
        None => overview(width),
    }
}

/// Name and description of each item of a kind. Kernels have no names, and devices are not searched, because discovery
/// loads drivers.
fn items(what: Listing) -> Vec<(String, String)> {
    match what {
        Listing::Recipes => Recipe::all().into_iter().map(|info| (info.name, info.about.to_owned())).collect(),
        Listing::Models => models(),
        Listing::Operators => Operator::all().into_iter().map(operator_item).collect(),
        Listing::Shapes => {
            let generators = calorimeter_shapes::all_generators();
            generators.map(|generator| (generator.name.to_owned(), generator.about.to_owned())).collect()
        }
        Listing::Implementations => {
            Implementation::all().into_iter().map(|one| (one.to_string(), one.description().to_owned())).collect()
        }
        Listing::Kernels | Listing::Devices => Vec::new(),
    }
}

fn overview(width: usize) -> String {
    let kinds = Listing::value_variants().iter().filter_map(|what| Some((what, what.to_possible_value()?)));
    let kinds: Vec<(String, String)> = kinds
        .map(|(what, value)| {
            let about = value.get_help().map(ToString::to_string).unwrap_or_default();
            let names: Vec<String> = items(*what).into_iter().map(|(name, _)| name).collect();
            let more = if names.len() > EXAMPLES { ", …" } else { "" };
            let examples = names.iter().take(EXAMPLES).cloned().collect::<Vec<_>>().join(", ");
            let text = if names.is_empty() { about } else { format!("{about} ({}): {examples}{more}", names.len()) };
            (value.get_name().to_owned(), text)
        })
        .collect();
    let hint =
        paragraph("`calorimeter list recipes` and so on print all names of a kind with their descriptions.", width);
    format!("{}\n{hint}", rows(&kinds, width))
}

/// Models, and operators that recipes apply to in training.
fn models() -> Vec<(String, String)> {
    let models = Model::infos().into_iter().map(|info| (info.name, info.description.to_owned()));
    let mut models: Vec<(String, String)> = models.collect();
    for name in trained_models() {
        if models.iter().all(|(known, _)| *known != name)
            && let Ok(operator) = name.parse::<Operator>()
        {
            models.push((name, format!("{}; recipes apply in `mode: training`", operator.info().description)));
        }
    }
    models
}

fn operators(width: usize) -> String {
    let mut text = String::new();
    for suite in Suite::ALL {
        let operators = Operator::all().into_iter().filter(|operator| operator.info().suite == suite);
        let items = with_shared_descriptions(operators.map(operator_item).collect());
        if !items.is_empty() {
            let _ = writeln!(text, "{}:\n{}", suite.name(), rows(&items, width));
        }
    }
    text + &paragraph("A configuration file names an operator under `model`, and its sizes under `axes`.", width)
}

fn operator_item(operator: Operator) -> (String, String) {
    let info = operator.info();
    (info.name.to_owned(), format!("{} ({})", info.description, info.axes.join(", ")))
}

/// Joins the names of items with equal descriptions.
fn with_shared_descriptions(items: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut shared: Vec<(String, String)> = Vec::new();
    for (name, about) in items {
        match shared.iter_mut().find(|(_, known)| *known == about) {
            Some((names, _)) => *names += &format!(", {name}"),
            None => shared.push((name, about)),
        }
    }
    shared
}

fn devices(width: usize) -> String {
    let devices = devices::this_machine().all().map(|found| {
        let software = if found.software { ", software" } else { "" };
        (found.device.to_string(), format!("{} ({}{software})", found.name, found.driver))
    });
    rows(&devices.collect::<Vec<_>>(), width) + &missing_features_section(width)
}

fn shapes(width: usize) -> String {
    let mut table = Vec::new();
    for generator in calorimeter_shapes::all_generators() {
        table.push((generator.name.to_owned(), generator.about.to_owned()));
        for parameter in generator.parameters {
            let default = match parameter.kind.default_text() {
                Some(default) => format!(" [default: {default}]"),
                None if parameter.kind.is_required() => " (required)".to_owned(),
                None => String::new(),
            };
            table.push((format!("    {}", parameter.name), format!("{}{default}", parameter.about)));
        }
    }
    rows(&table, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTHS: [usize; 3] = [60, 80, 120];

    #[test]
    fn every_line_fits_the_width() {
        for width in WIDTHS {
            for what in Listing::value_variants().iter().copied().map(Some).chain([None]) {
                for line in list(what, width).lines() {
                    assert!(line.chars().count() <= width, "{what:?}, {width}: {line}");
                }
            }
        }
    }

    #[test]
    fn overview_shows_counts_and_examples() {
        let overview = list(None, 120);
        for what in [Listing::Recipes, Listing::Models, Listing::Operators, Listing::Shapes, Listing::Implementations] {
            let items = items(what);
            assert!(overview.contains(&format!("({}): {},", items.len(), items[0].0)), "{what:?}\n{overview}");
        }
        assert!(overview.lines().count() < 30, "{overview}");
    }

    #[test]
    fn every_name_is_listed_and_every_description_once() {
        let listed = list(Some(Listing::Operators), 10_000);
        for operator in Operator::all() {
            let names = listed.split(|c: char| c.is_whitespace() || c == ',');
            assert!(names.clone().any(|name| name == operator.info().name), "{operator}");
        }
        for suite in listed.split("\n\n") {
            let abouts = Operator::all().into_iter().map(|operator| operator_item(operator).1);
            assert!(abouts.into_iter().all(|about| suite.matches(&format!("  {about}\n")).count() <= 1), "{suite}");
        }
    }

    #[test]
    fn trained_models_are_listed_once() {
        let names: Vec<String> = models().into_iter().map(|(name, _)| name).collect();
        for name in trained_models() {
            assert_eq!(names.iter().filter(|listed| **listed == name).count(), 1, "{name}");
        }
        assert!(names.iter().any(|name| name == "swiglu_mlp"), "{names:?}");
    }
}
