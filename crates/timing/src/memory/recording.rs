//! Recordings of the process's allocations.

use super::allocator::Listening;
use super::event::Mark;
use super::ledger::Ledger;
use super::source::Source;
use super::timeline::Timeline;
use std::borrow::Cow;
use std::hint::black_box;
use std::sync::Arc;

/// Maximum number of events: 96 MiB, of which only written pages take memory.
const EVENTS: usize = 1 << 22;

/// Number of marks that can be set without an allocation, which would be recorded.
const MARKS: usize = 256;

/// Recording of all allocations of all threads, until it is finished or dropped.
pub struct Recording {
    listening: Listening,
    marks: Vec<Mark>,
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
    Already,
}

impl Recording {
    /// Starts recording.
    pub fn start() -> Result<Self, RecordingError> {
        let probe = Listening::start(Arc::new(Ledger::with_room_for(0))).ok_or(RecordingError::Already)?;
        drop(black_box(Box::new(0_u8)));
        if probe.stop().is_empty() {
            return Err(RecordingError::NotCounting);
        }
        let marks = Vec::with_capacity(MARKS);
        let listening = Listening::start(Arc::new(Ledger::with_room_for(EVENTS))).ok_or(RecordingError::Already)?;
        Ok(Self { listening, marks })
    }

    /// Marks the current moment. A name that had to be allocated is part of the recording.
    pub fn mark(&mut self, name: impl Into<Cow<'static, str>>) {
        self.marks.push(Mark { at_ns: self.listening.ledger().now_ns(), name: name.into() });
    }

    /// Ends the recording and returns its timeline.
    pub fn finish(self) -> Timeline {
        let Self { listening, marks } = self;
        let ledger = listening.stop();
        let end_ns = ledger.now_ns();
        let (events, lost) = ledger.events();
        let totals = Some(ledger.totals());
        Timeline { events, marks, lost, totals, ..Timeline::new(Source::HostAllocator, end_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_counting_allocator_there_is_no_recording_rather_than_an_empty_one() {
        // This test's process has the standard allocator.
        assert_eq!(Recording::start().map(|_| ()), Err(RecordingError::NotCounting));
        assert_eq!(Recording::start().map(|_| ()), Err(RecordingError::NotCounting));
    }
}
