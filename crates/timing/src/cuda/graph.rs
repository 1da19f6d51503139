//! Launches replayed from a graph: what is left when the host's cost of launching is gone.

use super::events::{bracket, unplugged};
use crate::{Failure, Overhead, Reading, Stopwatch, Work};
use cudarc::driver::sys::{self, CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaGraph, CudaStream};
use std::num::NonZeroU32;
use std::sync::Arc;

/// A pair of events around replays of a graph that holds some number of launches, captured when first needed.
///
/// For work that enqueues on one given stream, waits for nothing and frees nothing while the clock is in use: a replay
/// uses the memory that was used while capturing.
pub struct GraphClock {
    stream: Arc<CudaStream>,
    unit: NonZeroU32,
    captured: Option<Captured>,
    unplugged: u32,
}

struct Captured {
    graph: CudaGraph,
    /// Where the work lies in memory: another work has another graph.
    of: *const (),
}

impl GraphClock {
    /// Replays `unit` launches at a time on `stream`: as many as there are buffer sets, so that a replay goes through all
    /// of them, but not many more than 64.
    pub fn new(stream: Arc<CudaStream>, unit: NonZeroU32) -> Self {
        Self { stream, unit, captured: None, unplugged: 0 }
    }

    fn captured(&mut self, work: &mut dyn Work) -> Result<&CudaGraph, Failure> {
        let of = std::ptr::from_mut(work).cast::<()>().cast_const();
        let captured = match self.captured.take() {
            Some(captured) if captured.of == of => captured,
            _ => Captured { graph: self.capture(work)?, of },
        };
        Ok(&self.captured.insert(captured).graph)
    }

    fn capture(&self, work: &mut dyn Work) -> Result<CudaGraph, Failure> {
        // A kernel's first launch loads it, which cannot be captured.
        work.launch()?;
        work.settle()?;
        // Of this thread alone: what others do meanwhile, such as allocating, is no concern of the graph's.
        self.stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
        let enqueued = (0..self.unit.get()).try_for_each(|_| work.launch());
        // An error that the context keeps from a drop would make it refuse the next call, and leave the stream capturing.
        let kept = self.stream.context().check_err();
        let ended = self.stream.end_capture(CUgraphInstantiate_flags(0));
        let refused = |error: Failure| -> Failure {
            format!(
                "the work cannot be captured into a CUDA graph: {error}; a launch must enqueue everything on the stream \
                 that is captured, and neither wait nor allocate"
            )
            .into()
        };
        enqueued.map_err(refused)?;
        kept.map_err(|error| refused(error.into()))?;
        let graph = ended.map_err(|error| refused(error.into()))?.ok_or_else(|| refused("there is no graph".into()))?;
        if nodes(&graph)? == 0 {
            return Err(refused("it enqueued nothing there".into()));
        }
        graph.upload()?;
        self.stream.synchronize()?;
        Ok(graph)
    }
}

fn nodes(graph: &CudaGraph) -> Result<usize, Failure> {
    let mut count = 0;
    // SAFETY: the graph is alive and used by this thread alone; without a place for nodes they are only counted.
    unsafe { sys::cuGraphGetNodes(graph.cu_graph(), std::ptr::null_mut(), &mut count) }.result()?;
    Ok(count)
}

impl Stopwatch for GraphClock {
    fn name(&self) -> &'static str {
        "cuda-graph"
    }

    fn overhead(&self) -> Overhead {
        Overhead::Outside
    }

    fn holds_gaps(&self) -> bool {
        true
    }

    fn unit(&self) -> u32 {
        self.unit.get()
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        let unit = self.unit.get();
        if !launches.is_multiple_of(unit) {
            return Err(format!("{launches} launches cannot be made of replays of {unit}").into());
        }
        let stream = self.stream.clone();
        let graph = self.captured(work)?;
        let replay = || (0..launches / unit).try_for_each(|_| graph.launch()).map_err(Failure::from);
        // Replays are enqueued faster than they run, but the first begins while the host is still busy with the second.
        let (reading, held) = bracket(&stream, replay)?;
        self.unplugged += u32::from(!held);
        Ok(reading)
    }

    fn remark(&self) -> Option<String> {
        unplugged(self.unplugged)
    }
}
