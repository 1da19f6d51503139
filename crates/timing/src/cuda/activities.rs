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
        busy(self.intervals().collect())
    }

    /// From the beginning of the first kernel, copy or fill to the end of the last, gaps included.
    pub fn span_ns(&self) -> u64 {
        let (start, end) =
            self.intervals().fold((u64::MAX, 0), |(start, end), (from, to)| (start.min(from), end.max(to)));
        end.saturating_sub(start)
    }

    /// Cut into windows of so many launches each, one straight after the other: what runs for each launch is as much as for
    /// any other. `None` where it is not. Only what ran on the device is kept.
    pub fn cut(&self, launches: &[u32]) -> Option<Vec<Self>> {
        let total = launches.iter().sum::<u32>() as usize;
        let ran = self.kernels.len() + self.copies.len();
        if total == 0 || ran == 0 || !ran.is_multiple_of(total) {
            return None;
        }
        let (mut kernels, mut copies) = (self.kernels.clone(), self.copies.clone());
        kernels.sort_unstable_by_key(|kernel| kernel.start_ns);
        copies.sort_unstable_by_key(|copy| copy.start_ns);
        let (mut kernels, mut copies) = (kernels.into_iter().peekable(), copies.into_iter().peekable());
        // What overlaps with the window before is that one's.
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

    /// When each kernel, copy and fill began and ended.
    fn intervals(&self) -> impl Iterator<Item = (u64, u64)> {
        let kernels = self.kernels.iter().map(|kernel| (kernel.start_ns, kernel.end_ns));
        kernels.chain(self.copies.iter().map(|copy| (copy.start_ns, copy.end_ns)))
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
    fn one_recording_is_cut_into_windows_where_all_launches_are_alike() {
        // Two kernels for each launch, gaps within launches, an overlap from the second window into the third.
        let starts = [0, 20, 40, 60, 80, 100, 115, 140];
        let kernels = starts.map(|start| kernel("gemm", start, start + if start == 100 { 20 } else { 10 }));
        let activities = Activities { kernels: kernels.to_vec(), ..Activities::default() };
        let windows = activities.cut(&[1, 2, 1]).unwrap();
        let told: Vec<_> = windows.iter().map(|window| (window.busy_ns(), window.span_ns())).collect();
        assert_eq!(told, [(20, 30), (50, 80), (15, 30)]);
        assert_eq!(activities.cut(&[1, 2]), None);
        assert_eq!(activities.cut(&[9]), None);
    }

    #[test]
    fn kernels_and_copies_that_overlap_are_busy_once_and_listed_in_full() {
        let activities = Activities {
            kernels: vec![kernel("gemm", 100, 200), kernel("quantize", 0, 30), kernel("gemm", 220, 300)],
            copies: vec![Copy { what: "memset", bytes: 64, start_ns: 150, end_ns: 210, stream: 8 }],
            ..Activities::default()
        };
        assert_eq!(activities.busy_ns(), 30 + 110 + 80);
        let totals: Vec<_> = activities.totals().iter().map(|t| (t.name.to_string(), t.calls, t.nanos)).collect();
        assert_eq!(totals, [("gemm".into(), 2, 180), ("memset".into(), 1, 60), ("quantize".into(), 1, 30)]);
    }
}
