//! Thread of a device in a concurrent run. Its own workers measure its groups; messages go to the run, which alone
//! writes records.

use super::kernels::Lookout;
use crate::devices::DiscoveredDevice;
use crate::worker::{Assignment, Event, Executor, Listener, WorkerError};
use calorimeter_case::Device;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

/// Assignment for a device thread.
pub struct Order {
    pub assignment: Assignment,
    pub timeout: Duration,
}

/// Message of a device thread.
pub struct Said {
    pub device: Device,
    pub word: Word,
}

pub enum Word {
    Heard(Event),
    /// The assignment is done, or workers failed.
    Done(Result<(), WorkerError>),
}

/// Runs assignments until the command channel closes.
pub fn work(
    device: &DiscoveredDevice,
    mut executor: Box<dyn Executor + Send>,
    orders: Receiver<Order>,
    messages: Sender<Said>,
    stop: &AtomicBool,
) {
    let mut tracer = Lookout::default();
    let mut sender = Voice { device: device.device, said: messages, stop };
    for Order { mut assignment, timeout } in orders {
        let traced = tracer.look(&mut assignment, device, timeout, &*executor, &mut sender);
        let done = traced.and_then(|()| executor.run(&assignment, device, timeout, &mut sender));
        sender.say(Word::Done(done));
    }
}

struct Voice<'a> {
    device: Device,
    said: Sender<Said>,
    stop: &'a AtomicBool,
}

impl Voice<'_> {
    fn say(&self, word: Word) {
        // The receiver is gone only if the run unwinds.
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
