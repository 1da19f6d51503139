//! Planned case: identity, support, and conversion to a case.

use super::ids::IdAllocator;
use crate::dialects::published_counts;
use crate::entries::ResolvedEntry;
use crate::worker::CaseSpec;
use calorimeter_case::{CaseId, CaseIdentity, Implementation, Name, Regime};
use calorimeter_external::is_external;
use calorimeter_probe::regimes;
use calorimeter_recipes::{QuantConfig, RecipeVariant};
use calorimeter_sinks::Case;
use calorimeter_zoo::{Subject, Task};
use std::sync::Arc;

/// Case in a plan. A plan may have a million, so that it stores indices and builds the case on demand.
#[derive(Debug, Clone)]
pub struct PlannedCase {
    index: PlanIndex,
    variant: u32,
    implementation: u32,
    implied: bool,
    id: CaseId,
    supported: Result<(), Arc<str>>,
}

/// Position of a case in the entries of a plan.
#[derive(Debug, Clone)]
pub(super) struct PlanIndex {
    /// All entries.
    pub entries: Arc<[ResolvedEntry]>,
    /// Index of the entry.
    pub entry: u32,
    /// Index of the task in the entry.
    pub task: u32,
    /// Timing mode.
    pub regime: Regime,
}

impl PlanIndex {
    pub(super) fn entry(&self) -> &ResolvedEntry {
        &self.entries[self.entry as usize]
    }

    /// Task with the name of its size.
    fn task(&self) -> (Name, &Task) {
        let (name, task) = &self.entry().tasks[self.task as usize];
        (*name, task)
    }

    /// Cases of a group: every variant in every implementation.
    pub(super) fn planned_cases(&self, ids: &mut IdAllocator) -> Vec<PlannedCase> {
        let entry = self.entry();
        let mut cases = Vec::with_capacity(entry.variants.len() * entry.implementations.len());
        for variant in 0..entry.variants.len() as u32 {
            for implementation in 0..entry.implementations.len() as u32 {
                cases.push(PlannedCase::new(self.clone(), variant, implementation, ids));
            }
        }
        cases
    }
}

impl PlannedCase {
    fn new(place: PlanIndex, variant: u32, implementation: u32, ids: &mut IdAllocator) -> Self {
        let (id, implied) = (CaseId::default(), false);
        let mut planned = Self { index: place, variant, implementation, implied, id, supported: Ok(()) };
        let (recipe, sparsity) = planned.names();
        let (entry, task) = (planned.index.entry(), planned.index.task().1);
        let identity = CaseIdentity {
            mode: entry.mode,
            workload: entry.subject.to_string().into(),
            variant: (recipe, sparsity),
            implementation: planned.implementation(),
            device: entry.device,
            element: entry.element,
            output: task.output(),
            axes: &task.axes(),
            regime: planned.index.regime,
            repeat: 0,
        };
        let id = ids.next_id(identity);
        let supported = planned.check_support().map_err(|reason| ids.intern_reason(reason));
        planned.implied = entry.implied_baseline && planned.is_baseline();
        (planned.id, planned.supported) = (id, supported);
        planned
    }

    /// Id of the case.
    pub fn id(&self) -> &CaseId {
        &self.id
    }

    /// Builds the case for plans and records.
    pub fn case(&self) -> Case {
        let (entry, (name, task)) = (self.index.entry(), self.index.task());
        let exists = task.exists();
        let (recipe, sparsity) = self.names();
        // Nonexistent tasks, and variants that do not support the dtype, have no size.
        let treatment: Option<QuantConfig> = task.treatment(self.variant()).ok().filter(|_| exists);
        Case {
            id: self.id.clone(),
            mode: entry.mode,
            name: entry.name.clone().unwrap_or_default(),
            workload: entry.subject.to_string().into(),
            recipe,
            sparsity,
            scaling: treatment
                .and_then(|treatment| treatment.training)
                .map(|recipe| recipe.scaling_description().into()),
            implementation: self.implementation(),
            device: entry.device,
            element: entry.element,
            output: task.output(),
            shape_name: name.to_string(),
            shape: task.axes(),
            regime: self.index.regime,
            tokens: exists.then(|| task.tokens()).flatten(),
            flops: exists.then(|| task.flops()).flatten(),
            bytes: treatment.as_ref().and_then(|treatment| task.bytes(treatment)),
            published: exists.then(|| published_counts(task)).flatten().map(Box::new),
            fusion: exists.then(|| task.fusion()).flatten().map(Box::new),
            memory_bytes: treatment.as_ref().and_then(|treatment| task.memory(treatment)),
            implied: self.implied,
            compile_mode: entry.compile_mode.map(|mode| mode.to_string()),
            profiler: entry.profiler,
            memory_profiler: entry.memory_profiler,
            percentiles: entry.percentiles,
            peak_memory: entry.peak_memory,
            export: entry.export.clone().map(Box::new),
            flashinfer_workload: task.flashinfer_workload().map(ToOwned::to_owned),
        }
    }

    /// Computation of the case; `None` if it is unsupported.
    pub fn spec(&self) -> Option<CaseSpec> {
        self.supported.as_ref().ok()?;
        let task = self.index.task().1.clone();
        Some(CaseSpec::try_from((task, self.variant())).expect("a supported case has a treatment"))
    }

    /// Returns the reason if the case is unsupported; determined without access to a device.
    pub fn supported(&self) -> Result<(), &str> {
        self.supported.as_ref().copied().map_err(|reason| &**reason)
    }

    /// True if nothing is quantized or pruned.
    pub fn is_baseline(&self) -> bool {
        self.variant() == RecipeVariant::BASELINE
    }

    /// Implementation.
    pub fn implementation(&self) -> Implementation {
        self.index.entry().implementations[self.implementation as usize]
    }

    /// Implementation whose baseline serves all cases of the group: `eager`. The first implementation, if an external
    /// one is measured and `eager` is not.
    pub(super) fn baseline_implementation(&self) -> Implementation {
        let entry = self.index.entry();
        let measured = &entry.implementations;
        let has_external = || measured.iter().any(|&one| is_external(one));
        match entry.subject {
            Subject::Foreign(foreign) => foreign.reference_implementation().unwrap_or(Implementation::Eager),
            Subject::Model(_) | Subject::Operator(_) if measured.contains(&Implementation::Eager) => {
                Implementation::Eager
            }
            Subject::Model(_) | Subject::Operator(_) if has_external() => measured[0],
            Subject::Model(_) | Subject::Operator(_) => Implementation::Eager,
        }
    }

    /// Marks the case as included only as a baseline.
    pub(super) fn mark_implied(&mut self) {
        self.implied = true;
    }

    fn variant(&self) -> RecipeVariant {
        self.index.entry().variants[self.variant as usize]
    }

    fn names(&self) -> (Name, Option<Name>) {
        let RecipeVariant { recipe, sparsity } = self.variant();
        (recipe.name(), sparsity.map(|sparsity| sparsity.to_string().into()))
    }

    fn check_support(&self) -> Result<(), String> {
        let (entry, task) = (self.index.entry(), self.index.task().1);
        let (regime, implementation) = (self.index.regime, self.implementation());
        regimes::supported(regime, task, implementation, entry.device)?;
        let treatment = task.support(self.variant(), implementation, entry.device);
        treatment.map(drop).map_err(|error| error.to_string())
    }
}
