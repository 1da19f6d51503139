//! The binary `calorimeter`.

use calorimeter_runner::{cli, worker};
use std::process::ExitCode;

fn main() -> ExitCode {
    worker::serve_if_worker();
    cli::main().into()
}
