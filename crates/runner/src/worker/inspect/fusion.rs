//! Fusion check: a fused case must run fewer kernels than its baseline.

use super::finding::{Facet, InspectionFinding};
use super::inspection::{InspectedCase, Inspection};
use crate::worker::arm::CaseArm;
use crate::worker::group_context::GroupContext;
use crate::worker::protocol::Assignment;
use calorimeter_case::record::FusionState;
use calorimeter_case::{Case, CaseId, Implementation, Warning};
use calorimeter_timing::Failure;
use std::collections::HashMap;

/// Determines the fusion state where both kernel counts are known, and warns if the baseline is not unfused.
pub(super) struct FusionInspection;

impl Inspection for FusionInspection {
    fn applies_to(&self, case: &Case, _: &Assignment) -> bool {
        case.fusion.is_some()
    }

    fn inspect(&mut self, subject: &mut InspectedCase<'_>, _: &mut GroupContext<'_>) -> Result<Option<Facet>, Failure> {
        let record = subject.record;
        let steps = record.case.fusion.as_ref().map_or(0, |model| model.operators.len());
        if let Some(own) = record.execution.kernel_launches.filter(|&own| own < steps as f64)
            && record.case.implementation == Implementation::Eager
        {
            subject.warnings.push(Warning::not_unfused(own, steps));
        }
        Ok(None)
    }

    fn failure_warning(&self, error: &Failure) -> Warning {
        Warning::missing_fusion_state(error)
    }

    fn compare(&self, arms: &[CaseArm], _: &Assignment) -> Vec<InspectionFinding> {
        let launches = |arm: &CaseArm| Some((arm.record.case.id.clone(), arm.record.execution.kernel_launches?));
        let counted: HashMap<CaseId, f64> = arms.iter().filter_map(launches).collect();
        let finding = |arm: &CaseArm| {
            let unfused = counted.get(arm.assigned.baseline.as_ref()?)?;
            let own = arm.record.execution.kernel_launches?;
            let state = if own < *unfused { FusionState::Fused } else { FusionState::NotFused };
            Some(InspectionFinding {
                case: arm.record.case.id.clone(),
                facet: Some(Facet::Fusion(state)),
                warnings: Vec::new(),
            })
        };
        arms.iter().filter(|arm| arm.record.case.fusion.is_some()).filter_map(finding).collect()
    }
}
