//! Whether what should be fused was: fewer kernels ran than in the case that it is compared with.

use super::protocol::Assignment;
use calorimeter_case::Implementation;
use calorimeter_sinks::Record;

/// Tells it where the kernels of both were counted, and where what should be unfused was not.
pub fn tell(records: &mut [(usize, Record)], assignment: &Assignment) {
    let counted: Vec<(usize, Option<f64>)> =
        records.iter().map(|(case, record)| (*case, record.execution.kernel_launches)).collect();
    for (case, record) in records.iter_mut().filter(|(_, record)| record.case.fusion.is_some()) {
        let steps = record.case.fusion.as_ref().map_or(0, |model| model.operators.len());
        if let Some(own) = record.execution.kernel_launches.filter(|&own| own < steps as f64)
            && record.case.implementation == Implementation::Eager
        {
            let warning = format!("{own} kernels ran where {steps} steps should each be one: this side is not unfused");
            record.outcome.warnings.push(warning);
        }
        let against = assignment.against[*case];
        let unfused = counted.iter().find(|(case, _)| Some(*case) == against).and_then(|(_, launches)| *launches);
        if let (Some(unfused), Some(own)) = (unfused, record.execution.kernel_launches) {
            record.execution.fusion_state = Some(if own < unfused { "fused" } else { "not-fused" }.to_owned());
        }
    }
}
