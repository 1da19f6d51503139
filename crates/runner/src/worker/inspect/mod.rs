//! Inspections of measured cases, outside of any window. Each is one file and one line in [`inspections`].

mod exported_launches;
mod finding;
mod fusion;
mod inspection;
mod memory;
mod percentiles;
mod single_launches;
mod trace;
mod traffic;

use super::arm::CaseArm;
use super::group_context::GroupContext;
use super::poison::{PoisonedProcess, catch_poison};
use finding::InspectionFinding;
use inspection::{InspectedCase, Inspection};

/// Inspections with their index, which determines the order of warnings in records; they may run in any order.
pub(super) type Inspections = Vec<(usize, Box<dyn Inspection>)>;

/// Returns every inspection.
pub(super) fn inspections() -> Inspections {
    let inspections: Vec<Box<dyn Inspection>> = vec![
        Box::new(exported_launches::LaunchesInspection),
        Box::new(percentiles::PercentilesInspection),
        Box::new(trace::TraceInspection),
        Box::<traffic::TrafficInspection>::default(),
        Box::new(fusion::FusionInspection),
        Box::<memory::MemoryInspection>::default(),
    ];
    inspections.into_iter().enumerate().collect()
}

/// Inspects measured cases, except those that passed in an earlier batch. Failures become warnings.
pub(super) fn inspect(
    inspections: &mut Inspections,
    arms: &mut [CaseArm],
    group: &mut GroupContext<'_>,
) -> Result<(), PoisonedProcess> {
    let found = run_all(inspections, arms, group)?;
    apply_findings(found, arms);
    Ok(())
}

/// Writes findings into the records, ordered by index.
fn apply_findings(mut found: Vec<(usize, InspectionFinding)>, arms: &mut [CaseArm]) {
    found.sort_by_key(|(index, _)| *index);
    for (_, finding) in found {
        if let Some(arm) = arms.iter_mut().find(|arm| arm.record.case.id == finding.case) {
            finding.apply(&mut arm.record);
        }
    }
}

/// Runs all inspections and returns their findings. Inspections that require closed workloads run last.
fn run_all(
    inspections: &mut Inspections,
    arms: &mut [CaseArm],
    group: &mut GroupContext<'_>,
) -> Result<Vec<(usize, InspectionFinding)>, PoisonedProcess> {
    let mut found = Vec::new();
    for exclusive in [false, true] {
        if exclusive {
            arms.iter_mut().for_each(|arm| arm.job.close());
        }
        for (index, inspection) in
            inspections.iter_mut().filter(|(_, inspection)| inspection.needs_closed_workloads() == exclusive)
        {
            found.extend(run_one(inspection.as_mut(), arms, group)?.into_iter().map(|finding| (*index, finding)));
            inspection.release();
        }
    }
    Ok(found)
}

/// Runs one inspection on all cases.
fn run_one(
    inspection: &mut dyn Inspection,
    arms: &mut [CaseArm],
    group: &mut GroupContext<'_>,
) -> Result<Vec<InspectionFinding>, PoisonedProcess> {
    let mut found = Vec::new();
    for arm in arms.iter_mut() {
        if group.listener.interrupted() {
            return Ok(found);
        }
        let passed = group.operands.passed_cases.contains(&arm.record.case.id);
        let is_remote = group.operands.task.is_remote(arm.record.case.implementation, group.operands.device);
        let is_unseen = inspection.observes_this_process() && is_remote;
        if passed || is_unseen || !arm.record.is_ok() || !inspection.applies_to(&arm.record.case, group.assignment) {
            continue;
        }
        let case = arm.record.case.id.clone();
        group.listener.report_progress(&case, inspection.stage());
        let mut subject = InspectedCase::from(arm);
        let result = catch_poison(&case, || inspection.inspect(&mut subject, group))?;
        let (mut warnings, mut facet) = (subject.warnings, None);
        match result {
            Ok(found) => facet = found,
            Err(error) => warnings.push(inspection.failure_warning(&error)),
        }
        found.push(InspectionFinding { case, facet, warnings });
    }
    found.extend(inspection.compare(arms, group.assignment));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::single_launches::tests::{SilentListener, arm, scripted};
    use super::*;
    use crate::worker::context::WorkerContext;
    use crate::worker::operands::GroupOperands;
    use crate::worker::protocol::{Assignment, AssignmentPurpose};
    use crate::worker::remaining::tests::assignment;
    use calorimeter_case::{Axes, Case, CaseId, Device, Export, FusionModel, Implementation, Record, WarningCode};
    use calorimeter_timing::Options;

    /// A case that requests every inspection, and its baseline.
    fn arms() -> Vec<CaseArm> {
        let case = |id: &str, implementation| Case {
            id: CaseId::from(id.to_owned()),
            workload: "linear".parse().unwrap(),
            shape: Axes::from([("m", 8), ("k", 8), ("n", 8)]),
            device: Device::Mock(0),
            implementation,
            fusion: Some(Box::new(FusionModel {
                operators: vec!["matmul".into(), "add".into()],
                unfused_bytes: 3,
                fused_bytes: 1,
            })),
            profiler: true,
            memory_profiler: true,
            percentiles: true,
            export: Some(Box::new(Export { csv_path: Some("t".into()), ..Export::default() })),
            ..Case::default()
        };
        let arm = |case: Case, launches: f64| {
            let mut arm = arm(scripted(1e6, 500.0));
            (arm.assigned.case, arm.record.case) = (case.clone(), case);
            arm.record.execution.kernel_launches = Some(launches);
            arm
        };
        let mut fused = arm(case("fused", Implementation::Fused), 1.0);
        fused.assigned.baseline = Some(CaseId::from("unfused".to_owned()));
        vec![arm(case("unfused", Implementation::Eager), 1.0), fused]
    }

    /// Records after inspections; `passed` are the cases that passed in an earlier batch.
    fn inspected(inspections: &mut Inspections, passed: &[&str]) -> Vec<Record> {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { max_time: std::time::Duration::from_millis(50), ..Options::default() };
        let assignment = Assignment {
            run_dir: Some(folder.path().to_owned()),
            purpose: AssignmentPurpose::Measure(options),
            ..assignment(0)
        };
        let mut arms = arms();
        let mut operands = GroupOperands::new(&arms[0].assigned);
        operands.passed_cases.extend(passed.iter().map(|id| CaseId::from(id.to_string())));
        let mut context = WorkerContext::new();
        let mut group = GroupContext {
            assignment: &assignment,
            operands: &mut operands,
            context: &mut context,
            listener: &mut SilentListener,
        };
        inspect(inspections, &mut arms, &mut group).unwrap_or_else(|_| panic!("the process was poisoned"));
        arms.into_iter().map(|arm| arm.record).collect()
    }

    #[test]
    fn passed_cases_are_not_inspected_again() {
        let (records, again) = (inspected(&mut inspections(), &[]), inspected(&mut inspections(), &["unfused"]));
        let [unfused, fused] = &again[..] else { panic!("{again:?}") };
        assert_eq!(*fused, records[1]);
        assert!(unfused.time.iterations_ns.is_empty() && unfused.profile.trace.is_none(), "{unfused:?}");
        assert!(unfused.warnings.is_empty() && !records[0].warnings.is_empty(), "{unfused:?}");
    }

    #[test]
    fn inspection_order_does_not_matter() {
        let turned = |turn: usize| {
            let mut inspections = inspections();
            inspections.rotate_left(turn);
            inspections.reverse();
            inspected(&mut inspections, &[])
        };
        let records = turned(0);
        for turn in 1..inspections().len() {
            assert_eq!(turned(turn), records, "{turn}");
        }
        let [unfused, fused] = &records[..] else { panic!("{records:?}") };
        assert!(!unfused.time.iterations_ns.is_empty() && fused.execution.fusion_state.is_some(), "{records:?}");
        assert!(unfused.profile.trace.is_some(), "{unfused:?}");
        let codes: Vec<WarningCode> = unfused.warnings.iter().map(|warning| warning.code).collect();
        use WarningCode::{LaunchOverhead, MissingMemory, MissingPercentiles, NotUnfused};
        assert_eq!(codes, [LaunchOverhead, MissingPercentiles, NotUnfused, MissingMemory]);
    }
}
