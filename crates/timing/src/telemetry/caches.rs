//! Size of the CPU's last-level cache.

use super::files::{numbered_entries, read_number, read_text};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Bytes of the CPU's last-level cache, if the system reports it. All slices are included: threads on all cores keep
/// operands in all of them.
pub fn last_level_cache() -> Option<u64> {
    if cfg!(target_os = "macos") { read_sysctl() } else { read_sysfs(Path::new("/")) }
}

fn read_sysfs(root: &Path) -> Option<u64> {
    let mut parts: BTreeMap<(u32, Option<String>), u64> = BTreeMap::new();
    for cpu in numbered_entries(root.join("sys/devices/system/cpu"), "cpu") {
        for index in numbered_entries(cpu.join("cache"), "index") {
            let kibibytes = read_text(index.join("size")).and_then(|size| size.strip_suffix('K')?.parse::<u64>().ok());
            let (Some(level), Some(kibibytes)) = (read_number(index.join("level")), kibibytes) else { continue };
            if read_text(index.join("type")).as_deref() != Some("Instruction") {
                parts.insert((level, read_text(index.join("shared_cpu_list"))), kibibytes << 10);
            }
        }
    }
    let last = parts.keys().map(|(level, _)| *level).max()?;
    Some(parts.iter().filter(|((level, _), _)| *level == last).map(|(_, bytes)| bytes).sum())
}

/// Apple's CPUs have no third level, and the plain name of the second refers to the efficiency cores.
fn read_sysctl() -> Option<u64> {
    ["hw.l3cachesize", "hw.perflevel0.l2cachesize", "hw.l2cachesize"].into_iter().find_map(|name| {
        let output = Command::new("sysctl").args(["-n", name]).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok().filter(|&bytes| bytes > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn cache(root: &Path, cpu: u32, index: u32, [level, kind, size, shared]: [&str; 4]) {
        let folder = root.join(format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}"));
        fs::create_dir_all(&folder).unwrap();
        for (file, content) in [("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)] {
            fs::write(folder.join(file), format!("{content}\n")).unwrap();
        }
    }

    #[test]
    fn last_level_slices_are_summed() {
        let tree = tempfile::tempdir().unwrap();
        for (cpu, shared) in [(0, "0-1"), (1, "0-1"), (2, "2-3"), (10, "2-3")] {
            cache(tree.path(), cpu, 0, ["1", "Data", "48K", &cpu.to_string()]);
            cache(tree.path(), cpu, 2, ["2", "Unified", "1024K", &cpu.to_string()]);
            cache(tree.path(), cpu, 3, ["3", "Unified", "32768K", shared]);
        }
        assert_eq!(read_sysfs(tree.path()), Some(64 << 20));
    }

    #[test]
    fn instruction_caches_are_ignored() {
        let tree = tempfile::tempdir().unwrap();
        assert_eq!(read_sysfs(tree.path()), None);
        cache(tree.path(), 0, 0, ["1", "Instruction", "64K", "0"]);
        assert_eq!(read_sysfs(tree.path()), None);
        cache(tree.path(), 0, 1, ["1", "Data", "48K", "0"]);
        assert_eq!(read_sysfs(tree.path()), Some(48 << 10));
    }
}
