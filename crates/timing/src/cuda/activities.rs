//! What CUPTI saw, in nanoseconds on its own time axis.

use super::busy::busy;
use std::collections::HashMap;
use std::sync::Arc;

/// What happened while something was recorded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Activities {
    /// Kernels that ran on a device.
    pub kernels: Vec<Kernel>,
    /// Copies and fills that ran on a device.
    pub copies: Vec<Copy>,
    /// Allocations and their ends.
    pub memory: Vec<MemoryEvent>,
    /// Calls into the driver.
    pub calls: Vec<Call>,
    /// What is known to have happened and is missing above, or has no time: nothing may be timed from such records.
    pub dropped: u64,
}

/// A kernel that ran.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Kernel {
    /// As the compiler spelt it: C++ names are mangled.
    pub name: Arc<str>,
    /// When it began to run.
    pub start_ns: u64,
    /// When it had run.
    pub end_ns: u64,
    /// CUPTI's number of the stream.
    pub stream: u32,
    /// The number of the [`Call`] that launched it.
    pub correlation: u32,
}

/// A copy or a fill that ran.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Copy {
    /// `memcpy` with its direction, or `memset`.
    pub what: &'static str,
    /// How much was copied or filled.
    pub bytes: u64,
    /// When it began to run.
    pub start_ns: u64,
    /// When it had run.
    pub end_ns: u64,
    /// CUPTI's number of the stream.
    pub stream: u32,
}

/// Memory that was allocated or freed.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryEvent {
    /// Where it begins.
    pub address: u64,
    /// How much it is.
    pub bytes: u64,
    /// Whether it was freed; otherwise it was allocated.
    pub freed: bool,
    /// When the call was made.
    pub at_ns: u64,
    /// Where the memory lies: `device`, `pinned`, `managed`, …
    pub kind: &'static str,
}

/// A call into the driver.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// The function.
    pub name: Arc<str>,
    /// When it was called.
    pub start_ns: u64,
    /// When it returned.
    pub end_ns: u64,
    /// The operating system's number of the calling thread.
    pub thread: u32,
    /// The number that kernels launched by it carry too.
    pub correlation: u32,
}

/// All that one kernel, or one sort of copy, did.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KernelTotal {
    /// The kernel's name, or what sort of copy it is.
    pub name: Arc<str>,
    /// How often it ran.
    pub calls: u64,
    /// How long it ran in total; kernels that overlap share no time here.
    pub nanos: u64,
}

impl Activities {
    /// The time in which at least one kernel, copy or fill was running.
    pub fn busy_ns(&self) -> u64 {
        let kernels = self.kernels.iter().map(|k| (k.start_ns, k.end_ns));
        busy(kernels.chain(self.copies.iter().map(|c| (c.start_ns, c.end_ns))).collect())
    }

    /// What ran on the device by name, the longest total first.
    pub fn totals(&self) -> Vec<KernelTotal> {
        let kernels = self.kernels.iter().map(|k| (&*k.name, k.end_ns.saturating_sub(k.start_ns)));
        let copies = self.copies.iter().map(|c| (c.what, c.end_ns.saturating_sub(c.start_ns)));
        let mut by_name: HashMap<&str, (u64, u64)> = HashMap::new();
        for (name, nanos) in kernels.chain(copies) {
            let total = by_name.entry(name).or_default();
            *total = (total.0 + 1, total.1 + nanos);
        }
        let mut totals: Vec<_> =
            by_name.into_iter().map(|(name, (calls, nanos))| KernelTotal { name: name.into(), calls, nanos }).collect();
        totals.sort_unstable_by(|a, b| b.nanos.cmp(&a.nanos).then_with(|| a.name.cmp(&b.name)));
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str, start_ns: u64, end_ns: u64) -> Kernel {
        Kernel { name: name.into(), start_ns, end_ns, stream: 7, correlation: 0 }
    }

    #[test]
    fn kernels_and_copies_that_overlap_are_busy_once_and_listed_in_full() {
        let activities = Activities {
            kernels: vec![kernel("gemm", 100, 200), kernel("quantise", 0, 30), kernel("gemm", 220, 300)],
            copies: vec![Copy { what: "memset", bytes: 64, start_ns: 150, end_ns: 210, stream: 8 }],
            ..Activities::default()
        };
        assert_eq!(activities.busy_ns(), 30 + 110 + 80);
        let totals: Vec<_> = activities.totals().iter().map(|t| (t.name.to_string(), t.calls, t.nanos)).collect();
        assert_eq!(totals, [("gemm".into(), 2, 180), ("memset".into(), 1, 60), ("quantise".into(), 1, 30)]);
    }
}
