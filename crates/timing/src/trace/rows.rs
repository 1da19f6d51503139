//! Assignment of spans to rows of threads: viewers drop a span that begins inside another one and ends after it.

use super::{Span, Track};
use std::collections::HashMap;

/// Thread in the trace file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceThread {
    pub pid: u32,
    pub tid: u32,
    /// Index among the threads of one track.
    pub index: usize,
}

/// Process id of the host's tracks.
pub(super) const HOST_PID: u32 = 1;
/// Process id of the device's tracks.
pub(super) const DEVICE_PID: u32 = 2;
/// First thread id. Thread ids must differ from process ids, or a thread would be taken for the process's main thread.
const FIRST_TID: u32 = 10;

/// Distributes spans over threads; spans must be sorted by start, longer ones first.
#[derive(Default)]
pub(super) struct RowAllocator<'a> {
    tracks: HashMap<&'a Track, Vec<TraceRow>>,
    threads: u32,
}

struct TraceRow {
    tid: u32,
    /// Ends of the spans open at the current time, the innermost last.
    open: Vec<u64>,
}

impl<'a> RowAllocator<'a> {
    /// Assigns a thread to a span; also returns whether the thread is new.
    pub(super) fn assign(&mut self, span: &'a Span) -> (TraceThread, bool) {
        // Overlapping device spans run concurrently; only host spans may be nested.
        let (pid, nests) = match span.track {
            Track::Host(_) => (HOST_PID, true),
            Track::Device(_) => (DEVICE_PID, false),
        };
        let lanes = self.tracks.entry(&span.track).or_default();
        if let Some(index) = lanes.iter_mut().position(|lane| lane.try_push(span, nests)) {
            return (TraceThread { pid, tid: lanes[index].tid, index }, false);
        }
        let tid = FIRST_TID + self.threads;
        self.threads += 1;
        lanes.push(TraceRow { tid, open: vec![span.end_ns()] });
        (TraceThread { pid, tid, index: lanes.len() - 1 }, true)
    }
}

impl TraceRow {
    fn try_push(&mut self, span: &Span, nests: bool) -> bool {
        while self.open.last().is_some_and(|&end| end <= span.start_ns) {
            self.open.pop();
        }
        let fits = self.open.last().is_none_or(|&end| nests && span.end_ns() <= end);
        if fits {
            self.open.push(span.end_ns());
        }
        fits
    }
}
