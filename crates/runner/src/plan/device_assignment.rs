//! Assignment of sizes to the devices of a fleet. It is fixed before the measurement, so that ids, fingerprints and
//! comparisons are independent of timing.

use super::{Group, Plan};
use crate::entries::ResolvedEntry;
use calorimeter_case::Device;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Sizes of entries that a fleet shares, as (entry, task) indices, with their predicted concurrent seconds.
fn shared_sizes(entries: &[ResolvedEntry]) -> (Vec<(usize, usize)>, Vec<f64>) {
    let plan = Plan::from_entries(entries.to_vec());
    let mut seconds: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for group in plan.groups().iter().filter(|group| !plan.entry(group).fleet.is_empty()) {
        let taken = if plan.allows_concurrency(group) { plan.expected_seconds(group) } else { 0.0 };
        *seconds.entry((group.entry, group.task)).or_default() += taken;
    }
    seconds.into_iter().unzip()
}

/// Indices sorted by decreasing length; stable.
pub(super) fn longest_first(lengths: &[f64]) -> Vec<usize> {
    let mut longest: Vec<usize> = (0..lengths.len()).collect();
    // Bits of non-negative floats have the order of their values.
    longest.sort_by_key(|&one| Reverse(lengths[one].to_bits()));
    longest
}

/// Index of the minimum; the first of several.
fn min_index(loads: impl Iterator<Item = f64>) -> usize {
    loads.enumerate().min_by(|one, other| one.1.total_cmp(&other.1)).map_or(0, |(at, _)| at)
}

/// Splits an entry by device. Devices without sizes get an empty entry, because the run uses all of them.
fn split_by_device(entry: ResolvedEntry, device_of: &[Device]) -> Vec<ResolvedEntry> {
    if entry.fleet.is_empty() {
        return vec![entry];
    }
    let of = |device: Device| {
        let tasks = entry.tasks.iter().zip(device_of).filter(|(_, of)| **of == device);
        ResolvedEntry { device, tasks: tasks.map(|(task, _)| task.clone()).collect(), ..entry.clone() }
    };
    entry.fleet.iter().map(|&device| of(device)).collect()
}

impl Plan {
    /// Assigns the sizes of every shared entry to devices and splits it. The longest come first, each to the least
    /// loaded device. Groups that are measured sequentially do not count.
    pub(super) fn assign_devices(entries: Vec<ResolvedEntry>) -> Vec<ResolvedEntry> {
        if entries.iter().all(|entry| entry.fleet.is_empty()) {
            return entries;
        }
        let (owners, seconds) = shared_sizes(&entries);
        let mut loads: BTreeMap<&[Device], Vec<f64>> = BTreeMap::new();
        let mut device_of: Vec<Vec<Device>> =
            entries.iter().map(|entry| vec![entry.device; entry.tasks.len()]).collect();
        for size in longest_first(&seconds) {
            let (entry, task) = owners[size];
            let fleet = &entries[entry].fleet[..];
            let loads = loads.entry(fleet).or_insert_with(|| vec![0.0; fleet.len()]);
            let least = min_index(loads.iter().copied());
            loads[least] += seconds[size];
            device_of[entry][task] = fleet[least];
        }
        let each = entries.into_iter().zip(device_of).flat_map(|(entry, device_of)| split_by_device(entry, &device_of));
        each.collect()
    }

    /// True if other devices of the fleet may be busy while a group is measured. False for groups that are limited by
    /// the host, or that use several devices.
    pub fn allows_concurrency(&self, group: &Group) -> bool {
        let entry = self.entry(group);
        let links = entry.tasks.get(group.task).is_some_and(|(_, task)| task.is_transfer());
        !entry.fleet.is_empty() && group.regime().clock().is_on_device() && !links
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::{DeviceSelection, Entry, Origin, Overrides, Size, resolve};
    use calorimeter_case::{DeviceKind, Regime};
    use calorimeter_probe::devices::{Devices, DiscoveredDevice};
    use calorimeter_shapes::Shape;
    use std::collections::BTreeSet;

    fn plan(gpus: u16, models: &[(&str, Vec<u64>)], regimes: &[Regime]) -> Plan {
        let machine =
            Devices::simulated((0..gpus).map(|index| DiscoveredDevice::with_name(Device::Cuda(index), "a GPU")));
        let size = |m: u64| Size::custom(Shape::new(m, 512, 512).unwrap().into());
        let entry = |(model, sizes): &(&str, Vec<u64>)| Entry {
            recipes: vec!["int8wo".parse().unwrap()],
            device: Some(DeviceSelection::All(DeviceKind::Cuda)),
            regimes: Some(regimes.to_vec()),
            ..Entry::new(Origin::command("deal"), model.parse().unwrap(), sizes.iter().map(|&m| size(m)).collect())
        };
        let entries = models.iter().map(entry).collect();
        Plan::new(resolve(entries, &Overrides::default(), &machine).unwrap(), None)
    }

    fn without_device(id: &str) -> String {
        id.split('/').filter(|part| !part.starts_with("cuda:")).collect::<Vec<_>>().join("/")
    }

    #[test]
    fn devices_share_all_cases_evenly() {
        let models = [("linear", (1..40).map(|m| m * m * 32).collect()), ("ln_linear_gelu", vec![8, 4096])];
        let ids = |plan: &Plan| plan.ids().map(|id| without_device(id)).collect::<BTreeSet<_>>();
        let one = plan(1, &models, &[Regime::DeviceCold]);
        for gpus in [2, 3, 8] {
            let all = plan(gpus, &models, &[Regime::DeviceCold]);
            assert_eq!((all.len(), ids(&all)), (one.len(), ids(&one)), "{gpus}");
            let load = |device| {
                let its = all.groups().iter().filter(|group| all.entry(group).device == device);
                its.map(|group| all.expected_seconds(group)).sum::<f64>()
            };
            let loads: Vec<f64> = (0..gpus).map(|index| load(Device::Cuda(index))).collect();
            let longest = all.groups().iter().map(|group| all.expected_seconds(group)).fold(0.0, f64::max);
            let (least, most) = loads.iter().fold((f64::MAX, 0.0_f64), |(lo, hi), &load| (lo.min(load), hi.max(load)));
            assert!(most - least <= longest, "{loads:?}");
        }
    }

    #[test]
    fn regimes_of_a_size_share_a_device() {
        let plan = plan(2, &[("linear", vec![8, 16, 32, 64])], &[Regime::DeviceCold, Regime::HostE2e]);
        let mut devices: BTreeMap<String, BTreeSet<Device>> = BTreeMap::new();
        for group in plan.groups() {
            assert_eq!(plan.allows_concurrency(group), group.regime() == Regime::DeviceCold);
            let case = group.cases()[0].case();
            devices.entry(case.shape.to_string()).or_default().insert(case.device);
        }
        assert!(devices.len() == 4 && devices.values().all(|on| on.len() == 1), "{devices:?}");
        assert_eq!(plan.devices(), [Device::Cuda(0), Device::Cuda(1)]);
    }

    #[test]
    fn one_size_uses_one_device_of_the_fleet() {
        let plan = plan(3, &[("linear", vec![8])], &[Regime::DeviceCold]);
        assert!(plan.cases().all(|(case, _)| case.device == Device::Cuda(0)));
        assert_eq!(plan.devices(), [0, 1, 2].map(Device::Cuda));
    }
}
