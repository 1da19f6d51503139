//! CPU package energy counters (RAPL).

use crate::telemetry::files::{numbered_entries, read_number, read_text};
use std::path::{Path, PathBuf};

/// Energy counters of all packages.
pub(super) struct RaplEnergy {
    packages: Vec<RaplPackage>,
}

struct RaplPackage {
    counter: PathBuf,
    /// Value at which the counter wraps to zero.
    range: u64,
    last: u64,
    microjoules: u64,
}

impl RaplEnergy {
    /// Opens the counters below `root`. On most systems only root may read them; if one is unreadable, there is no
    /// total.
    pub(super) fn new(root: &Path) -> Self {
        let zones = numbered_entries(root.join("sys/class/powercap"), "intel-rapl:");
        let is_package = |zone: &PathBuf| read_text(zone.join("name")).is_some_and(|name| name.starts_with("package"));
        let packages: Option<Vec<_>> =
            zones.into_iter().filter(is_package).map(|zone| RaplPackage::open(&zone)).collect();
        Self { packages: packages.unwrap_or_default() }
    }

    /// Joules since the counters were opened.
    pub(super) fn joules(&mut self) -> Option<f64> {
        let total: Option<u64> = self.packages.iter_mut().map(RaplPackage::microjoules).sum();
        total.filter(|_| self.is_available()).map(|microjoules| microjoules as f64 / 1e6)
    }

    pub(super) fn is_available(&self) -> bool {
        !self.packages.is_empty()
    }
}

impl RaplPackage {
    fn open(zone: &Path) -> Option<Self> {
        let (counter, range) = (zone.join("energy_uj"), read_number(zone.join("max_energy_range_uj"))?);
        Some(Self { last: read_number(&counter)?, counter, range, microjoules: 0 })
    }

    fn microjoules(&mut self) -> Option<u64> {
        let now: u64 = read_number(&self.counter)?;
        // A counter wraps after minutes at full power; it is read far more often.
        self.microjoules += if now >= self.last { now - self.last } else { self.range.saturating_sub(self.last) + now };
        self.last = now;
        Some(self.microjoules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::processor::tests::Tree;

    const RAPL: &str = "sys/class/powercap/intel-rapl:";

    fn zone(tree: &Tree, zone: &str, name: &str) {
        tree.write(&format!("{RAPL}{zone}/name"), name);
        tree.write(&format!("{RAPL}{zone}/energy_uj"), "1000000");
        tree.write(&format!("{RAPL}{zone}/max_energy_range_uj"), "9000000");
    }

    #[test]
    fn only_packages_are_summed() {
        let tree = Tree::new();
        for (number, name) in [("0", "package-0"), ("0:0", "core"), ("1", "package-1"), ("2", "psys")] {
            zone(&tree, number, name);
        }
        let mut energy = RaplEnergy::new(tree.root());
        assert_eq!(energy.joules(), Some(0.0));
        for number in ["0", "0:0", "1", "2"] {
            tree.write(&format!("{RAPL}{number}/energy_uj"), "3500000");
        }
        assert_eq!(energy.joules(), Some(5.0));
        assert_eq!(energy.joules(), Some(5.0));
    }

    #[test]
    fn wrapping_counter_continues() {
        let tree = Tree::new();
        zone(&tree, "0", "package-0");
        let mut energy = RaplEnergy::new(tree.root());
        for (counter, expected) in [("8000000", 7.0), ("500000", 8.5), ("600000", 8.6), ("8600000", 16.6), ("0", 17.0)]
        {
            tree.write(&format!("{RAPL}0/energy_uj"), counter);
            assert_eq!(energy.joules(), Some(expected));
        }
    }

    #[test]
    fn missing_package_has_no_sum() {
        let tree = Tree::new();
        assert_eq!(RaplEnergy::new(tree.root()).joules(), None);
        zone(&tree, "0", "package-0");
        tree.write(&format!("{RAPL}1/name"), "package-1");
        assert_eq!(RaplEnergy::new(tree.root()).joules(), None);
    }

    #[test]
    fn unreadable_counter_is_absent() {
        let tree = Tree::new();
        zone(&tree, "0", "package-0");
        let mut energy = RaplEnergy::new(tree.root());
        assert!(energy.joules().is_some());
        tree.remove(&format!("{RAPL}0/energy_uj"));
        assert_eq!(energy.joules(), None);
    }
}
