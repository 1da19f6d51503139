//! What will be measured, in which order: a pure function of resolved entries.

mod arm;
mod group;

pub use arm::Arm;
pub use group::Group;

use crate::entries::ResolvedEntry;
use crate::fingerprint::fnv1a;
use calorimeter_case::{Axes, Device, Element, Implementation, Regime};
use calorimeter_recipes::Variant;
use calorimeter_sinks::Case;
use calorimeter_zoo::Subject;
use regex::Regex;
use std::collections::HashMap;

/// Every case of a run, in groups of cases that are compared with each other.
#[derive(Debug, Clone)]
pub struct Plan {
    entries: Vec<ResolvedEntry>,
    groups: Vec<Group>,
}

/// What cases have in common that differ in nothing but their arms.
type Workload = (Subject, Axes, Element, Option<Element>, Device, Regime);

impl Plan {
    /// Plans resolved entries; a filter keeps the cases whose id it matches, and the baselines they are compared with.
    pub fn new(entries: Vec<ResolvedEntry>, filter: Option<&Regex>) -> Self {
        let mut planned: HashMap<Workload, Vec<(Variant, Implementation)>> = HashMap::new();
        let mut groups = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            for named in &entry.tasks {
                for &regime in &entry.regimes {
                    let task = &named.task;
                    let workload = (task.subject(), task.axes(), task.element(), task.output(), entry.device, regime);
                    groups.push(Group::new(index, entry, named, regime, planned.entry(workload).or_default()));
                }
            }
        }
        if let Some(filter) = filter {
            groups.iter_mut().for_each(|group| group.keep(filter));
            groups.retain(|group| !group.is_empty());
        }
        Self { entries, groups }
    }

    /// The groups in order.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The groups in the order in which they are measured: device by device, and as good as drawn. A plan goes from small
    /// to large, and so may the temperature of a device: in the plan's own order the one would pass for the other.
    pub fn drawn(&self) -> Vec<&Group> {
        let devices: HashMap<Device, usize> =
            self.groups.iter().enumerate().rev().map(|(at, group)| (self.entry(group).device, at)).collect();
        let mut drawn: Vec<&Group> = self.groups.iter().collect();
        drawn.sort_by_cached_key(|group| {
            let lot = fnv1a(group.arms().first().map_or(&[], |arm| arm.case().id.as_bytes()));
            // The last letters of a name move the low bits alone.
            (devices[&self.entry(group).device], lot.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        });
        drawn
    }

    /// The number of cases.
    pub fn len(&self) -> usize {
        self.groups.iter().map(Group::len).sum()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Every case in order, each with the reason if it is known that it cannot run.
    pub fn cases(&self) -> impl Iterator<Item = (&Case, Result<(), &str>)> {
        self.groups.iter().flat_map(Group::arms).map(|arm| (arm.case(), arm.supported()))
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::{Devices, DiscoveredDevice};
    use crate::dialects::{Source, read};
    use crate::entries::{ConfigError, Overrides, resolve};

    fn machine(cuda: u16) -> Devices {
        Devices::invented((0..cuda).map(|index| DiscoveredDevice::named(Device::Cuda(index), "a GPU")))
    }

    fn plan(text: &str, devices: &Devices) -> Result<Plan, ConfigError> {
        let source = Source { path: "inline.yml".into(), text: text.into() };
        let entries = read(&[source], devices)?.entries;
        Ok(Plan::new(resolve(entries, &Overrides::default(), devices)?, None))
    }

    fn ids(plan: &Plan) -> Vec<&str> {
        plan.cases().map(|(case, _)| &*case.id).collect()
    }

    #[test]
    fn the_same_file_is_planned_for_the_machine_that_it_is_told_of() {
        let text = "recipes: [baseline]\nmodels: [{shapes: [{name: custom, shapes: [[8, 8, 8]]}]}]";
        let on = |gpus| ids(&plan(text, &machine(gpus)).unwrap()).join(" ");
        assert_eq!(on(0), "inference/linear/baseline/eager/cpu/bf16/m8-k8-n8");
        let gpu = ["eager", "fused"].map(|name| format!("inference/linear/baseline/{name}/cuda:0/bf16/m8-k8-n8"));
        assert_eq!(on(2), gpu.join(" "));
        // A named device is taken at its word, also where it is not.
        let named = format!("device: cuda:1\n{text}");
        assert_eq!(plan(&named, &machine(0)).unwrap().devices(), [Device::Cuda(1)]);
        let error = plan(&format!("device: xpu\n{text}"), &machine(2)).unwrap_err().to_string();
        let says = "inline.yml: models[0]: device xpu is not here; found: cuda:0 (a GPU), cuda:1 (a GPU), cpu";
        assert!(error.starts_with(says), "{error}");
    }

    #[test]
    fn an_exchange_is_between_all_the_gpus_that_are_there_and_at_least_two() {
        let text = "benchmarks: [{benchmark_name: psum, benchmark_params: [{matrix_dim: 64}]}]";
        for (gpus, devices) in [(0, 2), (1, 2), (2, 2), (8, 8)] {
            let plan = plan(text, &machine(gpus)).unwrap();
            assert!(plan.cases().all(|(case, _)| case.shape.get("devices") == Some(devices)), "{gpus}");
        }
    }

    #[test]
    fn groups_are_measured_in_an_order_that_follows_no_trend_of_the_plan() {
        let text = "device: mock\nrecipes: [baseline]
models:
  - {shapes: [{name: pow2, max_power: 15}]}
  - {device: cpu, shapes: [{name: pow2, max_power: 15}]}
  - {model: ln_linear_gelu, shapes: [{name: pow2, max_power: 15}]}";
        let plan = plan(text, &machine(0)).unwrap();
        let at = |group: &Group| plan.groups().iter().position(|one| std::ptr::eq(one, group)).unwrap();
        let drawn = plan.drawn();
        let cpu = drawn.iter().position(|group| plan.entry(group).device == Device::Cpu).unwrap();
        assert!(drawn[cpu..].iter().all(|group| plan.entry(group).device == Device::Cpu));
        let order: Vec<usize> = drawn[..cpu].iter().map(|group| at(group)).collect();
        let rises = order.windows(2).filter(|pair| pair[1] > pair[0]).count();
        assert!(order.len() >= 10 && rises > order.len() / 5 && rises < order.len() * 4 / 5, "{order:?}");
        let mut all: Vec<usize> = drawn.iter().map(|group| at(group)).collect();
        all.sort_unstable();
        assert_eq!(all, (0..plan.groups().len()).collect::<Vec<_>>());
    }

    #[test]
    fn what_cannot_run_is_known_to_the_plan_with_its_reason() {
        let text = "device: cpu\nimplementations: [eager, native]\nregimes: [device-cold, graph]\nrecipes: [baseline]
models: [{shapes: [{name: custom, shapes: [[8, 8, 8]]}]}]";
        let plan = plan(text, &machine(0)).unwrap();
        let graph = plan.groups().iter().find(|group| group.regime() == Regime::Graph).unwrap();
        assert!(graph.arms().iter().all(|arm| arm.supported().unwrap_err().starts_with("graph: only `native`")));
        let cold = plan.groups().iter().find(|group| group.regime() == Regime::DeviceCold).unwrap();
        assert!(cold.arms()[0].supported().is_ok() && cold.arms()[1].supported().is_err());
        // What cannot run is compared with what can, never the other way round.
        assert_eq!((cold.against(0), cold.against(1), graph.against(1)), (None, Some(0), None));
    }

    #[test]
    fn a_filter_keeps_the_baselines_of_what_it_keeps() {
        let text = "device: mock\nimplementations: [eager, fused]\nrecipes: [int8wo]
models: [{shapes: [{name: custom, shapes: [[8, 8, 8], [16, 16, 16]]}]}]";
        let devices = machine(0);
        let source = Source { path: "inline.yml".into(), text: text.into() };
        let entries = read(&[source], &devices).unwrap().entries;
        let entries = resolve(entries, &Overrides::default(), &devices).unwrap();
        let plan = Plan::new(entries, Some(&Regex::new("int8wo/fused.*m16").unwrap()));
        let implied: Vec<(&str, bool)> = plan.cases().map(|(case, _)| (&*case.id, case.implied)).collect();
        let expected = [
            ("inference/linear/baseline/fused/mock/bf16/m16-k16-n16", true),
            ("inference/linear/int8wo/fused/mock/bf16/m16-k16-n16", false),
        ];
        assert_eq!(implied, expected);
        assert_eq!(plan.groups()[0].against(1), Some(0));
    }
}
