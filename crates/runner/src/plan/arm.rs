//! One way to compute a group's workload: a case, and whether it can run.

use crate::dialects::published;
use crate::entries::{NamedTask, ResolvedEntry};
use crate::{platforms, regimes};
use calorimeter_case::{Clock, Identity, Implementation, Name, Regime};
use calorimeter_recipes::{Treatment, Variant};
use calorimeter_sinks::Case;

/// A case with what is known of it before it runs.
#[derive(Debug, Clone)]
pub struct Arm {
    case: Case,
    supported: Result<(), String>,
}

impl Arm {
    /// The case as it is written to plans and records.
    pub fn case(&self) -> &Case {
        &self.case
    }

    /// Whether the combination exists, or why not; known without touching a device.
    pub fn supported(&self) -> Result<(), &str> {
        self.supported.as_ref().copied().map_err(String::as_str)
    }

    /// Marks it as there only because others are compared with it.
    pub(super) fn imply(&mut self) {
        self.case.implied = true;
    }
}

/// What the arms of a group have in common.
pub struct Shared<'a> {
    entry: &'a ResolvedEntry,
    named: &'a NamedTask,
    /// Their case, but for what tells them apart.
    case: Case,
}

/// What a variant makes of a task, in every implementation.
pub struct Treated {
    recipe: Name,
    sparsity: Option<Name>,
    bytes: Option<u64>,
    memory_bytes: Option<u64>,
}

impl<'a> Shared<'a> {
    /// What is the same for every arm of a task in a regime.
    pub fn new(entry: &'a ResolvedEntry, named: &'a NamedTask, regime: Regime) -> Self {
        let task = &named.task;
        let exists = task.exists();
        let case = Case {
            mode: entry.mode,
            name: entry.name.clone().unwrap_or_default(),
            workload: entry.subject.to_string().into(),
            device: entry.device,
            element: entry.element,
            output: task.output(),
            shape_name: named.name.clone(),
            shape: task.axes(),
            regime,
            // What does not exist has no size either.
            flops: exists.then(|| task.flops()),
            published: published(task).filter(|_| exists),
            fusion: task.fusion(),
            compile_mode: entry.compile_mode.map(|mode| mode.to_string()),
            profiler: entry.profiler,
            memory_profiler: entry.memory_profiler,
            percentiles: entry.percentiles,
            peak_memory: entry.peak_memory,
            export: entry.export.clone(),
            ..Case::default()
        };
        Self { entry, named, case }
    }

    /// What does not depend on the implementation. A variant that does not exist in this dtype has no size.
    pub fn treated(&self, variant: Variant) -> Treated {
        let task = &self.named.task;
        let treatment: Option<Treatment> = variant.treatment(task.dtype()).ok().filter(|_| self.case.flops.is_some());
        Treated {
            recipe: variant.recipe.to_string().into(),
            sparsity: variant.sparsity.map(|sparsity| sparsity.to_string().into()),
            bytes: treatment.as_ref().map(|treatment| task.bytes(treatment)),
            memory_bytes: treatment.as_ref().map(|treatment| task.memory(treatment)),
        }
    }

    /// The arm of a variant and an implementation, before which so many equal ones stand in the plan.
    pub fn arm(&self, treated: &Treated, variant: Variant, implementation: Implementation, repeat: u32) -> Arm {
        let Treated { recipe, sparsity, bytes, memory_bytes } = *treated;
        let Case { mode, workload, device, element, output, ref shape, regime, .. } = self.case;
        let identity = Identity {
            mode,
            workload,
            variant: (recipe, sparsity),
            implementation,
            device,
            element,
            output,
            axes: shape,
            regime,
            repeat,
        };
        let case = Case {
            id: identity.into(),
            recipe,
            sparsity,
            implementation,
            bytes,
            memory_bytes,
            implied: self.entry.implied_baseline && variant == Variant::BASELINE,
            ..self.case.clone()
        };
        Arm { case, supported: self.supported(variant, implementation) }
    }

    fn supported(&self, variant: Variant, implementation: Implementation) -> Result<(), String> {
        let (subject, device) = (self.entry.subject, self.entry.device);
        regimes::supported(self.case.regime, implementation, device)?;
        let captured = self.case.regime.clock() == Clock::Graph && !platforms::of(device).is_scripted();
        if captured && self.named.task.is_link() {
            return Err(format!("{}: {subject} uses more than the one stream that is captured", self.case.regime));
        }
        let treatment = self.named.task.support(variant, implementation, device);
        treatment.map(drop).map_err(|error| error.to_string())
    }
}
