//! Concurrent measurement of a fleet: one thread per device, and one record writer.

use super::RunEvent;
use super::device_thread::{DeviceCommand, DeviceMessage, MessageContent, run_device};
use super::dispatcher::Dispatcher;
use super::host_memory::{HostMemoryBudget, host_bytes};
use super::interference::{InterferenceProbe, probe_command};
use super::record_writer::RecordWriter;
use crate::plan::{Group, Plan};
use crate::worker::{Assignment, Executor, Stage, WorkerError, WorkerEvent, WorkerListener};
use calorimeter_case::{CaseId, Device, Record};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Poll interval for interrupts.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Result of the concurrent measurement.
#[derive(Default)]
pub(super) struct ConcurrentRun {
    /// Notes for the reader of the results.
    pub notes: Vec<String>,
    /// Devices whose workers failed, with the error.
    pub lost: Vec<(Device, WorkerError)>,
    /// Fleets that were measured concurrently.
    fleets: Vec<Vec<Device>>,
}

impl ConcurrentRun {
    /// True if the group needs no sequential measurement: it was measured concurrently, or its device is lost.
    pub(super) fn covers(&self, plan: &Plan, group: &Group) -> bool {
        let entry = plan.entry(group);
        let was_measured = plan.allows_concurrency(group) && self.fleets.contains(&entry.fleet);
        was_measured || self.lost.iter().any(|(device, _)| *device == entry.device)
    }

    /// Error that ended the run early, if workers failed; for a fleet with the names of the devices.
    pub(super) fn into_error(mut self) -> Option<WorkerError> {
        if self.fleets.is_empty() {
            return self.lost.pop().map(|(_, why)| why);
        }
        (!self.lost.is_empty()).then_some(WorkerError::DevicesLost(self.lost))
    }
}

/// Measures all groups that the devices of a fleet can measure concurrently, one fleet after the other. Skips a fleet
/// if only one device has work, or if the executor does not support concurrent devices.
pub(super) fn measure_concurrently(dispatcher: &Dispatcher<'_>, writer: &mut RecordWriter<'_>) -> ConcurrentRun {
    let mut run = ConcurrentRun::default();
    let fleets: BTreeSet<&[Device]> = dispatcher.plan.entries().iter().map(|entry| &entry.fleet[..]).collect();
    for fleet in fleets.into_iter().filter(|fleet| !fleet.is_empty()) {
        let mut queues: BTreeMap<Device, VecDeque<&Group>> = BTreeMap::new();
        for group in dispatcher.plan.shuffled_groups() {
            let entry = dispatcher.plan.entry(group);
            if entry.fleet == fleet && dispatcher.plan.allows_concurrency(group) && !writer.is_complete(group) {
                queues.entry(entry.device).or_default().push_back(group);
            }
        }
        let executors = queues.keys().map(|_| dispatcher.executor.for_concurrent_devices(queues.len()));
        let executors: Option<Vec<Box<dyn Executor + Send>>> = executors.collect();
        if let Some(executors) = executors.filter(|executors| executors.len() > 1 && !writer.interrupted()) {
            let (interference, lost) = measure_fleet(dispatcher, writer, queues, executors);
            run.notes.extend(interference.notes());
            run.lost.extend(lost);
            run.fleets.push(fleet.to_vec());
        }
    }
    run
}

/// Probes the interference between devices, then lets each device measure its queue.
fn measure_fleet(
    dispatcher: &Dispatcher<'_>,
    writer: &mut RecordWriter<'_>,
    queues: BTreeMap<Device, VecDeque<&Group>>,
    executors: Vec<Box<dyn Executor + Send>>,
) -> (InterferenceProbe, Vec<(Device, WorkerError)>) {
    let stop = AtomicBool::new(false);
    let (sender, messages) = channel();
    std::thread::scope(|scope| {
        let mut lanes = BTreeMap::new();
        for ((device, queue), executor) in queues.into_iter().zip(executors) {
            let (commands, receiver) = channel();
            let (found, sender, stop) = (dispatcher.devices.get(device), sender.clone(), &stop);
            let thread = std::thread::Builder::new();
            let started = thread.spawn_scoped(scope, move || run_device(found, executor, receiver, sender, stop));
            let lost = started.err().map(WorkerError::Spawn);
            lanes.insert(device, FleetDevice { commands, queue, active: None, lost });
        }
        drop(sender);
        writer.buffer_events();
        let mut fleet = FleetRun {
            dispatcher,
            messages,
            stop: &stop,
            devices: lanes,
            is_concurrent: InterferenceProbe::default(),
            stages: BTreeMap::new(),
        };
        fleet.move_shortest_first();
        if !dispatcher.untimed {
            fleet.probe_interference(writer);
        }
        fleet.run_queues(writer);
        writer.flush_all();
        let lost = fleet.devices.into_iter().filter_map(|(device, lane)| Some((device, lane.lost?))).collect();
        (fleet.is_concurrent, lost)
    })
}

/// State of one device of the fleet, as the run sees it.
struct FleetDevice<'a> {
    commands: Sender<DeviceCommand>,
    queue: VecDeque<&'a Group>,
    active: Option<ActiveAssignment>,
    /// Error after which the device is not used.
    lost: Option<WorkerError>,
}

/// Assignment that a device is measuring.
struct ActiveAssignment {
    /// True if other devices had work when it started.
    interference: bool,
    /// Bytes of host memory.
    host_bytes: u64,
}

impl FleetDevice<'_> {
    fn has_work(&self) -> bool {
        self.lost.is_none() && (self.active.is_some() || !self.queue.is_empty())
    }
}

struct FleetRun<'a, 'c> {
    dispatcher: &'a Dispatcher<'c>,
    messages: Receiver<DeviceMessage>,
    stop: &'a AtomicBool,
    devices: BTreeMap<Device, FleetDevice<'a>>,
    is_concurrent: InterferenceProbe,
    /// Current case and stage per device.
    stages: BTreeMap<Device, (CaseId, Stage)>,
}

impl<'a> FleetRun<'a, '_> {
    /// Measures a probe on all devices concurrently, then on each in isolation. In the first round all devices prepare
    /// their probes in parallel. The difference is the interference through the host.
    fn probe_interference(&mut self, writer: &mut RecordWriter<'_>) {
        let devices: Vec<Device> = self.devices.keys().copied().collect();
        let isolated = devices.iter().map(|&device| vec![device]);
        for active in std::iter::once(devices.clone()).chain(isolated) {
            let concurrent = active.len() > 1;
            for &device in &active {
                self.start_probe(device, writer, concurrent);
            }
            let mut found = self.probe_records(writer);
            if writer.interrupted() {
                return;
            }
            for device in active {
                let margin = self.dispatcher.floors[&device].margin(self.margin(device));
                self.is_concurrent.add(device, margin, found.remove(&device), concurrent);
            }
        }
    }

    /// Moves the shortest group of each device to the front. Preparation of the first group is not overlapped with a
    /// measurement; that of later groups is.
    fn move_shortest_first(&mut self) {
        let devices: Vec<Device> = self.devices.keys().copied().collect();
        for device in devices {
            let shortest = self.shortest_group(device);
            let Some(lane) = self.devices.get_mut(&device) else { continue };
            let at = shortest.and_then(|shortest| lane.queue.iter().position(|&group| std::ptr::eq(group, shortest)));
            if let Some(group) = at.and_then(|at| lane.queue.remove(at)) {
                lane.queue.push_front(group);
            }
        }
    }

    /// Starts the probe on the shortest group of a device: it is the most sensitive to the host, and the fastest to
    /// measure.
    fn start_probe(&mut self, device: Device, writer: &RecordWriter<'_>, concurrent: bool) {
        let Some(shortest) = self.shortest_group(device) else { return };
        let assignment = self.dispatcher.assignment(shortest, writer, concurrent);
        if let Some(order) = probe_command(assignment, self.dispatcher.plan.entry(shortest).timeout) {
            self.send(device, order, ActiveAssignment { interference: concurrent, host_bytes: 0 });
        }
    }

    fn shortest_group(&self, device: Device) -> Option<&'a Group> {
        let plan = self.dispatcher.plan;
        let runs = |group: &&&Group| group.cases().iter().any(|case| case.supported().is_ok());
        let queue = self.devices.get(&device)?.queue.iter().filter(runs).copied();
        queue.min_by(|one, other| plan.expected_seconds(one).total_cmp(&plan.expected_seconds(other)))
    }

    fn margin(&self, device: Device) -> f64 {
        self.shortest_group(device).map_or(0.0, |group| self.dispatcher.plan.entry(group).timing.margin)
    }

    /// Collects the probe records, which are not forwarded to the listener. A device that finishes early repeats its
    /// probe until all have finished once, so that each is measured concurrently.
    fn probe_records(&mut self, writer: &mut RecordWriter<'_>) -> BTreeMap<Device, Record> {
        let probed = self.devices.values().filter(|lane| lane.active.is_some()).count();
        let (mut found, mut done_once) = (BTreeMap::new(), BTreeSet::new());
        while self.is_busy() {
            let Some(DeviceMessage { device, content: word }) = self.next_message(writer) else { continue };
            match word {
                MessageContent::Event(WorkerEvent::CaseFinished(record)) if done_once.len() < probed => {
                    found.insert(device, *record);
                }
                MessageContent::Event(WorkerEvent::CaseFinished(_)) => {}
                MessageContent::Event(event) => self.forward(device, event, writer),
                MessageContent::Done(done) => {
                    self.finish_assignment(device, done, writer);
                    done_once.insert(device);
                    if done_once.len() < probed && !writer.interrupted() {
                        self.start_probe(device, writer, true);
                    }
                }
            }
        }
        found
    }

    /// Lets every device measure its queue. Each record is on disk before the next message is handled.
    fn run_queues(&mut self, writer: &mut RecordWriter<'_>) {
        let budget = HostMemoryBudget::available();
        loop {
            let devices: Vec<Device> = self.devices.keys().copied().collect();
            for device in devices {
                while !writer.interrupted() && self.start_next(device, &budget, writer) {}
            }
            if !self.is_busy() {
                return;
            }
            let Some(DeviceMessage { device, content: word }) = self.next_message(writer) else { continue };
            match word {
                MessageContent::Event(WorkerEvent::CaseFinished(mut record)) => {
                    let is_concurrent = self.devices[&device].active.as_ref().is_some_and(|work| work.interference);
                    if is_concurrent {
                        self.is_concurrent.warn(&mut record);
                    }
                    writer.write(*record);
                }
                MessageContent::Event(event) => self.forward(device, event, writer),
                MessageContent::Done(done) => self.finish_assignment(device, done, writer),
            }
        }
    }

    /// Starts the first queued group of a device that fits into host memory. Returns true if it required no worker, so
    /// that the device is still free.
    fn start_next(&mut self, device: Device, budget: &HostMemoryBudget, writer: &mut RecordWriter<'_>) -> bool {
        if self.devices.get(&device).is_none_or(|lane| lane.active.is_some() || lane.lost.is_some()) {
            return false;
        }
        let (plan, devices) = (self.dispatcher.plan, self.dispatcher.devices);
        let needs: Vec<u64> = self.devices.values().filter_map(|lane| Some(lane.active.as_ref()?.host_bytes)).collect();
        let is_concurrent = self.devices.iter().any(|(other, lane)| *other != device && lane.has_work());
        let fits = |group: &&Group| budget.fits(host_bytes(group, plan, devices), &needs);
        let first = |lane: &mut FleetDevice<'a>| lane.queue.remove(lane.queue.iter().position(fits)?);
        let Some(group) = self.devices.get_mut(&device).and_then(first) else { return false };
        writer.begin_group(group, device);
        let next = self.devices[&device].queue.front().copied();
        let next = self.dispatcher.next_group(group, next, writer);
        let assignment = Assignment { next, ..self.dispatcher.assignment(group, writer, is_concurrent) };
        if assignment.cases.is_empty() {
            writer.finish_group(device);
            return true;
        }
        let order = DeviceCommand { assignment, timeout: plan.entry(group).timeout };
        self.send(
            device,
            order,
            ActiveAssignment { interference: is_concurrent, host_bytes: host_bytes(group, plan, devices) },
        );
        false
    }

    fn send(&mut self, device: Device, order: DeviceCommand, work: ActiveAssignment) {
        let Some(lane) = self.devices.get_mut(&device) else { return };
        // A device thread receives until its commands end. A failed send means that it panicked; the scope propagates
        // the panic.
        if lane.lost.is_none() && lane.commands.send(order).is_ok() {
            lane.active = Some(work);
        }
    }

    fn is_busy(&self) -> bool {
        self.devices.values().any(|lane| lane.active.is_some())
    }

    /// Returns the next message, or `None` after the poll interval.
    fn next_message(&mut self, writer: &RecordWriter<'_>) -> Option<DeviceMessage> {
        let message = self.messages.recv_timeout(POLL_INTERVAL);
        if writer.interrupted() {
            self.stop.store(true, Ordering::Relaxed);
        }
        if matches!(message, Err(RecvTimeoutError::Disconnected)) {
            // Every device thread panicked; the scope propagates the panic.
            self.devices.values_mut().for_each(|lane| lane.active = None);
        }
        message.ok()
    }

    fn forward(&mut self, device: Device, event: WorkerEvent, writer: &mut RecordWriter<'_>) {
        if let WorkerEvent::Progress { case, stage } = event {
            self.stages.insert(device, (case.clone(), stage));
            writer.listener.on_event(RunEvent::ActiveStages(self.stages.values().cloned().collect()));
            writer.listener.on_event(RunEvent::Progress { case, stage });
        }
    }

    fn finish_assignment(&mut self, device: Device, done: Result<(), WorkerError>, writer: &mut RecordWriter<'_>) {
        if let Some(lane) = self.devices.get_mut(&device) {
            (lane.active, lane.lost) = (None, done.err());
        }
        self.stages.remove(&device);
        writer.finish_group(device);
        writer.listener.on_event(RunEvent::ActiveStages(self.stages.values().cloned().collect()));
    }
}
