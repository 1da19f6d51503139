//! One assignment from tensors to records: open, prime, gate, clock, measure, gate again, inspect; without timing, open,
//! prime and gate.

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

/// Works on an assignment; every case gets a record, unless one poisons the process or the run is interrupted.
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
        // Before anything else touches the device: they see what it draws without work.
        listener.touch(&first.case.id, Stage::Open);
        context.sensors = Some(Sensors::of(operands.device, &assignment.device));
    }
    let mut once = Once { listener, recorded: HashSet::new() };
    let mut inspections = inspections();
    for batch in batches(assignment, operands.device, context, &mut once) {
        let mut scene = Scene { assignment, operands: &mut operands, context, listener: &mut once };
        let mut arms: Vec<Arm> = Vec::new();
        for assigned in batch {
            if scene.listener.interrupted() {
                return Ok(());
            }
            match guarded(&assigned.case.id, || prepare(&assigned, &mut scene))? {
                Ok(arm) => arms.push(arm),
                Err(record) => end(*record, &mut scene)?,
            }
        }
        let Some(timing) = &assignment.timing else { continue };
        if scene.context.ahead.is_none() {
            scene.context.ahead = assignment.next.as_ref().and_then(Ahead::begin);
        }
        if assignment.is_probe {
            time(&mut arms, timing, &mut scene)?;
        } else {
            measure_in_places(&mut arms, timing, &mut scene)?;
            judge_again(&mut arms, &mut scene)?;
            inspect(&mut inspections, &mut arms, &mut scene)?;
        }
        if scene.listener.interrupted() {
            // An interrupted measurement is thrown away: a resumed run must give what an uninterrupted one gives.
            return Ok(());
        }
        for Arm { record, job, .. } in arms {
            if record.is_ok() {
                scene.operands.passed.insert(record.case.id.clone());
            }
            end(record, &mut scene)?;
            if let Some(probed) = &mut scene.context.probed {
                probed.keep(job);
            }
        }
    }
    Ok(())
}

/// Ends a case. One that failed may have left its device unusable, and then the process may not go on.
fn end(record: Record, scene: &mut Scene<'_>) -> Result<(), Poisoned> {
    let failed = record.outcome.status == Status::Failed;
    let device: Device = scene.operands.device;
    if let Some(why) = failed.then(|| scene.context.machines.broken(device)).flatten() {
        let reason = record.outcome.reason.clone().unwrap_or(why);
        return Err(Poisoned { case: record.case.id.clone(), reason });
    }
    scene.listener.hear(Event::Ended(Box::new(record)));
    Ok(())
}

/// Tells of each case's end once: a baseline is measured again beside each case that does not fit beside the others.
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
