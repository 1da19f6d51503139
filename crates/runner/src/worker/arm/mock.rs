//! Arms of the mock device: nothing is computed; times follow the rules.

use super::state::{CaseArm, PendingChecks, TimedWorkload};
use crate::mock::{MockRule, MockWorkload};
use crate::worker::event::Stage;
use crate::worker::group_context::GroupContext;
use crate::worker::protocol::AssignedCase;
use calorimeter_case::{Record, Status};
use calorimeter_timing::Stopwatch;
use calorimeter_zoo::{Workload, ZooError};

/// Prepares a case without a workload; its rule determines whether the output is wrong.
pub fn prepare(assigned: &AssignedCase, group: &mut GroupContext<'_>) -> Result<CaseArm, ZooError> {
    let (id, assignment) = (&assigned.case.id, group.assignment);
    group.listener.report_progress(id, Stage::Open);
    let mut rule = MockRule::for_case(&assignment.mock, id)?;
    if assignment.concurrent_devices {
        rule.nanos *= rule.in_company;
    }
    let stopwatch = group.operands.mock_clock.with_shared_machine(rule.script(id));
    let mut workload = MockWorkload::new(rule);
    group.listener.report_progress(id, Stage::Tune);
    let output = workload.output()?;
    let mut record = Record::new(assigned.case.clone(), Status::Ok);
    record.execution.autotune_level = group.tuning_level(assigned.case.implementation);
    record.execution.stopwatch = assignment.purpose.is_timed().then(|| stopwatch.name().to_owned());
    if output.values[0].is_nan() {
        record.outcome.status = Status::Mismatch;
        record.outcome.reason = Some("wrong output: the mock device was told to be wrong".into());
    }
    let (job, assigned) = (TimedWorkload(Box::new(workload)), assigned.clone());
    let (stopwatch, unjudged) = (Box::new(stopwatch), PendingChecks::default());
    Ok(CaseArm {
        job,
        stopwatch,
        record,
        assigned,
        matmul_kinds: vec![],
        computed_share: 1.0,
        pending_checks: unjudged,
    })
}
