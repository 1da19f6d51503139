//! Thread of a device in a concurrent run. Its own workers measure its groups; messages go to the run, which alone
//! writes records.

use super::kernel_tracer::KernelTracer;
use crate::worker::{Assignment, Executor, WorkerError, WorkerEvent, WorkerListener};
use calorimeter_case::Device;
use calorimeter_probe::devices::DiscoveredDevice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

/// Assignment for a device thread.
pub(super) struct DeviceCommand {
    pub assignment: Assignment,
    pub timeout: Duration,
}

/// Message of a device thread.
pub(super) struct DeviceMessage {
    pub device: Device,
    pub content: MessageContent,
}

pub(super) enum MessageContent {
    Event(WorkerEvent),
    /// The assignment is done, or workers failed.
    Done(Result<(), WorkerError>),
}

/// Runs assignments until the command channel closes.
pub(super) fn run_device(
    device: &DiscoveredDevice,
    mut executor: Box<dyn Executor + Send>,
    orders: Receiver<DeviceCommand>,
    messages: Sender<DeviceMessage>,
    stop: &AtomicBool,
) {
    let mut tracer = KernelTracer::default();
    let mut sender = DeviceEventSender { device: device.device, messages, stop };
    for DeviceCommand { mut assignment, timeout } in orders {
        let traced = tracer.trace(&mut assignment, device, timeout, &*executor, &mut sender);
        let done = traced.and_then(|()| executor.run(&assignment, device, timeout, &mut sender));
        sender.send(MessageContent::Done(done));
    }
}

struct DeviceEventSender<'a> {
    device: Device,
    messages: Sender<DeviceMessage>,
    stop: &'a AtomicBool,
}

impl DeviceEventSender<'_> {
    fn send(&self, word: MessageContent) {
        // The receiver is gone only if the run unwinds.
        let _ = self.messages.send(DeviceMessage { device: self.device, content: word });
    }
}

impl WorkerListener for DeviceEventSender<'_> {
    fn on_event(&mut self, event: WorkerEvent) {
        self.send(MessageContent::Event(event));
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
