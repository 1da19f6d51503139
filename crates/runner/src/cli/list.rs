//! `calorimeter list`.

use super::command::Listing;
use super::kernels;
use calorimeter_probe::devices;
use calorimeter_recipes::Recipe;
use calorimeter_zoo::{Implementation, Model, Operator};
use std::fmt::Write;

pub fn list(what: Option<Listing>) -> String {
    let all = [Listing::Recipes, Listing::Models, Listing::Operators, Listing::Shapes, Listing::Implementations];
    match what {
        Some(what) => section(what),
        // Kernels and devices are listed on request only: their list is long, and discovery loads drivers.
        None => all.map(|what| format!("{}:\n{}", title(what), section(what))).join("\n"),
    }
}

fn title(what: Listing) -> &'static str {
    match what {
        Listing::Recipes => "Recipes",
        Listing::Models => "Models",
        Listing::Operators => "Operators",
        Listing::Shapes => "Shape generators",
        Listing::Implementations => "Implementations",
        Listing::Kernels => "Layer kernels",
        Listing::Devices => "Devices",
    }
}

fn section(what: Listing) -> String {
    match what {
        Listing::Recipes => lines(Recipe::all().into_iter().map(|info| (info.name, info.about.to_owned()))),
        Listing::Models => lines(Model::infos().into_iter().map(|info| (info.name, info.description.to_owned()))),
        Listing::Operators => lines(Operator::all().into_iter().map(|operator| {
            let info = operator.info();
            (info.name.to_owned(), format!("{}: {} ({})", info.suite.name(), info.description, info.axes.join(", ")))
        })),
        Listing::Implementations => {
            lines(Implementation::all().into_iter().map(|i| (i.to_string(), i.description().to_owned())))
        }
        Listing::Devices => lines(devices::this_machine().all().map(|found| {
            let software = if found.software { ", software" } else { "" };
            (found.device.to_string(), format!("{} ({}{software})", found.name, found.driver))
        })),
        Listing::Kernels => kernels::text(),
        Listing::Shapes => shapes(),
    }
}

fn shapes() -> String {
    let mut text = String::new();
    for generator in calorimeter_shapes::all_generators() {
        let _ = writeln!(text, "  {:<20} {}", generator.name, generator.about);
        for parameter in generator.parameters {
            let default = match parameter.kind.default_text() {
                Some(default) => format!(" [default: {default}]"),
                None if parameter.kind.is_required() => " (required)".to_owned(),
                None => String::new(),
            };
            let _ = writeln!(text, "      {}: {}{default}", parameter.name, parameter.about);
        }
    }
    text
}

fn lines(items: impl IntoIterator<Item = (String, String)>) -> String {
    let items: Vec<(String, String)> = items.into_iter().collect();
    let width = items.iter().map(|(name, _)| name.len()).filter(|&len| len <= 40).max().unwrap_or(0);
    items.iter().map(|(name, about)| format!("  {name:<width$}  {about}\n")).collect()
}
