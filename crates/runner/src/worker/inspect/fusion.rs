//! Fusion check: a fused case must run fewer kernels than its baseline.

use super::finding::{Facet, Finding};
use super::inspection::{Inspection, Subject};
use crate::worker::arm::Arm;
use crate::worker::protocol::Assignment;
use crate::worker::scene::Scene;
use calorimeter_case::record::FusionState;
use calorimeter_case::{Case, CaseId, Implementation};
use calorimeter_timing::Failure;
use std::collections::HashMap;

/// Determines the fusion state where both kernel counts are known, and warns if the baseline is not unfused.
pub struct Telling;

impl Inspection for Telling {
    fn wanted(&self, case: &Case, _: &Assignment) -> bool {
        case.fusion.is_some()
    }

    fn look(&mut self, subject: &mut Subject<'_>, _: &mut Scene<'_>) -> Result<Option<Facet>, Failure> {
        let record = subject.record;
        let steps = record.case.fusion.as_ref().map_or(0, |model| model.operators.len());
        if let Some(own) = record.execution.kernel_launches.filter(|&own| own < steps as f64)
            && record.case.implementation == Implementation::Eager
        {
            let remark = format!("{own} kernels ran for {steps} steps: the eager case is not unfused");
            subject.remarks.push(remark);
        }
        Ok(None)
    }

    fn lacking(&self) -> &'static str {
        "fusion state unknown"
    }

    fn compare(&self, arms: &[Arm], _: &Assignment) -> Vec<Finding> {
        let launches = |arm: &Arm| Some((arm.record.case.id.clone(), arm.record.execution.kernel_launches?));
        let counted: HashMap<CaseId, f64> = arms.iter().filter_map(launches).collect();
        let finding = |arm: &Arm| {
            let unfused = counted.get(arm.assigned.against.as_ref()?)?;
            let own = arm.record.execution.kernel_launches?;
            let state = if own < *unfused { FusionState::Fused } else { FusionState::NotFused };
            Some(Finding { case: arm.record.case.id.clone(), facet: Some(Facet::Fusion(state)), warnings: Vec::new() })
        };
        arms.iter().filter(|arm| arm.record.case.fusion.is_some()).filter_map(finding).collect()
    }
}
