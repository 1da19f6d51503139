//! Spans side by side: a viewer drops a span that begins inside another one and ends after it.

use super::{Span, Track};
use std::collections::HashMap;

/// One thread of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    pub pid: u32,
    pub tid: u32,
    /// How many threads of the same track there were before this one.
    pub index: usize,
}

/// The process of the host's tracks.
pub const HOST: u32 = 1;
/// The process of the device's tracks.
pub const DEVICE: u32 = 2;
/// Threads have numbers that no process has: a thread of that number would be taken for the process's main one.
const FIRST_TID: u32 = 10;

/// Distributes spans, which must come in order of their beginnings and longer ones first, over threads.
#[derive(Default)]
pub struct Lanes<'a> {
    tracks: HashMap<&'a Track, Vec<Lane>>,
    threads: u32,
}

struct Lane {
    tid: u32,
    /// The ends of the spans that the present moment lies in, the innermost last.
    open: Vec<u64>,
}

impl<'a> Lanes<'a> {
    /// The thread for a span, and whether it is a new one.
    pub fn place(&mut self, span: &'a Span) -> (Thread, bool) {
        // On a device what overlaps runs at the same time; only on the host does a span inside another belong to it.
        let (pid, nests) = match span.track {
            Track::Host(_) => (HOST, true),
            Track::Device(_) => (DEVICE, false),
        };
        let lanes = self.tracks.entry(&span.track).or_default();
        if let Some(index) = lanes.iter_mut().position(|lane| lane.takes(span, nests)) {
            return (Thread { pid, tid: lanes[index].tid, index }, false);
        }
        let tid = FIRST_TID + self.threads;
        self.threads += 1;
        lanes.push(Lane { tid, open: vec![span.end_ns()] });
        (Thread { pid, tid, index: lanes.len() - 1 }, true)
    }
}

impl Lane {
    fn takes(&mut self, span: &Span, nests: bool) -> bool {
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
