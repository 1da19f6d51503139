//! Remaining cases of an assignment.

use super::protocol::{AssignedCase, Assignment};
use calorimeter_case::{CaseId, Status};
use std::collections::{HashMap, HashSet};

/// Cases without a record, and their baselines. Baselines that have a record are measured again, interleaved; their
/// records stay valid.
pub(super) fn remaining_cases(assignment: &Assignment, ended: &HashMap<CaseId, Status>) -> HashSet<CaseId> {
    let pending = |assigned: &&AssignedCase| !ended.contains_key(&assigned.case.id);
    let baselines: HashSet<&CaseId> =
        assignment.cases.iter().filter(pending).filter_map(|one| one.baseline.as_ref()).collect();
    let again = |id: &CaseId| ended.get(id) == Some(&Status::Ok) && baselines.contains(id);
    let needed = assignment.cases.iter().filter(|one| pending(one) || again(&one.case.id));
    needed.map(|one| one.case.id.clone()).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::protocol::{AssignmentPurpose, CaseSpec};
    use super::*;
    use calorimeter_case::{Axes, Case, Dtype};
    use calorimeter_recipes::Recipe;
    use calorimeter_zoo::Task;

    /// Specification of a small computation.
    pub(crate) fn spec(workload: &str, recipe: &str) -> CaseSpec {
        let shape = Axes::from([("m", 16), ("k", 64), ("n", 32)]);
        let task = Task::new(workload.parse().unwrap(), &shape, Dtype::F32.into(), None, 7).unwrap();
        CaseSpec::try_from((task, recipe.parse::<Recipe>().unwrap().into())).unwrap()
    }

    /// Assignment of a baseline and cases compared with it; ids are numbers.
    pub(crate) fn assignment(cases: usize) -> Assignment {
        let id = |number: usize| CaseId::from(number.to_string());
        let case = |number| AssignedCase {
            case: Case { id: id(number), ..Case::default() },
            spec: spec("linear", "baseline"),
            baseline: (number > 0).then(|| id(0)),
            sets: 1,
            kernels: None,
        };
        Assignment {
            cases: (0..cases).map(case).collect(),
            device: Default::default(),
            run_dir: None,
            purpose: AssignmentPurpose::Check,
            mock: vec![],
            concurrent_devices: false,
            next: vec![],
        }
    }

    #[test]
    fn remaining_cases_include_measured_baseline() {
        let (ok, crashed) = (Some(Status::Ok), Some(Status::Crashed));
        for (ended, expected) in [
            ([None, None, None], vec!["0", "1", "2"]),
            ([ok, crashed, None], vec!["0", "2"]),
            ([crashed, None, None], vec!["1", "2"]),
            ([ok, crashed, ok], vec![]),
            ([None, ok, ok], vec!["0"]),
        ] {
            let ids = ["0", "1", "2"].map(CaseId::from);
            let known = ids.into_iter().zip(ended).filter_map(|(id, status)| Some((id, status?))).collect();
            let expected: HashSet<CaseId> = expected.into_iter().map(CaseId::from).collect();
            assert_eq!(remaining_cases(&assignment(3), &known), expected, "{ended:?}");
        }
    }
}
