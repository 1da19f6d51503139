//! Division of a plan into shards for several machines.

use super::device_assignment::longest_first;
use super::{Group, Plan};
use crate::entries::Shard;
use calorimeter_case::Device;
use std::collections::HashMap;

impl Plan {
    /// Keeps one shard. Groups stay whole, because their cases are compared. The longest groups are assigned first,
    /// each to the shard with the least work on its device, then in total. The result is balanced and identical on
    /// every machine.
    pub fn keep_shard(&mut self, shard: Shard) {
        let seconds: Vec<f64> = self.groups.iter().map(|group| self.expected_seconds(group)).collect();
        let mut loads: Vec<f64> = vec![0.0; shard.parts()];
        let mut loads_on: HashMap<Device, Vec<f64>> = HashMap::new();
        let mut part_of = vec![0; self.groups.len()];
        for group in longest_first(&seconds) {
            let device = self.entry(&self.groups[group]).device;
            let here = loads_on.entry(device).or_insert_with(|| vec![0.0; shard.parts()]);
            let less = |&one: &usize, &other: &usize| {
                here[one].total_cmp(&here[other]).then(loads[one].total_cmp(&loads[other]))
            };
            let part = (0..loads.len()).min_by(less).unwrap_or_default();
            part_of[group] = part;
            here[part] += seconds[group];
            loads[part] += seconds[group];
        }
        let mut parts = part_of.into_iter();
        self.groups.retain(|_| parts.next() == Some(shard.index()));
    }

    /// Predicted duration of a group in seconds.
    pub fn expected_seconds(&self, group: &Group) -> f64 {
        self.group_predictions(group).map(|(_, predicted)| predicted.expected_total()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::{Entry, Origin, Overrides, Size, resolve};
    use calorimeter_probe::devices::Devices;
    use calorimeter_shapes::Shape;
    use std::collections::BTreeSet;

    fn plan() -> Plan {
        let sizes =
            |last: u64| (1..=last).map(|m| Size::custom(Shape::new(m * m * 8, 512, 512).unwrap().into())).collect();
        let entry = |model: &str, last: u64| Entry {
            recipes: vec!["int8wo".parse().unwrap()],
            ..Entry::new(Origin::command("parts"), model.parse().unwrap(), sizes(last))
        };
        let entries = vec![entry("linear", 30), entry("ln_linear_gelu", 11)];
        Plan::new(resolve(entries, &Overrides::default(), &Devices::simulated([])).unwrap(), None)
    }

    #[test]
    fn shards_hold_every_group_once_and_are_balanced() {
        let whole = plan();
        for parts in [1, 3, 8, 64] {
            let (mut ids, mut loads) = (BTreeSet::new(), Vec::new());
            for shard in Shard::all(parts) {
                let mut part = plan();
                part.keep_shard(shard);
                loads.push(part.groups.iter().map(|group| part.expected_seconds(group)).sum::<f64>());
                for id in part.ids() {
                    assert!(ids.insert(id.clone()), "{id} is in two parts");
                }
            }
            assert_eq!(ids.len(), whole.len());
            let longest = whole.groups.iter().map(|group| whole.expected_seconds(group)).fold(0.0, f64::max);
            let (least, most) = loads.iter().fold((f64::MAX, 0.0_f64), |(lo, hi), &load| (lo.min(load), hi.max(load)));
            assert!(most - least <= longest, "{loads:?}");
        }
    }
}
