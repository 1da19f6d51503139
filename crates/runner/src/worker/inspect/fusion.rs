//! Whether what should be fused was: fewer kernels ran than in the case that it is compared with.

use super::inspection::Inspection;
use crate::worker::arm::Arm;
use crate::worker::protocol::Assignment;
use crate::worker::scene::Scene;
use calorimeter_case::record::FusionState;
use calorimeter_case::{Case, CaseId, Implementation};
use calorimeter_timing::Failure;
use std::collections::HashMap;

/// Tells it where the kernels of both were counted, and where what should be unfused was not.
pub struct Telling;

impl Inspection for Telling {
    fn wanted(&self, case: &Case, _: &Assignment) -> bool {
        case.fusion.is_some()
    }

    fn look(&mut self, arm: &mut Arm, _: &mut Scene<'_>) -> Result<(), Failure> {
        let steps = arm.record.case.fusion.as_ref().map_or(0, |model| model.operators.len());
        if let Some(own) = arm.record.execution.kernel_launches.filter(|&own| own < steps as f64)
            && arm.record.case.implementation == Implementation::Eager
        {
            let warning = format!("{own} kernels ran where {steps} steps should each be one: this side is not unfused");
            arm.record.warn(warning);
        }
        Ok(())
    }

    fn lacking(&self) -> &'static str {
        "whether it is fused is not known"
    }

    fn compare(&mut self, arms: &mut [Arm], _: &Assignment) {
        let launches = |arm: &Arm| Some((arm.record.case.id.clone(), arm.record.execution.kernel_launches?));
        let counted: HashMap<CaseId, f64> = arms.iter().filter_map(launches).collect();
        for arm in arms.iter_mut().filter(|arm| arm.record.case.fusion.is_some()) {
            let unfused = arm.against.as_ref().and_then(|id| counted.get(id));
            if let (Some(unfused), Some(own)) = (unfused, arm.record.execution.kernel_launches) {
                arm.record.execution.fusion_state =
                    Some(if own < *unfused { FusionState::Fused } else { FusionState::NotFused });
            }
        }
    }
}
