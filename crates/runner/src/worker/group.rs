//! Run of an assignment, from tensors to records: open, prime, gate, clock, measure, gate again, inspect. Untimed
//! assignments end after the first gate.

use super::ahead::Ahead;
use super::arm::sensors::Sensors;
use super::arm::{Arm, judge_again, prepare, time};
use super::batches::batches;
use super::context::Context;
use super::event::{Event, Listener, Stage};
use super::inspect::{inspect, inspections};
use super::kernels;
use super::operands::Operands;
use super::places::measure_in_places;
use super::poison::{Poisoned, guarded};
use super::protocol::Assignment;
use super::scene::Scene;
use crate::mock::Rule;
use crate::platforms;
use calorimeter_case::{CaseId, Device, Record, Status};
use std::collections::HashSet;

/// Runs an assignment. Every case gets a record, unless one poisons the process or the run is interrupted.
pub fn work(assignment: &Assignment, context: &mut Context, listener: &mut dyn Listener) -> Result<(), Poisoned> {
    let Some(first) = assignment.cases.first() else { return Ok(()) };
    if platforms::of(first.case.device).is_scripted() {
        Rule::lose(&assignment.mock, &first.case.id);
    }
    if !assignment.is_probe {
        context.probed = None;
    }
    let ahead = context.ahead.take().and_then(Ahead::end);
    let mut operands = match Operands::of(&first.case, assignment.foreign, assignment.seed) {
        Ok(operands) => ahead.filter(|ahead| ahead.is_for(&operands)).unwrap_or(operands),
        Err(error) => {
            for assigned in &assignment.cases {
                let record = Record::without_time(assigned.case.clone(), Status::Failed, error.to_string());
                listener.hear(Event::Ended(Box::new(record)));
            }
            return Ok(());
        }
    };
    if context.looks {
        return kernels::look(&mut Scene { assignment, operands: &mut operands, context, listener });
    }
    if assignment.timing.is_some() && context.sensors.is_none() {
        // Before the first use of the device, so that the sensors record its idle power.
        listener.touch(&first.case.id, Stage::Open);
        context.sensors = Some(Sensors::of(operands.device, &assignment.device));
    }
    let mut once = Once { listener, recorded: HashSet::new() };
    let mut inspections = inspections();
    for batch in batches(assignment, operands.device, context, &mut once) {
        let mut group = Scene { assignment, operands: &mut operands, context, listener: &mut once };
        let mut arms: Vec<Arm> = Vec::new();
        for assigned in batch {
            if group.listener.interrupted() {
                return Ok(());
            }
            match guarded(&assigned.case.id, || prepare(&assigned, &mut group))? {
                Ok(arm) => arms.push(arm),
                Err(record) => end(*record, &mut group)?,
            }
        }
        let Some(timing) = &assignment.timing else { continue };
        if group.context.ahead.is_none() {
            group.context.ahead = assignment.next.as_ref().and_then(Ahead::begin);
        }
        if assignment.is_probe {
            time(&mut arms, timing, &mut group)?;
        } else {
            measure_in_places(&mut arms, timing, &mut group)?;
            judge_again(&mut arms, &mut group)?;
            inspect(&mut inspections, &mut arms, &mut group)?;
        }
        if group.listener.interrupted() {
            // An interrupted measurement is discarded: a resumed run must give the results of an uninterrupted one.
            return Ok(());
        }
        for Arm { record, job, .. } in arms {
            if record.is_ok() {
                group.operands.passed.insert(record.case.id.clone());
            }
            end(record, &mut group)?;
            if let Some(probed) = &mut group.context.probed {
                probed.keep(job);
            }
        }
    }
    Ok(())
}

/// Finishes a case. If it failed and left the device unusable, the process must not continue.
fn end(record: Record, group: &mut Scene<'_>) -> Result<(), Poisoned> {
    let failed = record.outcome.status == Status::Failed;
    let device: Device = group.operands.device;
    if let Some(why) = failed.then(|| group.context.machines.broken(device)).flatten() {
        let reason = record.outcome.reason.clone().unwrap_or(why);
        return Err(Poisoned { case: record.case.id.clone(), reason });
    }
    group.listener.hear(Event::Ended(Box::new(record)));
    Ok(())
}

/// Forwards only the first result of each case: a baseline is measured again in each batch that needs it.
struct Once<'a> {
    listener: &'a mut dyn Listener,
    recorded: HashSet<CaseId>,
}

impl Listener for Once<'_> {
    fn hear(&mut self, event: Event) {
        match &event {
            Event::Ended(record) if !self.recorded.insert(record.case.id.clone()) => {}
            _ => self.listener.hear(event),
        }
    }

    fn interrupted(&self) -> bool {
        self.listener.interrupted()
    }
}
