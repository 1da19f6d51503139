//! The whole program with a device that it does not have by itself: threads that take launches in turn. One is found,
//! listed, chosen in YAML files and with `--device`, timed with a stopwatch of its own and watched by sensors of its own.
//!
//! `cargo run -p calorimeter-runner --example own_device -- list devices`

mod busy_time;
mod sum;
mod thread_sensors;
mod threads;

use busy_time::BusyTime;
use calorimeter_runner::Calorimeter;
use std::process::ExitCode;
use thread_sensors::ThreadSensors;

// ANCHOR: register
fn main() -> ExitCode {
    Calorimeter::new().platform(&threads::Threads).way("stream_add", "native", threads::THREAD, sum::open).main()
}
// ANCHOR_END: register
