//! Concurrent measurement of a fleet: one thread per device, and one record writer.

use super::company::{Company, probe};
use super::crew::Crew;
use super::desk::Desk;
use super::lanes::{Order, Said, Word, work};
use super::room::{Room, need};
use crate::plan::{Group, Plan};
use crate::worker::{Assignment, Event, Executor, Listener, Stage, WorkerError};
use calorimeter_case::{CaseId, Device, Record};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Poll interval for interrupts.
const GLANCE: Duration = Duration::from_millis(50);

/// Result of the concurrent measurement.
#[derive(Default)]
pub struct AtOnce {
    /// Notes for the reader of the results.
    pub notes: Vec<String>,
    /// Devices whose workers failed, with the error.
    pub lost: Vec<(Device, WorkerError)>,
    /// Fleets that were measured concurrently.
    fleets: Vec<Vec<Device>>,
}

impl AtOnce {
    /// True if the group needs no sequential measurement: it was measured concurrently, or its device is lost.
    pub fn has_seen_to(&self, plan: &Plan, group: &Group) -> bool {
        let entry = plan.entry(group);
        let was_measured = plan.may_have_company(group) && self.fleets.contains(&entry.fleet);
        was_measured || self.lost.iter().any(|(device, _)| *device == entry.device)
    }

    /// Error that ended the run early, if workers failed; for a fleet with the names of the devices.
    pub fn stopped(mut self) -> Option<WorkerError> {
        if self.fleets.is_empty() {
            return self.lost.pop().map(|(_, why)| why);
        }
        (!self.lost.is_empty()).then_some(WorkerError::Lost(self.lost))
    }
}

/// Measures all groups that the devices of a fleet can measure concurrently, one fleet after the other. Skips a fleet
/// if only one device has work, or if the executor does not support concurrent devices.
pub fn measure(dispatcher: &Crew<'_>, writer: &mut Desk<'_>) -> AtOnce {
    let mut run = AtOnce::default();
    let fleets: BTreeSet<&[Device]> = dispatcher.plan.entries().iter().map(|entry| &entry.fleet[..]).collect();
    for fleet in fleets.into_iter().filter(|fleet| !fleet.is_empty()) {
        let mut queues: BTreeMap<Device, VecDeque<&Group>> = BTreeMap::new();
        for group in dispatcher.plan.drawn() {
            let entry = dispatcher.plan.entry(group);
            if entry.fleet == fleet && dispatcher.plan.may_have_company(group) && !writer.is_complete(group) {
                queues.entry(entry.device).or_default().push_back(group);
            }
        }
        let executors = queues.keys().map(|_| dispatcher.executor.another(queues.len()));
        let executors: Option<Vec<Box<dyn Executor + Send>>> = executors.collect();
        if let Some(executors) = executors.filter(|executors| executors.len() > 1 && !writer.interrupted()) {
            let (interference, lost) = of_fleet(dispatcher, writer, queues, executors);
            run.notes.extend(interference.notes());
            run.lost.extend(lost);
            run.fleets.push(fleet.to_vec());
        }
    }
    run
}

/// Probes the interference between devices, then lets each device measure its queue.
fn of_fleet(
    dispatcher: &Crew<'_>,
    writer: &mut Desk<'_>,
    queues: BTreeMap<Device, VecDeque<&Group>>,
    executors: Vec<Box<dyn Executor + Send>>,
) -> (Company, Vec<(Device, WorkerError)>) {
    let stop = AtomicBool::new(false);
    let (sender, messages) = channel();
    std::thread::scope(|scope| {
        let mut lanes = BTreeMap::new();
        for ((device, queue), executor) in queues.into_iter().zip(executors) {
            let (commands, receiver) = channel();
            let (found, sender, stop) = (dispatcher.devices.of(device), sender.clone(), &stop);
            let thread = std::thread::Builder::new();
            let started = thread.spawn_scoped(scope, move || work(found, executor, receiver, sender, stop));
            let lost = started.err().map(WorkerError::Spawn);
            lanes.insert(device, Lane { orders: commands, queue, at_work: None, lost });
        }
        drop(sender);
        writer.hold_back();
        let mut fleet = Fleet {
            crew: dispatcher,
            said: messages,
            stop: &stop,
            lanes,
            company: Company::default(),
            stages: BTreeMap::new(),
        };
        fleet.shortest_first();
        if !dispatcher.untimed {
            fleet.probe(writer);
        }
        fleet.measure(writer);
        writer.hold_nothing_back();
        let lost = fleet.lanes.into_iter().filter_map(|(device, lane)| Some((device, lane.lost?))).collect();
        (fleet.company, lost)
    })
}

/// State of one device of the fleet, as the run sees it.
struct Lane<'a> {
    orders: Sender<Order>,
    queue: VecDeque<&'a Group>,
    at_work: Option<AtWork>,
    /// Error after which the device is not used.
    lost: Option<WorkerError>,
}

/// Assignment that a device is measuring.
struct AtWork {
    /// True if other devices had work when it started.
    company: bool,
    /// Bytes of host memory.
    need: u64,
}

impl Lane<'_> {
    fn has_more(&self) -> bool {
        self.lost.is_none() && (self.at_work.is_some() || !self.queue.is_empty())
    }
}

struct Fleet<'a, 'c> {
    crew: &'a Crew<'c>,
    said: Receiver<Said>,
    stop: &'a AtomicBool,
    lanes: BTreeMap<Device, Lane<'a>>,
    company: Company,
    /// Current case and stage per device.
    stages: BTreeMap<Device, (CaseId, Stage)>,
}

impl<'a> Fleet<'a, '_> {
    /// Measures a probe on all devices concurrently, then on each in isolation. In the first round all devices prepare
    /// their probes in parallel. The difference is the interference through the host.
    fn probe(&mut self, writer: &mut Desk<'_>) {
        let devices: Vec<Device> = self.lanes.keys().copied().collect();
        let isolated = devices.iter().map(|&device| vec![device]);
        for active in std::iter::once(devices.clone()).chain(isolated) {
            let concurrent = active.len() > 1;
            for &device in &active {
                self.begin_probe(device, writer, concurrent);
            }
            let mut found = self.records(writer);
            if writer.interrupted() {
                return;
            }
            for device in active {
                let margin = self.crew.floors[&device].margin(self.margin(device));
                self.company.found(device, margin, found.remove(&device), concurrent);
            }
        }
    }

    /// Moves the shortest group of each device to the front. Preparation of the first group is not overlapped with a
    /// measurement; that of later groups is.
    fn shortest_first(&mut self) {
        let devices: Vec<Device> = self.lanes.keys().copied().collect();
        for device in devices {
            let shortest = self.shortest(device);
            let Some(lane) = self.lanes.get_mut(&device) else { continue };
            let at = shortest.and_then(|shortest| lane.queue.iter().position(|&group| std::ptr::eq(group, shortest)));
            if let Some(group) = at.and_then(|at| lane.queue.remove(at)) {
                lane.queue.push_front(group);
            }
        }
    }

    /// Starts the probe on the shortest group of a device: it is the most sensitive to the host, and the fastest to
    /// measure.
    fn begin_probe(&mut self, device: Device, writer: &Desk<'_>, concurrent: bool) {
        let Some(shortest) = self.shortest(device) else { return };
        let assignment = self.crew.assignment(shortest, writer, concurrent);
        if let Some(order) = probe(assignment, self.crew.plan.entry(shortest).timeout) {
            self.give(device, order, AtWork { company: concurrent, need: 0 });
        }
    }

    fn shortest(&self, device: Device) -> Option<&'a Group> {
        let plan = self.crew.plan;
        let runs = |group: &&&Group| group.cases().iter().any(|case| case.supported().is_ok());
        let queue = self.lanes.get(&device)?.queue.iter().filter(runs).copied();
        queue.min_by(|one, other| plan.seconds(one).total_cmp(&plan.seconds(other)))
    }

    fn margin(&self, device: Device) -> f64 {
        self.shortest(device).map_or(0.0, |group| self.crew.plan.entry(group).timing.margin)
    }

    /// Collects the probe records, which are not forwarded to the listener. A device that finishes early repeats its
    /// probe until all have finished once, so that each is measured concurrently.
    fn records(&mut self, writer: &mut Desk<'_>) -> BTreeMap<Device, Record> {
        let probed = self.lanes.values().filter(|lane| lane.at_work.is_some()).count();
        let (mut found, mut done_once) = (BTreeMap::new(), BTreeSet::new());
        while self.is_at_work() {
            let Some(Said { device, word }) = self.next(writer) else { continue };
            match word {
                Word::Heard(Event::Ended(record)) if done_once.len() < probed => {
                    found.insert(device, *record);
                }
                Word::Heard(Event::Ended(_)) => {}
                Word::Heard(event) => self.pass_on(device, event, writer),
                Word::Done(done) => {
                    self.end(device, done, writer);
                    done_once.insert(device);
                    if done_once.len() < probed && !writer.interrupted() {
                        self.begin_probe(device, writer, true);
                    }
                }
            }
        }
        found
    }

    /// Lets every device measure its queue. Each record is on disk before the next message is handled.
    fn measure(&mut self, writer: &mut Desk<'_>) {
        let budget = Room::of_host();
        loop {
            let devices: Vec<Device> = self.lanes.keys().copied().collect();
            for device in devices {
                while !writer.interrupted() && self.begin_next(device, &budget, writer) {}
            }
            if !self.is_at_work() {
                return;
            }
            let Some(Said { device, word }) = self.next(writer) else { continue };
            match word {
                Word::Heard(Event::Ended(mut record)) => {
                    let is_concurrent = self.lanes[&device].at_work.as_ref().is_some_and(|work| work.company);
                    if is_concurrent {
                        self.company.warn(&mut record);
                    }
                    writer.take(*record);
                }
                Word::Heard(event) => self.pass_on(device, event, writer),
                Word::Done(done) => self.end(device, done, writer),
            }
        }
    }

    /// Starts the first queued group of a device that fits into host memory. Returns true if it required no worker, so
    /// that the device is still free.
    fn begin_next(&mut self, device: Device, budget: &Room, writer: &mut Desk<'_>) -> bool {
        if self.lanes.get(&device).is_none_or(|lane| lane.at_work.is_some() || lane.lost.is_some()) {
            return false;
        }
        let (plan, devices) = (self.crew.plan, self.crew.devices);
        let needs: Vec<u64> = self.lanes.values().filter_map(|lane| Some(lane.at_work.as_ref()?.need)).collect();
        let is_concurrent = self.lanes.iter().any(|(other, lane)| *other != device && lane.has_more());
        let fits = |group: &&Group| budget.admits(need(group, plan, devices), &needs);
        let first = |lane: &mut Lane<'a>| lane.queue.remove(lane.queue.iter().position(fits)?);
        let Some(group) = self.lanes.get_mut(&device).and_then(first) else { return false };
        writer.begin(group, device);
        let next = self.lanes[&device].queue.front().copied();
        let next = self.crew.next(group, next, writer);
        let assignment = Assignment { next, ..self.crew.assignment(group, writer, is_concurrent) };
        if assignment.cases.is_empty() {
            writer.tell(device);
            return true;
        }
        let order = Order { assignment, timeout: plan.entry(group).timeout };
        self.give(device, order, AtWork { company: is_concurrent, need: need(group, plan, devices) });
        false
    }

    fn give(&mut self, device: Device, order: Order, work: AtWork) {
        let Some(lane) = self.lanes.get_mut(&device) else { return };
        // A device thread receives until its commands end. A failed send means that it panicked; the scope propagates
        // the panic.
        if lane.lost.is_none() && lane.orders.send(order).is_ok() {
            lane.at_work = Some(work);
        }
    }

    fn is_at_work(&self) -> bool {
        self.lanes.values().any(|lane| lane.at_work.is_some())
    }

    /// Returns the next message, or `None` after the poll interval.
    fn next(&mut self, writer: &Desk<'_>) -> Option<Said> {
        let message = self.said.recv_timeout(GLANCE);
        if writer.interrupted() {
            self.stop.store(true, Ordering::Relaxed);
        }
        if matches!(message, Err(RecvTimeoutError::Disconnected)) {
            // Every device thread panicked; the scope propagates the panic.
            self.lanes.values_mut().for_each(|lane| lane.at_work = None);
        }
        message.ok()
    }

    fn pass_on(&mut self, device: Device, event: Event, writer: &mut Desk<'_>) {
        if let Event::Touched { case, stage } = &event {
            self.stages.insert(device, (case.clone(), *stage));
            writer.listener.hear(Event::AtWork(self.stages.values().cloned().collect()));
            writer.listener.hear(event);
        }
    }

    fn end(&mut self, device: Device, done: Result<(), WorkerError>, writer: &mut Desk<'_>) {
        if let Some(lane) = self.lanes.get_mut(&device) {
            (lane.at_work, lane.lost) = (None, done.err());
        }
        self.stages.remove(&device);
        writer.tell(device);
        writer.listener.hear(Event::AtWork(self.stages.values().cloned().collect()));
    }
}
