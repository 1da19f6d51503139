//! CUDA events on a dedicated stream.

use super::stream_blocker::StreamBlocker;
use crate::{Failure, Overhead, Reading, Stopwatch, Work};
use calorimeter_case::Warning;
use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaEvent, CudaStream};
use std::sync::Arc;

/// Clock with a pair of events around each window, read after the device has passed the second.
///
/// The device is blocked until the window is enqueued: otherwise short launches would be timed at the host's launch
/// rate. Empty windows are treated alike, or they would time the host between two events.
pub struct CudaEvents {
    stream: Arc<CudaStream>,
    /// Windows that the device began before they were fully enqueued.
    early_windows: u32,
}

impl CudaEvents {
    /// Creates a clock for work enqueued on `stream`.
    pub fn new(stream: Arc<CudaStream>) -> Self {
        Self { stream, early_windows: 0 }
    }
}

impl Stopwatch for CudaEvents {
    fn name(&self) -> &'static str {
        "cuda-events"
    }

    fn overhead(&self) -> Overhead {
        Overhead::Excluded
    }

    fn includes_gaps(&self) -> bool {
        true
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        let (reading, held) = time_on_stream(&self.stream, || (0..launches).try_for_each(|_| work.launch()))?;
        self.early_windows += u32::from(!held);
        Ok(reading)
    }

    /// Events between the windows, without synchronization: only the first window is blocked until it is enqueued.
    fn windows(&mut self, work: &mut dyn Work, launches: &[u32]) -> Result<Vec<u64>, Failure> {
        let event = || self.stream.context().new_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
        let mut events = vec![event()?];
        let plug = StreamBlocker::insert(&self.stream)?;
        events[0].record(&self.stream)?;
        let mut plug = Some(plug);
        for &launches in launches {
            (0..launches).try_for_each(|_| work.launch())?;
            let end = event()?;
            end.record(&self.stream)?;
            events.push(end);
            self.early_windows += u32::from(plug.take().is_some_and(|plug| !plug.release()));
        }
        events.last().map_or(Ok(()), |last| last.synchronize())?;
        let nanos = |pair: &[CudaEvent]| Ok((f64::from(pair[0].elapsed_ms(&pair[1])?) * 1e6).round() as u64);
        events.windows(2).map(nanos).collect()
    }

    fn warning(&self) -> Option<Warning> {
        early_windows_warning(self.early_windows)
    }
}

/// Warning about windows that the device began early, because enqueuing took longer than the device can be blocked, or
/// waited for the device.
pub(super) fn early_windows_warning(windows: u32) -> Option<Warning> {
    (windows > 0).then(|| Warning::early_windows(windows))
}

/// Times what `enqueue` adds to the stream; also returns whether the device was blocked until all of it was enqueued.
pub(super) fn time_on_stream(
    stream: &CudaStream,
    enqueue: impl FnOnce() -> Result<(), Failure>,
) -> Result<(Reading, bool), Failure> {
    let event = || stream.context().new_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
    let (start, end) = (event()?, event()?);
    let plug = StreamBlocker::insert(stream)?;
    start.record(stream)?;
    enqueue()?;
    end.record(stream)?;
    let held = plug.release();
    let reading = Reading::Pending(Box::new(move || {
        end.synchronize()?;
        Ok((f64::from(start.elapsed_ms(&end)?) * 1e6).round() as u64)
    }));
    Ok((reading, held))
}
