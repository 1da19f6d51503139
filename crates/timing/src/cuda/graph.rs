//! CUDA graph clock: launches without the host's launch cost.

use super::events::{early_windows_warning, time_on_stream};
use crate::{Failure, Overhead, Reading, Stopwatch, Work};
use calorimeter_case::Warning;
use cudarc::driver::sys::{self, CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaGraph, CudaStream};
use std::num::NonZeroU32;
use std::sync::Arc;

/// Clock with a pair of events around replays of a graph of several launches, captured on first use.
///
/// The work must enqueue on the given stream, and must not wait or free memory while the clock is in use: a replay uses
/// the memory addresses of the capture.
pub struct GraphClock {
    stream: Arc<CudaStream>,
    unit: NonZeroU32,
    captured: Option<CapturedGraph>,
    early_windows: u32,
}

struct CapturedGraph {
    graph: CudaGraph,
    /// Address of the captured work: another work needs another graph.
    work: *const (),
}

impl GraphClock {
    /// Creates a clock that replays `unit` launches at a time on `stream`: one per buffer set, so that a replay rotates
    /// through all of them, but not many more than 64.
    pub fn new(stream: Arc<CudaStream>, unit: NonZeroU32) -> Self {
        Self { stream, unit, captured: None, early_windows: 0 }
    }

    fn captured_graph(&mut self, work: &mut dyn Work) -> Result<&CudaGraph, Failure> {
        let of = std::ptr::from_mut(work).cast::<()>().cast_const();
        let captured = match self.captured.take() {
            Some(captured) if captured.work == of => captured,
            _ => CapturedGraph { graph: self.capture(work)?, work: of },
        };
        Ok(&self.captured.insert(captured).graph)
    }

    fn capture(&self, work: &mut dyn Work) -> Result<CudaGraph, Failure> {
        // The first launch of a kernel loads it, which cannot be captured.
        work.launch()?;
        work.synchronize()?;
        // Thread-local capture: allocations and other calls of other threads do not affect the graph.
        self.stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
        let enqueued = (0..self.unit.get()).try_for_each(|_| work.launch());
        // A pending error of the context would fail the next call and leave the stream capturing.
        let pending = self.stream.context().check_err();
        let ended = self.stream.end_capture(CUgraphInstantiate_flags(0));
        let refused = |error: Failure| -> Failure {
            format!(
                "the work cannot be captured into a CUDA graph: {error}; a launch must enqueue everything on the \
                 captured stream, and neither wait nor allocate"
            )
            .into()
        };
        enqueued.map_err(refused)?;
        pending.map_err(|error| refused(error.into()))?;
        let graph = ended
            .map_err(|error| refused(error.into()))?
            .ok_or_else(|| refused("the capture returned no graph".into()))?;
        if node_count(&graph)? == 0 {
            return Err(refused("it enqueued nothing on the captured stream".into()));
        }
        graph.upload()?;
        self.stream.synchronize()?;
        Ok(graph)
    }
}

fn node_count(graph: &CudaGraph) -> Result<usize, Failure> {
    let mut count = 0;
    // SAFETY: the graph is valid and used by this thread only; a null pointer requests the count of nodes.
    unsafe { sys::cuGraphGetNodes(graph.cu_graph(), std::ptr::null_mut(), &mut count) }.result()?;
    Ok(count)
}

impl Stopwatch for GraphClock {
    fn name(&self) -> &'static str {
        "cuda-graph"
    }

    fn overhead(&self) -> Overhead {
        Overhead::Excluded
    }

    fn includes_gaps(&self) -> bool {
        true
    }

    fn launch_multiple(&self) -> u32 {
        self.unit.get()
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        let unit = self.unit.get();
        if !launches.is_multiple_of(unit) {
            return Err(format!("{launches} launches are not a multiple of the {unit} launches of the graph").into());
        }
        let stream = self.stream.clone();
        let graph = self.captured_graph(work)?;
        let replay = || (0..launches / unit).try_for_each(|_| graph.launch()).map_err(Failure::from);
        // The first replay begins while the host still enqueues the second.
        let (reading, held) = time_on_stream(&stream, replay)?;
        self.early_windows += u32::from(!held);
        Ok(reading)
    }

    fn warning(&self) -> Option<Warning> {
        early_windows_warning(self.early_windows)
    }
}
