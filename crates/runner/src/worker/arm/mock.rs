//! Arms of the mock device: nothing is computed; times follow the rules.

use super::state::{Arm, Job, Unjudged, refused};
use crate::mock::{MockWorkload, Rule};
use crate::worker::event::Stage;
use crate::worker::protocol::AssignedCase;
use crate::worker::scene::Scene;
use calorimeter_case::{Record, Status};
use calorimeter_timing::Stopwatch;
use calorimeter_zoo::{Workload, ZooError};

pub fn prepare(assigned: &AssignedCase, group: &mut Scene<'_>) -> Result<Arm, Box<Record>> {
    let case = &assigned.case;
    group.listener.touch(&case.id, Stage::Open);
    let arm = arm(assigned, group).map_err(|error| refused(case, error))?;
    if group.assignment.timing.is_some() && arm.record.is_ok() { Ok(arm) } else { Err(Box::new(arm.record)) }
}

fn arm(assigned: &AssignedCase, group: &mut Scene<'_>) -> Result<Arm, ZooError> {
    let (id, assignment) = (&assigned.case.id, group.assignment);
    let mut rule = Rule::of(&assignment.mock, id)?;
    if assignment.in_company {
        rule.nanos *= rule.in_company;
    }
    let stopwatch = group.operands.mock.beside(rule.script(id));
    let mut workload = MockWorkload::new(rule);
    group.listener.touch(id, Stage::Tune);
    let output = workload.output()?;
    let mut record = Record::new(assigned.case.clone(), Status::Ok);
    record.execution.autotune_level = group.level(assigned.case.implementation);
    record.execution.stopwatch = assignment.timing.as_ref().map(|_| stopwatch.name().to_owned());
    if output.values[0].is_nan() {
        record.outcome.status = Status::Mismatch;
        record.outcome.reason = Some("wrong output: the mock device was told to be wrong".into());
    }
    let (job, assigned) = (Job(Box::new(workload)), assigned.clone());
    let (stopwatch, unjudged) = (Box::new(stopwatch), Unjudged::default());
    Ok(Arm { job, stopwatch, record, assigned, kinds: vec![], share: 1.0, unjudged })
}
