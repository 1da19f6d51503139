//! Help of the program: commands grouped by purpose, and examples.

use super::command::Cli;
use super::layout::{column_width, rows, rows_with_column};
use crate::print::width;
use clap::builder::Styles;
use clap::{Command, CommandFactory, FromArgMatches};
use std::fmt::Write;

/// Headings with their commands. Each visible command has one place.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Measure", &["run", "ops", "gemm", "fusion", "time", "flashinfer", "accuracy", "ci", "init"]),
    ("View results", &["report", "compare", "watch", "merge", "render"]),
    ("Machine", &["doctor", "peaks", "noise", "calibrate"]),
    ("Other", &["list", "schema", "completions", "man", "help"]),
];

const EXAMPLES: [(&str, &str); 2] = [
    ("calorimeter run quickstart", "Measure int8 weights in two small models"),
    ("calorimeter time -- ./a.out", "Time a command"),
];

/// Maximum line width of help texts.
const MAX_WIDTH: usize = 100;

/// Parses the command line.
pub(super) fn parse() -> Cli {
    let matches = with_grouped_commands(Cli::command(), width().min(MAX_WIDTH)).get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Replaces the list of commands in the help by groups. Manual pages and completions keep the list.
fn with_grouped_commands(program: Command, width: usize) -> Command {
    let styles = Styles::styled();
    let heading = styles.get_header();
    let column = column_width(GROUPS.iter().flat_map(|(_, commands)| *commands));
    let mut text = String::new();
    for (name, commands) in GROUPS {
        let about = |name: &str| {
            let command = program.find_subcommand(name);
            command.and_then(Command::get_about).map_or_else(|| HELP_ABOUT.to_owned(), ToString::to_string)
        };
        let table: Vec<(&str, String)> = commands.iter().map(|name| (*name, about(name))).collect();
        let _ = write!(text, "{heading}{name}:{heading:#}\n{}\n", rows_with_column(&table, column, width));
    }
    let _ = write!(text, "{heading}Examples:{heading:#}\n{}", rows(&EXAMPLES, width));
    let start = "{about-with-newline}\n{usage-heading} {usage}{after-help}\n\n";
    program
        .help_template(format!("{start}{heading}Options:{heading:#}\n{{options}}"))
        .after_help(text.trim_end().to_owned())
}

/// Description of the command that clap adds.
const HELP_ABOUT: &str = "Print the help of the program or of a command";

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_command_has_one_place() {
        let program = Cli::command();
        let visible = program.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, commands)| commands.iter().copied()).collect();
        let commands: BTreeSet<&str> = visible.chain(["help"]).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), commands);
        assert_eq!(grouped.len(), commands.len());
    }

    #[test]
    fn help_shows_groups_and_fits_the_width() {
        let help = with_grouped_commands(Cli::command(), 80).term_width(80).render_help().to_string();
        for (heading, commands) in GROUPS {
            assert!(help.contains(&format!("{heading}:\n")), "{help}");
            assert!(commands.iter().all(|name| help.contains(&format!("\n  {name} "))), "{help}");
        }
        assert!(help.contains("--version") && !help.contains("\n\n\n"), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }

    /// Options of the output must not be listed as overrides of configuration files.
    #[test]
    fn only_overrides_have_the_heading_overrides() {
        for command in Cli::command().get_subcommands() {
            for name in ["out", "resume", "save_baseline", "dry_run", "format", "strict", "color", "config"] {
                let option = command.get_arguments().find(|option| option.get_id() == name);
                let heading = option.and_then(clap::Arg::get_help_heading);
                assert_eq!(heading, None, "--{name} of {}", command.get_name());
            }
        }
    }
}
