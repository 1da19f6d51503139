//! CPU usage by other processes.

use crate::telemetry::files::read_text;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Minimum share of the CPU that is reported.
const MIN_REPORTED_SHARE: f64 = 0.1;
/// Minimum ticks per core of a span: shorter spans are too coarse.
const MIN_TICKS: u64 = 10;

/// Compares successive snapshots of the CPU time.
pub(super) struct ProcessorUsage {
    proc: PathBuf,
    last: Option<UsageSnapshot>,
}

/// Ticks since the system started.
struct UsageSnapshot {
    cores: u64,
    /// Ticks of all cores, idle or not.
    passed: u64,
    busy: u64,
    /// Ticks taken by the host of a virtual machine.
    stolen: u64,
    /// Ticks of this and the listed processes, including children they have waited for.
    ours: BTreeMap<u32, u64>,
}

impl ProcessorUsage {
    pub(super) fn new(root: &Path) -> Self {
        let proc = root.join("proc");
        let last = read_snapshot(&proc, BTreeSet::new());
        Self { proc, last }
    }

    /// Returns the usage by other processes since the last snapshot.
    pub(super) fn other_users(&mut self, ours: &[u32]) -> Result<Vec<String>, String> {
        let known = self.last.iter().flat_map(|last| last.ours.keys()).chain(ours).copied().collect();
        let proc = self.proc.display();
        let now = read_snapshot(&self.proc, known)
            .ok_or_else(|| format!("{proc}/stat or {proc}/self/stat cannot be read"))?;
        let Some(last) = &mut self.last else {
            self.last = Some(now);
            return Ok(vec![]);
        };
        let passed = now.passed.saturating_sub(last.passed);
        if passed < MIN_TICKS * now.cores {
            for (pid, ticks) in now.ours {
                last.ours.entry(pid).or_insert(ticks);
            }
            return Ok(vec![]);
        }
        // A newly listed process cannot be excluded yet. The time of an ended process is included in its parent's.
        let before: u64 = last.ours.values().sum();
        let after: u64 = now.ours.iter().filter(|(pid, _)| last.ours.contains_key(pid)).map(|(_, ticks)| ticks).sum();
        let busy = now.busy.saturating_sub(last.busy).saturating_sub(after.saturating_sub(before));
        let stolen = now.stolen.saturating_sub(last.stolen);
        let line = |who: &str, ticks: u64| {
            let share = ticks as f64 / passed as f64;
            (share > MIN_REPORTED_SHARE).then(|| format!("{who} {:.0} % of the processor", share * 100.0))
        };
        let lines =
            [line("other processes use", busy), line("other guests of this virtual machine's host take", stolen)];
        self.last = Some(now);
        Ok(lines.into_iter().flatten().collect())
    }
}

fn read_snapshot(proc: &Path, ours: BTreeSet<u32>) -> Option<UsageSnapshot> {
    let stat = read_text(proc.join("stat"))?;
    let mut lines = stat.lines().take_while(|line| line.starts_with("cpu"));
    let fields: Vec<u64> = lines.next()?.split_whitespace().skip(1).map_while(|ticks| ticks.parse().ok()).collect();
    // Newer kernels append two fields, guests' time, which is included in the first two.
    let [user, nice, system, idle, waiting, interrupts, soft_interrupts, stolen, ..] = fields[..] else { return None };
    let busy = user + nice + system + interrupts + soft_interrupts;
    let this_id = std::process::id();
    let this = std::iter::once((this_id, ticks_used(&proc.join("self/stat"))?));
    let other_ids = ours.into_iter().filter(|&pid| pid != this_id);
    let listed = other_ids.filter_map(|pid| Some((pid, ticks_used(&proc.join(format!("{pid}/stat")))?)));
    Some(UsageSnapshot {
        cores: lines.count() as u64,
        passed: busy + idle + waiting + stolen,
        busy,
        stolen,
        ours: this.chain(listed).collect(),
    })
}

/// Ticks used by a process and the children it has waited for.
fn ticks_used(stat: &Path) -> Option<u64> {
    let stat = read_text(stat)?;
    // The name is in parentheses and may contain anything. Fields 14 to 17 are user and system time, of the process and
    // of its children.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    fields.get(11..15)?.iter().map(|ticks| ticks.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::processor::tests::Tree;

    /// Writes `[user, idle, stolen]` ticks of two cores, and the times of processes.
    fn set(tree: &Tree, [user, idle, stolen]: [u64; 3], processes: &[(&str, u64, u64)]) {
        tree.write("proc/stat", &format!("cpu {user} 0 0 {idle} 0 0 0 {stolen} 0 0\ncpu0 0 0\ncpu1 0 0\nintr 5\n"));
        for (pid, own, children) in processes {
            let fields = format!("1 (a) b) c) R 1 1 1 0 -1 0 0 0 0 0 {own} 0 {children} 0 20 0 1 0 99 0");
            tree.write(&format!("proc/{pid}/stat"), &fields);
        }
    }

    fn share(tree: &Tree) -> ProcessorUsage {
        set(tree, [1000, 1000, 0], &[("self", 100, 0)]);
        ProcessorUsage::new(tree.root())
    }

    #[test]
    fn usage_of_other_processes_is_reported() {
        let tree = Tree::new();
        let mut share = share(&tree);
        set(&tree, [1100, 1100, 0], &[("self", 126, 0)]);
        assert_eq!(share.other_users(&[]).unwrap(), ["other processes use 37 % of the processor"]);
        set(&tree, [1200, 1200, 0], &[("self", 206, 0)]);
        assert_eq!(share.other_users(&[]).unwrap(), [""; 0], "exactly a tenth");
    }

    #[test]
    fn listed_processes_are_excluded() {
        let tree = Tree::new();
        let mut share = share(&tree);
        set(&tree, [1000, 1100, 0], &[("77", 5000, 0)]);
        assert_eq!(share.other_users(&[77]).unwrap(), [""; 0]);
        set(&tree, [1100, 1100, 0], &[("77", 5100, 0)]);
        assert_eq!(share.other_users(&[77]).unwrap(), [""; 0]);
        set(&tree, [1200, 1100, 0], &[("77", 5200, 0)]);
        assert_eq!(share.other_users(&[]).unwrap(), [""; 0], "named once is enough");
    }

    #[test]
    fn processes_listed_early_are_excluded() {
        let tree = Tree::new();
        let mut share = share(&tree);
        set(&tree, [1001, 1000, 0], &[("77", 5000, 0)]);
        assert_eq!(share.other_users(&[77]).unwrap(), [""; 0]);
        set(&tree, [1101, 1100, 0], &[("77", 5100, 0)]);
        assert_eq!(share.other_users(&[77]).unwrap(), [""; 0]);
    }

    #[test]
    fn ended_children_are_excluded() {
        let tree = Tree::new();
        let mut share = share(&tree);
        set(&tree, [1000, 1100, 0], &[("77", 500, 0)]);
        assert_eq!(share.other_users(&[77]).unwrap(), [""; 0]);
        tree.remove("proc/77/stat");
        set(&tree, [1100, 1200, 0], &[("self", 100, 590)]);
        assert_eq!(share.other_users(&[77]).unwrap(), [""; 0]);
    }

    #[test]
    fn stolen_time_is_reported() {
        let tree = Tree::new();
        let mut share = share(&tree);
        set(&tree, [1100, 1080, 20], &[("self", 200, 0)]);
        assert_eq!(share.other_users(&[]).unwrap(), [""; 0]);
        set(&tree, [1200, 1140, 60], &[("self", 300, 0)]);
        assert_eq!(
            share.other_users(&[]).unwrap(),
            ["other guests of this virtual machine's host take 20 % of the processor"]
        );
    }

    #[test]
    fn short_spans_are_extended() {
        let tree = Tree::new();
        let mut share = share(&tree);
        set(&tree, [1019, 1000, 0], &[]);
        assert_eq!(share.other_users(&[]).unwrap(), [""; 0]);
        set(&tree, [1020, 1000, 0], &[]);
        assert_eq!(share.other_users(&[]).unwrap(), ["other processes use 100 % of the processor"]);
    }

    #[test]
    fn missing_files_are_an_error() {
        let tree = Tree::new();
        let error = ProcessorUsage::new(tree.root()).other_users(&[1]).unwrap_err();
        assert!(error.contains("/proc/self/stat"), "{error}");
    }
}
