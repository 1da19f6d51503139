//! What will be measured, in which order: a pure function of the configuration.

use crate::clocks;
use crate::config::{NamedTask, Resolved, ResolvedEntry, published};
use calorimeter_case::Regime;
use calorimeter_recipes::{Element, Treatment, Variant};
use calorimeter_shapes::Axes;
use calorimeter_sinks::Case;
use calorimeter_sinks::record::FusionModel;
use calorimeter_zoo::{Device, Implementation, Subject};
use regex::Regex;
use std::collections::{HashMap, HashSet};

/// Every case of a run, in groups of cases that are compared with each other.
#[derive(Debug, Clone)]
pub struct Plan {
    entries: Vec<ResolvedEntry>,
    groups: Vec<Group>,
}

/// The arms of one workload at one shape in one regime: measured together, because a speed-up is worth something only
/// when its two sides alternate in one process.
#[derive(Debug, Clone)]
pub struct Group {
    entry: usize,
    task: usize,
    regime: Regime,
    arms: Vec<Arm>,
}

/// One way to compute a group's workload.
#[derive(Debug, Clone, Copy)]
struct Arm {
    variant: Variant,
    implementation: Implementation,
    /// How many equal cases stand before this one in the plan.
    repeat: u32,
    implied: bool,
}

impl Plan {
    /// Plans resolved entries; a filter keeps the cases whose id it matches, and the baselines they are compared with.
    pub fn new(resolved: Resolved, filter: Option<&Regex>) -> Self {
        let mut plan = Self { entries: resolved.entries, groups: Vec::new() };
        type Identity = (Subject, Axes, Element, Option<Element>, Device, Regime);
        let mut seen: HashMap<Identity, Vec<Arm>> = HashMap::new();
        for (index, entry) in plan.entries.iter().enumerate() {
            let cells = entry.tasks.iter().enumerate().flat_map(|cell| entry.regimes.iter().map(move |&r| (cell, r)));
            for ((task_index, NamedTask { task, .. }), regime) in cells {
                let identity = (task.subject(), task.axes(), task.element(), task.output(), entry.device, regime);
                let before = seen.entry(identity).or_default();
                let mut arms = Vec::with_capacity(entry.variants.len() * entry.implementations.len());
                for &variant in &entry.variants {
                    let implied = entry.implied_baseline && variant == Variant::BASELINE;
                    for &implementation in &entry.implementations {
                        let key = (variant, implementation);
                        let equal = before.iter().filter(|arm| (arm.variant, arm.implementation) == key);
                        let repeat = equal.count() as u32;
                        arms.push(Arm { variant, implementation, repeat, implied });
                    }
                }
                before.extend_from_slice(&arms);
                plan.groups.push(Group { entry: index, task: task_index, regime, arms });
            }
        }
        if let Some(filter) = filter {
            plan.keep(filter);
        }
        plan
    }

    fn keep(&mut self, filter: &Regex) {
        let mut groups = std::mem::take(&mut self.groups);
        for group in &mut groups {
            let wanted: Vec<bool> = group.arms.iter().map(|arm| filter.is_match(&self.id(group, arm))).collect();
            let needed: HashSet<usize> =
                (0..wanted.len()).filter(|&i| wanted[i]).filter_map(|i| self.against(group, i)).collect();
            let mut index = 0;
            group.arms.retain_mut(|arm| {
                let (wanted, needed) = (wanted[index], needed.contains(&index));
                arm.implied |= needed && !wanted;
                index += 1;
                wanted || needed
            });
        }
        groups.retain(|group| !group.arms.is_empty());
        self.groups = groups;
    }

    /// The groups in the order in which they are measured.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The number of cases.
    pub fn len(&self) -> usize {
        self.groups.iter().map(|group| group.arms.len()).sum()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Every case in order, each with the reason if it is known that it cannot run.
    pub fn cases(&self) -> impl Iterator<Item = (Case, Result<(), String>)> {
        self.groups
            .iter()
            .flat_map(|group| (0..group.arms.len()).map(|arm| (self.case(group, arm), self.supported(group, arm))))
    }

    /// The entries of the configuration, every default filled in.
    pub fn entries(&self) -> &[ResolvedEntry] {
        &self.entries
    }

    /// The entry that a group belongs to.
    pub fn entry(&self, group: &Group) -> &ResolvedEntry {
        &self.entries[group.entry]
    }

    /// The devices that cases run on.
    pub fn devices(&self) -> Vec<Device> {
        let mut devices: Vec<Device> = self.groups.iter().map(|group| self.entry(group).device).collect();
        devices.sort_unstable();
        devices.dedup();
        devices
    }

    /// Whether the combination exists; known without touching a device.
    pub fn supported(&self, group: &Group, arm: usize) -> Result<(), String> {
        let (entry, arm) = (self.entry(group), &group.arms[arm]);
        clocks::supported(group.regime, arm.implementation, entry.device)?;
        if self.task(group).task.is_link() && group.regime == Regime::Graph && entry.device != Device::Mock {
            return Err(format!("graph: {} uses more than the one stream that is captured", entry.subject));
        }
        let treatment = self.task(group).task.support(arm.variant, arm.implementation, entry.device);
        treatment.map(drop).map_err(|error| error.to_string())
    }

    /// The arm that an arm is compared with: the baseline in the same implementation if that exists, else in `eager`.
    pub fn against(&self, group: &Group, arm: usize) -> Option<usize> {
        let plain = |arm: &Arm| arm.variant == Variant::BASELINE;
        let find = |implementation| {
            let found = group.arms.iter().position(|arm| plain(arm) && arm.implementation == implementation)?;
            (found != arm && self.supported(group, found).is_ok()).then_some(found)
        };
        let same = find(group.arms[arm].implementation).filter(|_| !plain(&group.arms[arm]));
        same.or_else(|| find(Implementation::Eager))
    }

    fn task(&self, group: &Group) -> &NamedTask {
        &self.entries[group.entry].tasks[group.task]
    }

    fn id(&self, group: &Group, arm: &Arm) -> String {
        let ResolvedEntry { mode, subject, element, device, .. } = self.entry(group);
        let Arm { variant, implementation, repeat, .. } = arm;
        let repeat = if *repeat == 0 { String::new() } else { format!("#{}", repeat + 1) };
        let task = &self.task(group).task;
        let (axes, output) = (task.axes(), task.output().map_or_else(String::new, |output| format!("-{output}")));
        let regime = match group.regime {
            Regime::DeviceCold => String::new(),
            other => format!("/{other}"),
        };
        format!("{mode}/{subject}/{variant}/{implementation}/{device}/{element}{output}/{axes}{regime}{repeat}")
    }

    /// One case as it is written to plans and records.
    pub fn case(&self, group: &Group, arm: usize) -> Case {
        let (entry, arm) = (self.entry(group), &group.arms[arm]);
        let NamedTask { name: shape_name, task } = self.task(group);
        // A variant that does not exist in this dtype has no size either, nor has an operator that does not exist.
        let exists = task.exists();
        let treatment: Option<Treatment> = arm.variant.treatment(task.dtype()).ok().filter(|_| exists);
        Case {
            id: self.id(group, arm),
            mode: entry.mode.into(),
            name: entry.name.clone().unwrap_or_default(),
            workload: entry.subject.to_string(),
            recipe: arm.variant.recipe.to_string(),
            sparsity: arm.variant.sparsity.map(|sparsity| sparsity.to_string()),
            implementation: arm.implementation.to_string(),
            device: entry.device.to_string(),
            dtype: entry.element.to_string(),
            output_dtype: task.output().map(|output| output.to_string()),
            shape_name: shape_name.clone(),
            shape: task.axes(),
            regime: group.regime.to_string(),
            flops: exists.then(|| task.flops()),
            bytes: treatment.map(|treatment| task.bytes(&treatment)),
            memory_bytes: treatment.map(|treatment| task.memory(&treatment)),
            published: published(task).filter(|_| exists),
            fusion: task.fusion().map(|model| FusionModel {
                operators: model.operators.iter().map(ToString::to_string).collect(),
                unfused_bytes: model.unfused_bytes,
                fused_bytes: model.fused_bytes,
            }),
            implied: arm.implied,
            compile_mode: entry.compile_mode.map(|mode| mode.to_string()),
            profiler: entry.profiler,
            memory_profiler: entry.memory_profiler,
            peak_memory: entry.peak_memory,
            export: entry.export.clone(),
        }
    }
}

impl Group {
    /// The number of cases.
    pub fn len(&self) -> usize {
        self.arms.len()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.arms.is_empty()
    }

    /// What its times mean.
    pub fn regime(&self) -> Regime {
        self.regime
    }
}
