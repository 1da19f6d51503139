//! Groups that the devices of a fleet measure at the same time: a lane for each device, and one desk.

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

/// How often it is asked whether to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// What became of what was measured at the same time.
#[derive(Default)]
pub struct AtOnce {
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Devices for which workers can no longer be had, and why.
    pub lost: Vec<(Device, WorkerError)>,
    /// The fleets whose devices had lanes.
    fleets: Vec<Vec<Device>>,
}

impl AtOnce {
    /// Whether a group is not to be measured by itself: it has had its turn, or its device is lost.
    pub fn has_seen_to(&self, plan: &Plan, group: &Group) -> bool {
        let entry = plan.entry(group);
        let had_a_turn = plan.may_have_company(group) && self.fleets.contains(&entry.fleet);
        had_a_turn || self.lost.iter().any(|(device, _)| *device == entry.device)
    }

    /// Why the run ends early, where workers can no longer be had: of which of several devices.
    pub fn stopped(mut self) -> Option<WorkerError> {
        if self.fleets.is_empty() {
            return self.lost.pop().map(|(_, why)| why);
        }
        (!self.lost.is_empty()).then_some(WorkerError::Lost(self.lost))
    }
}

/// Has everything measured that the devices of fleets can measure at the same time, one fleet after the other. Nothing
/// of one where only one device has something to do, or where another executor cannot be had.
pub fn measure(crew: &Crew<'_>, desk: &mut Desk<'_>) -> AtOnce {
    let mut at_once = AtOnce::default();
    let fleets: BTreeSet<&[Device]> = crew.plan.entries().iter().map(|entry| &entry.fleet[..]).collect();
    for fleet in fleets.into_iter().filter(|fleet| !fleet.is_empty()) {
        let mut queues: BTreeMap<Device, VecDeque<&Group>> = BTreeMap::new();
        for group in crew.plan.drawn() {
            let entry = crew.plan.entry(group);
            if entry.fleet == fleet && crew.plan.may_have_company(group) && !desk.is_complete(group) {
                queues.entry(entry.device).or_default().push_back(group);
            }
        }
        let executors = queues.keys().map(|_| crew.executor.another(queues.len()));
        let executors: Option<Vec<Box<dyn Executor + Send>>> = executors.collect();
        if let Some(executors) = executors.filter(|executors| executors.len() > 1 && !desk.interrupted()) {
            let (company, lost) = of_fleet(crew, desk, queues, executors);
            at_once.notes.extend(company.notes());
            at_once.lost.extend(lost);
            at_once.fleets.push(fleet.to_vec());
        }
    }
    at_once
}

/// Probes company, and then has each device measure its queue.
fn of_fleet(
    crew: &Crew<'_>,
    desk: &mut Desk<'_>,
    queues: BTreeMap<Device, VecDeque<&Group>>,
    executors: Vec<Box<dyn Executor + Send>>,
) -> (Company, Vec<(Device, WorkerError)>) {
    let stop = AtomicBool::new(false);
    let (voice, said) = channel();
    std::thread::scope(|scope| {
        let mut lanes = BTreeMap::new();
        for ((device, queue), executor) in queues.into_iter().zip(executors) {
            let (orders, given) = channel();
            let (found, voice, stop) = (crew.devices.of(device), voice.clone(), &stop);
            let thread = std::thread::Builder::new();
            let started = thread.spawn_scoped(scope, move || work(found, executor, given, voice, stop));
            let lost = started.err().map(WorkerError::Spawn);
            lanes.insert(device, Lane { orders, queue, at_work: None, lost });
        }
        drop(voice);
        desk.hold_back();
        let mut fleet = Fleet { crew, said, stop: &stop, lanes, company: Company::default(), stages: BTreeMap::new() };
        fleet.shortest_first();
        if !crew.untimed {
            fleet.probe(desk);
        }
        fleet.measure(desk);
        desk.hold_nothing_back();
        let lost = fleet.lanes.into_iter().filter_map(|(device, lane)| Some((device, lane.lost?))).collect();
        (fleet.company, lost)
    })
}

/// A device's lane, as the run sees it.
struct Lane<'a> {
    orders: Sender<Order>,
    queue: VecDeque<&'a Group>,
    at_work: Option<AtWork>,
    /// Why it cannot go on.
    lost: Option<WorkerError>,
}

/// What a lane is at.
struct AtWork {
    /// Whether others were at work, or about to be, when it began.
    company: bool,
    /// Bytes of the host's memory.
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
    /// What is being touched, device by device.
    stages: BTreeMap<Device, (CaseId, Stage)>,
}

impl<'a> Fleet<'a, '_> {
    /// All devices at the same time, so that they open what they probe with together, and then each by itself: what the
    /// host makes of times shows in the difference.
    fn probe(&mut self, desk: &mut Desk<'_>) {
        let devices: Vec<Device> = self.lanes.keys().copied().collect();
        let alone = devices.iter().map(|&device| vec![device]);
        for who in std::iter::once(devices.clone()).chain(alone) {
            let beside = who.len() > 1;
            for &device in &who {
                self.begin_probe(device, desk, beside);
            }
            let mut found = self.records(desk);
            if desk.interrupted() {
                return;
            }
            for device in who {
                let margin = self.crew.floors[&device].margin(self.margin(device));
                self.company.found(device, margin, found.remove(&device), beside);
            }
        }
    }

    /// Each device begins with its shortest group, whose preparation nothing hides: that of others is made meanwhile.
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

    /// The shortest group of a device shows best what the host does to it, and takes least.
    fn begin_probe(&mut self, device: Device, desk: &Desk<'_>, beside: bool) {
        let Some(shortest) = self.shortest(device) else { return };
        let assignment = self.crew.assignment(shortest, desk, beside);
        if let Some(order) = probe(assignment, self.crew.plan.entry(shortest).timeout) {
            self.give(device, order, AtWork { company: beside, need: 0 });
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

    /// The records of the probes that the lanes are at, which nobody else hears of. Who is done begins again until
    /// all have been done once, so that none is alone while it measures.
    fn records(&mut self, desk: &mut Desk<'_>) -> BTreeMap<Device, Record> {
        let probed = self.lanes.values().filter(|lane| lane.at_work.is_some()).count();
        let (mut found, mut done_once) = (BTreeMap::new(), BTreeSet::new());
        while self.is_at_work() {
            let Some(Said { device, word }) = self.next(desk) else { continue };
            match word {
                Word::Heard(Event::Ended(record)) if done_once.len() < probed => {
                    found.insert(device, *record);
                }
                Word::Heard(Event::Ended(_)) => {}
                Word::Heard(event) => self.pass_on(device, event, desk),
                Word::Done(done) => {
                    self.end(device, done, desk);
                    done_once.insert(device);
                    if done_once.len() < probed && !desk.interrupted() {
                        self.begin_probe(device, desk, true);
                    }
                }
            }
        }
        found
    }

    /// Every lane has its groups measured, and each record is on disk before anything else is heard.
    fn measure(&mut self, desk: &mut Desk<'_>) {
        let room = Room::of_host();
        loop {
            let devices: Vec<Device> = self.lanes.keys().copied().collect();
            for device in devices {
                while !desk.interrupted() && self.begin_next(device, &room, desk) {}
            }
            if !self.is_at_work() {
                return;
            }
            let Some(Said { device, word }) = self.next(desk) else { continue };
            match word {
                Word::Heard(Event::Ended(mut record)) => {
                    let in_company = self.lanes[&device].at_work.as_ref().is_some_and(|work| work.company);
                    if in_company {
                        self.company.warn(&mut record);
                    }
                    desk.take(*record);
                }
                Word::Heard(event) => self.pass_on(device, event, desk),
                Word::Done(done) => self.end(device, done, desk),
            }
        }
    }

    /// Gives a lane the first group of its queue that the host has room for. Whether there was one that no worker had
    /// to measure, so that the lane is still free.
    fn begin_next(&mut self, device: Device, room: &Room, desk: &mut Desk<'_>) -> bool {
        if self.lanes.get(&device).is_none_or(|lane| lane.at_work.is_some() || lane.lost.is_some()) {
            return false;
        }
        let (plan, devices) = (self.crew.plan, self.crew.devices);
        let needs: Vec<u64> = self.lanes.values().filter_map(|lane| Some(lane.at_work.as_ref()?.need)).collect();
        let company = self.lanes.iter().any(|(other, lane)| *other != device && lane.has_more());
        let fits = |group: &&Group| room.admits(need(group, plan, devices), &needs);
        let first = |lane: &mut Lane<'a>| lane.queue.remove(lane.queue.iter().position(fits)?);
        let Some(group) = self.lanes.get_mut(&device).and_then(first) else { return false };
        desk.begin(group, device);
        let next = self.lanes[&device].queue.front().copied();
        let next = self.crew.next(group, next, desk);
        let assignment = Assignment { next, ..self.crew.assignment(group, desk, company) };
        if assignment.cases.is_empty() {
            desk.tell(device);
            return true;
        }
        let order = Order { assignment, timeout: plan.entry(group).timeout };
        self.give(device, order, AtWork { company, need: need(group, plan, devices) });
        false
    }

    fn give(&mut self, device: Device, order: Order, work: AtWork) {
        let Some(lane) = self.lanes.get_mut(&device) else { return };
        // A lane listens until its orders end, so that one that does not has panicked, and the scope will tell.
        if lane.lost.is_none() && lane.orders.send(order).is_ok() {
            lane.at_work = Some(work);
        }
    }

    fn is_at_work(&self) -> bool {
        self.lanes.values().any(|lane| lane.at_work.is_some())
    }

    /// What is said next, if anything is before it is time to look whether to stop.
    fn next(&mut self, desk: &Desk<'_>) -> Option<Said> {
        let said = self.said.recv_timeout(GLANCE);
        if desk.interrupted() {
            self.stop.store(true, Ordering::Relaxed);
        }
        if matches!(said, Err(RecvTimeoutError::Disconnected)) {
            // Every lane has panicked, which the scope tells.
            self.lanes.values_mut().for_each(|lane| lane.at_work = None);
        }
        said.ok()
    }

    fn pass_on(&mut self, device: Device, event: Event, desk: &mut Desk<'_>) {
        if let Event::Touched { case, stage } = &event {
            self.stages.insert(device, (case.clone(), *stage));
            desk.listener.hear(Event::AtWork(self.stages.values().cloned().collect()));
            desk.listener.hear(event);
        }
    }

    fn end(&mut self, device: Device, done: Result<(), WorkerError>, desk: &mut Desk<'_>) {
        if let Some(lane) = self.lanes.get_mut(&device) {
            (lane.at_work, lane.lost) = (None, done.err());
        }
        self.stages.remove(&device);
        desk.tell(device);
        desk.listener.hear(Event::AtWork(self.stages.values().cloned().collect()));
    }
}
