//! Plan: all cases and their order, as a pure function of resolved entries.

mod device_assignment;
mod group;
mod ids;
mod planned_case;
mod prediction;
mod sharding;

pub use group::Group;
pub use planned_case::PlannedCase;
pub use prediction::Prediction;

use crate::entries::ResolvedEntry;
use crate::fingerprint::fnv1a;
use calorimeter_case::{CaseId, Device};
use calorimeter_sinks::Case;
use ids::IdAllocator;
use planned_case::PlanIndex;
use regex::Regex;
use std::collections::HashMap;
use std::sync::Arc;

/// All cases of a run, in groups of cases that are compared with each other.
#[derive(Debug, Clone)]
pub struct Plan {
    entries: Arc<[ResolvedEntry]>,
    groups: Vec<Group>,
}

impl Plan {
    /// Plans resolved entries. A filter keeps the cases whose id matches, and their baselines. Cases are assigned to
    /// devices before filtering, because the filter may refer to devices.
    pub fn new(entries: Vec<ResolvedEntry>, filter: Option<&Regex>) -> Self {
        let mut plan = Self::from_entries(Self::assign_devices(entries));
        if let Some(filter) = filter {
            plan.groups.iter_mut().for_each(|group| group.retain_matching(filter));
            plan.groups.retain(|group| !group.is_empty());
        }
        plan
    }

    /// Plans every case of the entries on the device of its entry.
    fn from_entries(entries: Vec<ResolvedEntry>) -> Self {
        let entries: Arc<[ResolvedEntry]> = entries.into();
        let mut ids = IdAllocator::default();
        let mut groups = Vec::with_capacity(entries.iter().map(|entry| entry.tasks.len() * entry.regimes.len()).sum());
        for (index, entry) in entries.iter().enumerate() {
            for task in 0..entry.tasks.len() {
                for &regime in &entry.regimes {
                    let place = PlanIndex { entries: entries.clone(), entry: index as u32, task: task as u32, regime };
                    groups.push(Group::new(&place, &mut ids));
                }
            }
        }
        Self { entries, groups }
    }

    /// Groups in plan order.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Groups in measurement order: device by device, pseudo-randomly shuffled. Plan order goes from small to large
    /// sizes, and the temperature of a device may rise alike, so that the two effects would be confounded.
    pub fn shuffled_groups(&self) -> Vec<&Group> {
        let devices: HashMap<Device, usize> =
            self.groups.iter().enumerate().rev().map(|(at, group)| (self.entry(group).device, at)).collect();
        let mut groups: Vec<&Group> = self.groups.iter().collect();
        groups.sort_by_cached_key(|group| {
            let hash = fnv1a(group.cases().first().map_or(&[], |case| case.id().as_bytes()));
            // The last characters of an id change only the low bits of the hash.
            (devices[&self.entry(group).device], hash.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        });
        groups
    }

    /// Number of cases.
    pub fn len(&self) -> usize {
        self.groups.iter().map(Group::len).sum()
    }

    /// True if the plan has no cases.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Ids of all cases in plan order.
    pub fn ids(&self) -> impl Iterator<Item = &CaseId> {
        self.groups.iter().flat_map(Group::cases).map(PlannedCase::id)
    }

    /// All cases in plan order, each with the reason if it is unsupported.
    pub fn cases(&self) -> impl Iterator<Item = (Case, Result<(), &str>)> {
        self.groups.iter().flat_map(Group::cases).map(|planned| (planned.case(), planned.supported()))
    }

    /// Entries of the configuration with all defaults filled in.
    pub fn entries(&self) -> &[ResolvedEntry] {
        &self.entries
    }

    /// Entry of a group.
    pub fn entry(&self, group: &Group) -> &ResolvedEntry {
        &self.entries[group.entry]
    }

    /// Devices of all cases, including devices of a fleet that got none.
    pub fn devices(&self) -> Vec<Device> {
        let mut devices: Vec<Device> = self.groups.iter().map(|group| self.entry(group).device).collect();
        devices.extend(self.entries.iter().flat_map(|entry| &entry.fleet));
        devices.sort_unstable();
        devices.dedup();
        devices
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::{ConfigSource, read};
    use crate::entries::{ConfigError, Entry, Origin, Overrides, Size, resolve};
    use calorimeter_case::Regime;
    use calorimeter_probe::devices::{Devices, DiscoveredDevice};

    fn machine(cuda: u16) -> Devices {
        Devices::simulated((0..cuda).map(|index| DiscoveredDevice::with_name(Device::Cuda(index), "a GPU")))
    }

    fn plan(text: &str, devices: &Devices) -> Result<Plan, ConfigError> {
        let source = ConfigSource { path: "inline.yml".into(), text: text.into() };
        let entries = read(&[source], devices)?.entries;
        Ok(Plan::new(resolve(entries, &Overrides::default(), devices)?, None))
    }

    fn ids(plan: &Plan) -> Vec<&str> {
        plan.ids().map(|id| &**id).collect()
    }

    #[test]
    fn plan_depends_on_the_given_machine() {
        let text = "recipes: [baseline]\nmodels: [{shapes: [{name: custom, shapes: [[8, 8, 8]]}]}]";
        let on = |gpus| ids(&plan(text, &machine(gpus)).unwrap()).join(" ");
        let on_device = |device: &str, implementations: &[&str]| {
            let id = |name: &&str| format!("inference/linear/baseline/{name}/{device}/bf16/m8-k8-n8");
            implementations.iter().map(id).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(on(0), on_device("cpu", &[if cfg!(feature = "cpu") { "eager" } else { "native" }]));
        let gpu = match (cfg!(feature = "cuda"), cfg!(feature = "native")) {
            (true, _) => &["eager", "fused"][..],
            (false, true) => &["native"],
            // The case states which feature is missing.
            (false, false) => &["eager"],
        };
        assert_eq!(on(2), on_device("cuda:0", gpu));
        // A named device is accepted, even if it does not exist.
        let named = format!("device: cuda:1\n{text}");
        assert_eq!(plan(&named, &machine(0)).unwrap().devices(), [Device::Cuda(1)]);
        let error = plan(&format!("device: xpu\n{text}"), &machine(2)).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "inline.yml: models[0]: device xpu not found; available: cuda:0 (a GPU), cuda:1 (a GPU), cpu"
            ),
            "{error}"
        );
    }

    #[test]
    fn collectives_use_all_gpus_and_at_least_two() {
        let text = "benchmarks: [{benchmark_name: psum, benchmark_params: [{matrix_dim: 64}]}]";
        for (gpus, devices) in [(0, 2), (1, 2), (2, 2), (8, 8)] {
            let plan = plan(text, &machine(gpus)).unwrap();
            assert!(plan.cases().all(|(case, _)| case.shape.get("devices") == Some(devices)), "{gpus}");
        }
    }

    #[test]
    fn huge_sizes_are_planned_without_overflow() {
        let names = calorimeter_zoo::Subject::names();
        let mut sizes = 0;
        for subject in names.iter().map(|name| name.parse::<calorimeter_zoo::Subject>().unwrap()) {
            let (axes, element) = match subject {
                calorimeter_zoo::Subject::Model(_) => (&["m", "k", "n"][..], calorimeter_case::Dtype::Bf16.into()),
                calorimeter_zoo::Subject::Operator(operator) => {
                    (operator.info().axes, crate::dialects::default_element(operator))
                }
                calorimeter_zoo::Subject::Foreign(_) => continue,
            };
            for size in [1 << 16, 1 << 20, 1 << 24, 1 << 31, 1 << 40, u64::MAX] {
                for large in (0..axes.len()).map(Some).chain([None]) {
                    let at = |(at, axis): (usize, &&'static str)| {
                        (*axis, if large.is_none_or(|l| l == at) { size } else { 1 })
                    };
                    let one = vec![Size::custom(axes.iter().enumerate().map(at).collect())];
                    let recipes = vec!["int8wo".parse().unwrap(), "mxfp4".parse().unwrap()];
                    let entry = Entry { element, recipes, ..Entry::new(Origin::command("sizes"), subject, one) };
                    // Shapes whose element count overflows are rejected earlier.
                    let Ok(entries) = resolve(vec![entry], &Overrides::default(), &machine(1)) else { continue };
                    sizes += Plan::new(entries, None).cases().count();
                }
            }
        }
        assert!(sizes > names.len());
    }

    #[test]
    fn planned_cases_are_small() {
        assert!(size_of::<PlannedCase>() <= 80, "{}", size_of::<PlannedCase>());
    }

    #[test]
    fn group_order_follows_no_trend() {
        let text = "device: mock\nrecipes: [baseline]
models:
  - {shapes: [{name: pow2, max_power: 15}]}
  - {device: cpu, shapes: [{name: pow2, max_power: 15}]}
  - {model: ln_linear_gelu, shapes: [{name: pow2, max_power: 15}]}";
        let plan = plan(text, &machine(0)).unwrap();
        let at = |group: &Group| plan.groups().iter().position(|one| std::ptr::eq(one, group)).unwrap();
        let drawn = plan.shuffled_groups();
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
    fn unsupported_cases_have_a_reason() {
        let text = "device: cpu\nimplementations: [eager, cube]\nregimes: [device-cold, graph]\nrecipes: [baseline]
models: [{shapes: [{name: custom, shapes: [[8, 8, 8]]}]}]";
        let plan = plan(text, &machine(0)).unwrap();
        let graph = plan.groups().iter().find(|group| group.regime() == Regime::Graph).unwrap();
        assert!(graph.cases().iter().all(|case| case.supported().unwrap_err().starts_with("graph: only `native`")));
        let cold = plan.groups().iter().find(|group| group.regime() == Regime::DeviceCold).unwrap();
        assert!(cold.cases()[0].supported().is_ok() && cold.cases()[1].supported().is_err());
        // Unsupported cases are compared with supported ones, never the reverse.
        assert_eq!((cold.baseline_of(0), cold.baseline_of(1), graph.baseline_of(1)), (None, Some(0), None));
    }

    #[test]
    fn filter_keeps_required_baselines() {
        let text = "device: mock\nimplementations: [eager, fused]\nrecipes: [int8wo]
models: [{shapes: [{name: custom, shapes: [[8, 8, 8], [16, 16, 16]]}]}]";
        let devices = machine(0);
        let source = ConfigSource { path: "inline.yml".into(), text: text.into() };
        let entries = read(&[source], &devices).unwrap().entries;
        let entries = resolve(entries, &Overrides::default(), &devices).unwrap();
        let plan = Plan::new(entries, Some(&Regex::new("int8wo/fused.*m16").unwrap()));
        let implied: Vec<bool> = plan.cases().map(|(case, _)| case.implied).collect();
        let implied: Vec<(&str, bool)> = ids(&plan).into_iter().zip(implied).collect();
        let expected = [
            ("inference/linear/baseline/fused/mock/bf16/m16-k16-n16", true),
            ("inference/linear/int8wo/fused/mock/bf16/m16-k16-n16", false),
        ];
        assert_eq!(implied, expected);
        assert_eq!(plan.groups()[0].baseline_of(1), Some(0));
    }
}
