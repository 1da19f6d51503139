//! The command line.

mod accuracy;
mod advice;
mod calibrate;
mod ci;
mod command;
mod doctor;
mod error;
mod list;
mod noise;
mod operators;
mod options;
mod print;
mod reference;
mod run;

use crate::Exit;
use crate::clock_lock;
use crate::tell::tell;
use calorimeter_zoo::Suite;
use clap::{CommandFactory, Parser};
use command::{Cli, Command};
use error::CliError;
use print::print;

/// Reads the command line and does what it says.
pub fn main() -> Exit {
    let cli = Cli::parse();
    clock_lock::undo_left_behind();
    match dispatch(cli) {
        Ok(exit) => exit,
        Err(error) => {
            tell!("error: {}", advice::line(&error));
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
        Command::Accuracy(arguments) => accuracy::accuracy(arguments),
        Command::Calibrate(arguments) => calibrate::calibrate(arguments),
        Command::Ci(arguments) => ci::ci(arguments),
        Command::List { what } => Ok(print(&list::list(what))),
        Command::Noise(arguments) => noise::noise(arguments),
        Command::Doctor(arguments) => doctor::doctor(arguments),
        Command::Docs { dir, check } => reference::docs(&dir, check),
        Command::Schema => Ok(print(&crate::dialects::schema())),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "calorimeter", &mut script);
            Ok(print(&String::from_utf8_lossy(&script)))
        }
        Command::Man => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
            rendered.map_err(|error| CliError::Usage(format!("cannot make the manual page: {error}")))?;
            Ok(print(&String::from_utf8_lossy(&page)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
