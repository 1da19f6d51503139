//! CUDA events on a stream of our own.

use crate::{Failure, Overhead, Reading, Stopwatch, Work};
use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUevent_flags;
use std::sync::Arc;

/// A pair of events around each window, read once the device has passed the second.
pub struct CudaEvents {
    stream: Arc<CudaStream>,
}

impl CudaEvents {
    /// Times what is enqueued on `stream`.
    pub fn new(stream: Arc<CudaStream>) -> Self {
        Self { stream }
    }
}

impl Stopwatch for CudaEvents {
    fn name(&self) -> &'static str {
        "cuda-events"
    }

    fn overhead(&self) -> Overhead {
        Overhead::Outside
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        let timed = Some(CUevent_flags::CU_EVENT_DEFAULT);
        let start = self.stream.record_event(timed)?;
        for _ in 0..launches {
            work.launch()?;
        }
        let end = self.stream.record_event(timed)?;
        Ok(Reading::Later(Box::new(move || {
            end.synchronize()?;
            Ok((f64::from(start.elapsed_ms(&end)?) * 1e6).round() as u64)
        })))
    }
}
