//! One way to compute a group's workload: a case, and whether it can run.

use super::ids::IdsAndReasons;
use crate::dialects::published;
use crate::entries::ResolvedEntry;
use crate::{platforms, regimes};
use calorimeter_case::{CaseId, Clock, Identity, Implementation, Name, Regime};
use calorimeter_recipes::{Treatment, Variant};
use calorimeter_sinks::Case;
use calorimeter_zoo::{Subject, Task};
use std::sync::Arc;

/// A case with what is known of it before it runs. A plan may have a million: it keeps where the case is made from.
#[derive(Debug, Clone)]
pub struct PlannedCase {
    place: Place,
    variant: u32,
    implementation: u32,
    implied: bool,
    id: CaseId,
    supported: Result<(), Arc<str>>,
}

/// Where in the entries of a plan a case belongs.
#[derive(Debug, Clone)]
pub struct Place {
    /// All of them.
    pub entries: Arc<[ResolvedEntry]>,
    /// The position of the case's.
    pub entry: u32,
    /// The position of its task.
    pub task: u32,
    /// What its time means.
    pub regime: Regime,
}

impl Place {
    pub fn entry(&self) -> &ResolvedEntry {
        &self.entries[self.entry as usize]
    }

    /// What is computed, with the name that its size was given.
    fn task(&self) -> (Name, &Task) {
        let (name, task) = &self.entry().tasks[self.task as usize];
        (*name, task)
    }

    /// The cases of a group, one for each variant in each implementation.
    pub fn cases(&self, ids: &mut IdsAndReasons) -> Vec<PlannedCase> {
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
    fn new(place: Place, variant: u32, implementation: u32, ids: &mut IdsAndReasons) -> Self {
        let (id, implied) = (CaseId::default(), false);
        let mut planned = Self { place, variant, implementation, implied, id, supported: Ok(()) };
        let (recipe, sparsity) = planned.names();
        let (entry, task) = (planned.place.entry(), planned.place.task().1);
        let identity = Identity {
            mode: entry.mode,
            workload: entry.subject.to_string().into(),
            variant: (recipe, sparsity),
            implementation: planned.implementation(),
            device: entry.device,
            element: entry.element,
            output: task.output(),
            axes: &task.axes(),
            regime: planned.place.regime,
            repeat: 0,
        };
        let id = ids.id(identity);
        let supported = planned.support().map_err(|reason| ids.reason(reason));
        planned.implied = entry.implied_baseline && planned.is_baseline();
        (planned.id, planned.supported) = (id, supported);
        planned
    }

    /// What the case is called.
    pub fn id(&self) -> &CaseId {
        &self.id
    }

    /// The case as it is written to plans and records.
    pub fn case(&self) -> Case {
        let (entry, (name, task)) = (self.place.entry(), self.place.task());
        let exists = task.exists();
        let (recipe, sparsity) = self.names();
        // What does not exist has no size, nor has a variant that does not exist in this dtype.
        let treatment: Option<Treatment> = task.treatment(self.variant()).ok().filter(|_| exists);
        Case {
            id: self.id.clone(),
            mode: entry.mode,
            name: entry.name.clone().unwrap_or_default(),
            workload: entry.subject.to_string().into(),
            recipe,
            sparsity,
            scaling: treatment.and_then(|treatment| treatment.training).map(|recipe| recipe.scaling().into()),
            implementation: self.implementation(),
            device: entry.device,
            element: entry.element,
            output: task.output(),
            shape_name: name.to_string(),
            shape: task.axes(),
            regime: self.place.regime,
            tokens: exists.then(|| task.tokens()).flatten(),
            flops: exists.then(|| task.flops()).flatten(),
            bytes: treatment.as_ref().and_then(|treatment| task.bytes(treatment)),
            published: exists.then(|| published(task)).flatten().map(Box::new),
            fusion: exists.then(|| task.fusion()).flatten().map(Box::new),
            memory_bytes: treatment.as_ref().and_then(|treatment| task.memory(treatment)),
            implied: self.implied,
            compile_mode: entry.compile_mode.map(|mode| mode.to_string()),
            profiler: entry.profiler,
            memory_profiler: entry.memory_profiler,
            percentiles: entry.percentiles,
            peak_memory: entry.peak_memory,
            export: entry.export.clone().map(Box::new),
        }
    }

    /// Whether the combination exists, or why not; known without touching a device.
    pub fn supported(&self) -> Result<(), &str> {
        self.supported.as_ref().copied().map_err(|reason| &**reason)
    }

    /// Whether nothing is quantized or pruned.
    pub fn is_baseline(&self) -> bool {
        self.variant() == Variant::BASELINE
    }

    /// Whose kernels run.
    pub fn implementation(&self) -> Implementation {
        self.place.entry().implementations[self.implementation as usize]
    }

    /// The implementation whose baseline is that of all.
    pub(super) fn yardstick(&self) -> Implementation {
        match self.place.entry().subject {
            Subject::Foreign(foreign) => foreign.first().unwrap_or(Implementation::Eager),
            Subject::Model(_) | Subject::Operator(_) => Implementation::Eager,
        }
    }

    /// Marks it as there only because others are compared with it.
    pub(super) fn imply(&mut self) {
        self.implied = true;
    }

    fn variant(&self) -> Variant {
        self.place.entry().variants[self.variant as usize]
    }

    fn names(&self) -> (Name, Option<Name>) {
        let Variant { recipe, sparsity } = self.variant();
        (recipe.name(), sparsity.map(|sparsity| sparsity.to_string().into()))
    }

    fn support(&self) -> Result<(), String> {
        let (entry, task) = (self.place.entry(), self.place.task().1);
        let (regime, implementation) = (self.place.regime, self.implementation());
        regimes::supported(regime, task.clocked_as(implementation), entry.device)?;
        if let Task::Foreign(problem) = task {
            regimes::supported_of_others(regime, problem, implementation, entry.device)?;
        }
        let captured = regime.clock() == Clock::Graph && !platforms::of(entry.device).is_scripted();
        if captured && task.is_link() {
            return Err(format!("{regime}: {} uses more than the one stream that is captured", entry.subject));
        }
        let treatment = task.support(self.variant(), implementation, entry.device);
        treatment.map(drop).map_err(|error| error.to_string())
    }
}
