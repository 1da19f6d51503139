//! Recordings of the process's allocations.

use super::allocator::ActiveLedger;
use super::event::TimelineMark;
use super::ledger::Ledger;
use super::source::MemorySource;
use super::timeline::Timeline;
use std::borrow::Cow;
use std::hint::black_box;
use std::sync::Arc;

/// Maximum number of events: 96 MiB, of which only written pages take memory.
const MAX_EVENTS: usize = 1 << 22;

/// Number of marks that can be set without an allocation, which would be recorded.
const MAX_MARKS: usize = 256;

/// Recording of all allocations of all threads, until it is finished or dropped.
pub struct Recording {
    active_ledger: ActiveLedger,
    marks: Vec<TimelineMark>,
}

/// Reason why allocations cannot be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The allocator of the process does not report allocations.
    #[error(
        "allocations cannot be recorded: the allocator of this program does not count them; declare a \
         CountingAllocator with #[global_allocator] in its main file"
    )]
    NotCounting,
    /// Another recording of the process is active.
    #[error("allocations are being recorded already; finish that recording first")]
    AlreadyRecording,
}

impl Recording {
    /// Starts recording.
    pub fn start() -> Result<Self, RecordingError> {
        let probe =
            ActiveLedger::install(Arc::new(Ledger::with_capacity(0))).ok_or(RecordingError::AlreadyRecording)?;
        drop(black_box(Box::new(0_u8)));
        if probe.remove().is_empty() {
            return Err(RecordingError::NotCounting);
        }
        let marks = Vec::with_capacity(MAX_MARKS);
        let listening = ActiveLedger::install(Arc::new(Ledger::with_capacity(MAX_EVENTS)))
            .ok_or(RecordingError::AlreadyRecording)?;
        Ok(Self { active_ledger: listening, marks })
    }

    /// Marks the current moment. A name that had to be allocated is part of the recording.
    pub fn mark(&mut self, name: impl Into<Cow<'static, str>>) {
        self.marks.push(TimelineMark { at_ns: self.active_ledger.ledger().now_ns(), name: name.into() });
    }

    /// Ends the recording and returns its timeline.
    pub fn finish(self) -> Timeline {
        let Self { active_ledger: listening, marks } = self;
        let ledger = listening.remove();
        let end_ns = ledger.now_ns();
        let (events, lost) = ledger.events();
        let totals = Some(ledger.totals());
        Timeline { events, marks, lost, totals, ..Timeline::new(MemorySource::HostAllocator, end_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recording_requires_the_counting_allocator() {
        // This test's process has the standard allocator.
        assert_eq!(Recording::start().map(|_| ()), Err(RecordingError::NotCounting));
        assert_eq!(Recording::start().map(|_| ()), Err(RecordingError::NotCounting));
    }
}
