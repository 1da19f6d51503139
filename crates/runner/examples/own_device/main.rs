//! The program with an additional device: threads that execute launches. The device is listed, selectable in YAML files
//! and with `--device`, timed by its own stopwatch and monitored by its own sensors.
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
    Calorimeter::new().platform(&threads::Threads).workload("stream_add", "native", threads::THREAD, sum::open).main()
}
// ANCHOR_END: register
