//! The whole program `calorimeter` with one of each thing that another crate can add: each has a name in YAML files, stands
//! in `list`, and runs with gate, workers and tables like ours.

mod implementation;
mod model;
mod operator;
mod recipe;
mod shapes;
mod sink;

use calorimeter_runner::Calorimeter;
use calorimeter_zoo::DeviceKind;
use std::process::ExitCode;

fn main() -> ExitCode {
    Calorimeter::new()
        .recipe(&recipe::FAMILY)
        .model(model::Perceptron, |ways| ways.burn())
        .operator(operator::Negation, |ways| ways.burn())
        .implementation("by_hand", "written out in plain Rust")
        .way("softmax", "by_hand", DeviceKind::Cpu, implementation::ByHand)
        .shapes(&shapes::TALL)
        .sink(&sink::Slowest)
        .main()
}
