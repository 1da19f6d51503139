//! Command line.

mod accuracy;
mod advice;
mod calibrate;
mod ci;
mod command;
mod compare;
mod completions;
mod docs;
mod doctor;
mod dry_run;
mod error;
mod flashinfer;
mod help;
mod init;
mod kernels;
mod layout;
mod list;
mod merge;
mod noise;
mod operators;
mod options;
mod peaks;
mod report;
mod run;
mod time;
mod watch;

use crate::Exit;
use crate::print::{print, width};
use calorimeter_case::UnknownName;
use calorimeter_probe::clock_lock;
use calorimeter_sinks::log_line;
use calorimeter_zoo::Suite;
use clap::CommandFactory;
use command::{Cli, Command};
use error::CliError;

/// Parses the command line and runs the command.
pub fn main() -> Exit {
    let cli = help::parse();
    clock_lock::release_stale();
    match dispatch(cli) {
        Ok(exit) => exit,
        Err(error) => {
            log_line!("error: {}", advice::error_line(&error));
            Exit::Usage
        }
    }
}

fn dispatch(cli: Cli) -> Result<Exit, CliError> {
    match cli.command {
        Command::Run(arguments) => run::run(arguments),
        Command::Ops(arguments) => operators::ops(arguments),
        Command::Gemm(arguments) => operators::suite(Suite::Gemm, arguments, Vec::new()),
        Command::Fusion(arguments) => operators::suite(Suite::Fusion, arguments, Vec::new()),
        Command::Time(arguments) => time::time(*arguments),
        Command::Flashinfer(arguments) => flashinfer::flashinfer(*arguments),
        Command::Accuracy(arguments) => accuracy::accuracy(arguments),
        Command::Calibrate(arguments) => calibrate::calibrate(arguments),
        Command::Ci(arguments) => ci::ci(arguments),
        Command::Compare(arguments) => compare::compare(arguments),
        Command::List { what } => print_output(&list::list(what, width())),
        Command::Init(arguments) => init::init(arguments),
        Command::Noise(arguments) => noise::noise(arguments),
        Command::Peaks(arguments) => peaks::peaks(arguments),
        Command::Doctor(arguments) => doctor::doctor(arguments),
        Command::Docs { dir, check } => docs::update_docs(&dir, check),
        Command::Watch(arguments) => watch::watch(arguments),
        Command::Report(arguments) => report::report(arguments),
        Command::Merge(arguments) => merge::merge_shards(arguments),
        Command::Render(arguments) => merge::render(arguments),
        Command::Schema => print_output(&crate::dialects::schema()),
        Command::Completions { shell } => print_output(&completions::completion_script(shell)),
        Command::Man { command } => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(manual_page_command(command)?).render(&mut page);
            rendered.map_err(|error| CliError::Usage(format!("cannot generate the manual page: {error}")))?;
            print_output(&String::from_utf8_lossy(&page))
        }
    }
}

/// Returns the clap command of the program, or of one of its subcommands, for its manual page.
fn manual_page_command(command: Option<String>) -> Result<clap::Command, CliError> {
    let mut program = Cli::command();
    program.build();
    let Some(name) = command else { return Ok(program) };
    let known = program.get_subcommands().filter(|command| !command.is_hide_set());
    match program.find_subcommand(&name) {
        Some(command) => Ok(command.clone()),
        None => {
            let known = known.map(|command| command.get_name().to_owned());
            Err(CliError::Usage(UnknownName::new("command", &name, known).to_string()))
        }
    }
}

/// Prints the whole output of a command.
fn print_output(text: &str) -> Result<Exit, CliError> {
    print(text)?;
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
