//! The program `calorimeter` with one addition of each kind that another crate can make. Each has a name in YAML files,
//! appears in `list`, and runs with gate, workers and tables like the built-in ones.

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
        .model(model::Perceptron, |builder| builder.burn())
        .operator(operator::Negation, |builder| builder.burn())
        .implementation("by_hand", "plain Rust")
        .workload("softmax", "by_hand", DeviceKind::Cpu, implementation::ByHand)
        .shapes(&shapes::TALL)
        .sink(&sink::Slowest)
        .main()
}
