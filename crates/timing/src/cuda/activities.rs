//! Activities recorded by CUPTI, in nanoseconds on its time axis.

use super::union_length::union_length;
use std::collections::HashMap;
use std::sync::Arc;

/// Activities during a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Activities {
    /// Kernels executed on a device.
    pub kernels: Vec<KernelActivity>,
    /// Copies and memsets executed on a device.
    pub copies: Vec<CopyActivity>,
    /// Allocations and frees.
    pub memory: Vec<MemoryActivity>,
    /// Driver API calls.
    pub calls: Vec<DriverCall>,
    /// Activities that are known to be missing or have no time; such a recording must not be used for timing.
    pub dropped: u64,
}

/// Executed kernel.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KernelActivity {
    /// Compiler name: C++ names are mangled.
    pub name: Arc<str>,
    /// Start of execution.
    pub start_ns: u64,
    /// End of execution.
    pub end_ns: u64,
    /// CUPTI's stream id.
    pub stream: u32,
    /// Correlation id of the [`DriverCall`] that launched it.
    pub correlation: u32,
}

/// Executed copy or memset.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CopyActivity {
    /// `memcpy` with its direction, or `memset`.
    pub what: &'static str,
    /// Size in bytes.
    pub bytes: u64,
    /// Start of execution.
    pub start_ns: u64,
    /// End of execution.
    pub end_ns: u64,
    /// CUPTI's stream id.
    pub stream: u32,
}

/// Allocation or free.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryActivity {
    /// Start address.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// True for a free, false for an allocation.
    pub freed: bool,
    /// Time of the call.
    pub at_ns: u64,
    /// Kind of memory: `device`, `pinned`, `managed`, …
    pub kind: &'static str,
}

/// Driver API call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DriverCall {
    /// Function name.
    pub name: Arc<str>,
    /// Time of the call.
    pub start_ns: u64,
    /// Time of the return.
    pub end_ns: u64,
    /// Operating system's id of the calling thread.
    pub thread: u32,
    /// Correlation id, shared with the kernels that it launched.
    pub correlation: u32,
}

/// Totals of one kernel, or one kind of copy.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KernelTotal {
    /// Kernel name or kind of copy.
    pub name: Arc<str>,
    /// Number of executions.
    pub calls: u64,
    /// Total execution time; overlapping kernels count separately.
    pub nanos: u64,
}

impl Activities {
    /// Time in which at least one kernel, copy or memset was running.
    pub fn busy_ns(&self) -> u64 {
        union_length(self.intervals().collect())
    }

    /// Time from the start of the first kernel, copy or memset to the end of the last, gaps included.
    pub fn span_ns(&self) -> u64 {
        let (start, end) =
            self.intervals().fold((u64::MAX, 0), |(start, end), (from, to)| (start.min(from), end.max(to)));
        end.saturating_sub(start)
    }

    /// Splits back-to-back windows with these numbers of launches; requires that every launch runs equally many
    /// activities, otherwise `None`. Only device activities are retained.
    pub fn split_windows(&self, launches: &[u32]) -> Option<Vec<Self>> {
        let total = launches.iter().sum::<u32>() as usize;
        let ran = self.kernels.len() + self.copies.len();
        if total == 0 || ran == 0 || !ran.is_multiple_of(total) {
            return None;
        }
        let (mut kernels, mut copies) = (self.kernels.clone(), self.copies.clone());
        kernels.sort_unstable_by_key(|kernel| kernel.start_ns);
        copies.sort_unstable_by_key(|copy| copy.start_ns);
        let (mut kernels, mut copies) = (kernels.into_iter().peekable(), copies.into_iter().peekable());
        // Time that overlaps with the previous window belongs to that window.
        let mut covered = 0;
        let window = |&launches: &u32| {
            let mut window = Self::default();
            for _ in 0..launches as usize * (ran / total) {
                let copy_first = match (kernels.peek(), copies.peek()) {
                    (Some(kernel), Some(copy)) => copy.start_ns < kernel.start_ns,
                    (kernel, _) => kernel.is_none(),
                };
                if copy_first {
                    window.copies.extend(copies.next());
                } else {
                    window.kernels.extend(kernels.next());
                }
            }
            let end = window.intervals().map(|(_, end)| end).max().unwrap_or(0);
            let own = |start: &mut u64, end: &mut u64| (*start, *end) = ((*start).max(covered), (*end).max(covered));
            window.kernels.iter_mut().for_each(|kernel| own(&mut kernel.start_ns, &mut kernel.end_ns));
            window.copies.iter_mut().for_each(|copy| own(&mut copy.start_ns, &mut copy.end_ns));
            covered = covered.max(end);
            window
        };
        Some(launches.iter().map(window).collect())
    }

    /// Start and end of each kernel, copy and memset.
    fn intervals(&self) -> impl Iterator<Item = (u64, u64)> {
        let kernels = self.kernels.iter().map(|kernel| (kernel.start_ns, kernel.end_ns));
        kernels.chain(self.copies.iter().map(|copy| (copy.start_ns, copy.end_ns)))
    }

    /// Totals of device activities by name, longest first.
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

    fn kernel(name: &str, start_ns: u64, end_ns: u64) -> KernelActivity {
        KernelActivity { name: name.into(), start_ns, end_ns, stream: 7, correlation: 0 }
    }

    #[test]
    fn recording_splits_into_windows() {
        // Two kernels per launch, gaps within launches, an overlap from the second window into the third.
        let starts = [0, 20, 40, 60, 80, 100, 115, 140];
        let kernels = starts.map(|start| kernel("gemm", start, start + if start == 100 { 20 } else { 10 }));
        let activities = Activities { kernels: kernels.to_vec(), ..Activities::default() };
        let windows = activities.split_windows(&[1, 2, 1]).unwrap();
        let times: Vec<_> = windows.iter().map(|window| (window.busy_ns(), window.span_ns())).collect();
        assert_eq!(times, [(20, 30), (50, 80), (15, 30)]);
        assert_eq!(activities.split_windows(&[1, 2]), None);
        assert_eq!(activities.split_windows(&[9]), None);
    }

    #[test]
    fn overlapping_activities_are_busy_once() {
        let activities = Activities {
            kernels: vec![kernel("gemm", 100, 200), kernel("quantize", 0, 30), kernel("gemm", 220, 300)],
            copies: vec![CopyActivity { what: "memset", bytes: 64, start_ns: 150, end_ns: 210, stream: 8 }],
            ..Activities::default()
        };
        assert_eq!(activities.busy_ns(), 30 + 110 + 80);
        let totals: Vec<_> = activities.totals().iter().map(|t| (t.name.to_string(), t.calls, t.nanos)).collect();
        assert_eq!(totals, [("gemm".into(), 2, 180), ("memset".into(), 1, 60), ("quantize".into(), 1, 30)]);
    }
}
