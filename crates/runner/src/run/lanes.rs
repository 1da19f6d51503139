//! A thread for each device that works beside others: its groups are measured by workers of its own, and what happens
//! is said to the run, which alone writes.

use super::kernels::Lookout;
use crate::devices::DiscoveredDevice;
use crate::worker::{Assignment, Event, Executor, Listener, WorkerError};
use calorimeter_case::Device;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

/// What a lane is told to measure.
pub struct Order {
    pub assignment: Assignment,
    pub timeout: Duration,
}

/// What a lane says.
pub struct Said {
    pub device: Device,
    pub word: Word,
}

pub enum Word {
    Heard(Event),
    /// The order is done, or no workers can be had any more.
    Done(Result<(), WorkerError>),
}

/// Works until no orders come any more.
pub fn work(
    device: &DiscoveredDevice,
    mut executor: Box<dyn Executor + Send>,
    orders: Receiver<Order>,
    said: Sender<Said>,
    stop: &AtomicBool,
) {
    let mut lookout = Lookout::default();
    let mut voice = Voice { device: device.device, said, stop };
    for Order { mut assignment, timeout } in orders {
        let looked = lookout.look(&mut assignment, device, timeout, &*executor, &mut voice);
        let done = looked.and_then(|()| executor.run(&assignment, device, timeout, &mut voice));
        voice.say(Word::Done(done));
    }
}

struct Voice<'a> {
    device: Device,
    said: Sender<Said>,
    stop: &'a AtomicBool,
}

impl Voice<'_> {
    fn say(&self, word: Word) {
        // Nobody listens any more only where the run unwinds.
        let _ = self.said.send(Said { device: self.device, word });
    }
}

impl Listener for Voice<'_> {
    fn hear(&mut self, event: Event) {
        self.say(Word::Heard(event));
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
