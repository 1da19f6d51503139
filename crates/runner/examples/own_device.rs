//! The whole program with a device that it does not have by itself: threads that take launches in turn. One is found,
//! listed, chosen in YAML files and with `--device`, and timed with a stopwatch of its own.
//!
//! `cargo run -p calorimeter-runner --example own_device -- list devices`

use calorimeter_case::Name;
use calorimeter_runner::Calorimeter;
use calorimeter_runner::devices::DiscoveredDevice;
use calorimeter_runner::platforms::{Choice, Platform};
use calorimeter_timing::{Failure, Overhead, Reading, Stopwatch, Work};
use calorimeter_zoo::{Device, DeviceKind, Machines, Opening, Output, Setup, Workload, ZooError};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

// ANCHOR: register
fn main() -> ExitCode {
    Calorimeter::new().platform(&Threads).way("stream_add", "native", THREAD, open).main()
}
// ANCHOR_END: register

// ANCHOR: platform
/// What their devices are called: `thread:0` and so on.
const THREAD: DeviceKind = DeviceKind::Other(Name::new("thread"));

/// Threads as devices.
#[derive(Debug)]
struct Threads;

impl Platform for Threads {
    fn kinds(&self) -> &'static [DeviceKind] {
        &[THREAD]
    }

    fn find(&self) -> Vec<DiscoveredDevice> {
        // It imitates a device, so nobody gets it unasked.
        let found = |index| DiscoveredDevice {
            software: true,
            driver: "std::thread".into(),
            ..DiscoveredDevice::named(THREAD.device(index), format!("thread {index}"))
        };
        [0, 1].map(found).into()
    }

    fn stopwatch(&self, setup: Setup, _: &mut Machines, _: &mut dyn Work) -> Result<Choice, Failure> {
        Ok((Box::new(BusyTime(busy(setup.device))), None))
    }

    fn clock(&self) -> String {
        "busy-time".into()
    }
}
// ANCHOR_END: platform

/// Nanoseconds in which each thread was busy.
static BUSY: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

fn busy(device: Device) -> &'static AtomicU64 {
    let Device::Other(_, index) = device else { return &BUSY[0] };
    &BUSY[usize::from(index)]
}

// ANCHOR: stopwatch
/// The time in which a thread was busy, as it counts it itself.
struct BusyTime(&'static AtomicU64);

impl Stopwatch for BusyTime {
    fn name(&self) -> &'static str {
        "busy-time"
    }

    fn overhead(&self) -> Overhead {
        Overhead::Outside
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        work.settle()?;
        let before = self.0.load(Ordering::Acquire);
        for _ in 0..launches {
            work.launch()?;
        }
        work.settle()?;
        Ok(Reading::Now(self.0.load(Ordering::Acquire) - before))
    }
}
// ANCHOR_END: stopwatch

/// The sum of two arrays, made by a thread.
struct Sum {
    orders: Sender<()>,
    sums: Receiver<Vec<f32>>,
    launched: u32,
    last: Vec<f32>,
}

/// Starts a thread that has the arrays and waits for orders.
fn open(opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
    let busy = busy(opening.setup.device);
    let (_, inputs) = opening.operator()?;
    // Launches go through as many sets of buffers as are asked for.
    let sets = vec![[0, 1].map(|input: usize| inputs[input].values.to_vec()); opening.setup.sets as usize];
    let (orders, taken) = channel();
    let (made, sums) = channel();
    std::thread::spawn(move || {
        for ((), [a, b]) in taken.into_iter().zip(sets.iter().cycle()) {
            let start = Instant::now();
            let sum: Vec<f32> = a.iter().zip(b).map(|(a, b)| a + b).collect();
            busy.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Release);
            if made.send(sum).is_err() {
                return;
            }
        }
    });
    Ok(Box::new(Sum { orders, sums, launched: 0, last: Vec::new() }))
}

impl Workload for Sum {
    fn launch(&mut self) -> Result<(), ZooError> {
        self.orders.send(()).map_err(|error| ZooError::Device(error.to_string()))?;
        self.launched += 1;
        Ok(())
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        for _ in 0..std::mem::take(&mut self.launched) {
            self.last = self.sums.recv().map_err(|error| ZooError::Device(error.to_string()))?;
        }
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        self.launch()?;
        self.settle()?;
        Ok(vec![Output { rows: 1, cols: self.last.len(), values: self.last.clone() }])
    }

    fn weight_bytes(&self) -> u64 {
        0
    }
}
