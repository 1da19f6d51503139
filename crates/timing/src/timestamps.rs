//! Device timestamps around each launch, through CubeCL.

use crate::{ClockResolution, Failure, LaunchSpan, Overhead, Reading, Stopwatch, Work, median};
use cubecl::profile::{ProfileDuration, ProfileTicks, TimingMethod};
use cubecl::{Runtime, client::ComputeClient, future};
use std::time::Instant;

/// Clock of timestamp queries around each launch; a window is the sum over its launches, without the gaps between them.
///
/// The queries bracket one compute pass, and the runtime begins another pass after a number of kernels. Work with more
/// kernels per launch is not [covered](Self::covers).
pub struct Timestamps<R: Runtime> {
    client: ComputeClient<R>,
}

/// Maximum number of pending queries: Metal has space for 28.
const MAX_PENDING_QUERIES: usize = 16;

impl<R: Runtime> Timestamps<R> {
    /// Creates the clock, or returns `None` if the runtime only reports wall time.
    pub fn new(client: ComputeClient<R>) -> Option<Self> {
        let (_, probe) = client.profile(|| (), "probe").ok()?;
        (probe.timing_method() == TimingMethod::Device).then_some(Self { client })
    }

    /// True if one launch fits into one compute pass: otherwise three launches would seem to take no longer than one.
    pub fn covers(&self, work: &mut dyn Work) -> Result<bool, Failure> {
        let mut take = |launches| -> Result<f64, Failure> {
            let times: Result<Vec<f64>, Failure> =
                (0..5).map(|_| Ok(read(self.profile(work, launches)?) as f64)).collect();
            Ok(median(&times?).unwrap_or(0.0))
        };
        let (one, three) = (take(1)?, take(3)?);
        Ok(three > 1.3 * one)
    }

    fn profile(&self, work: &mut dyn Work, launches: u32) -> Result<ProfileDuration, Failure> {
        let enqueue = || (0..launches).try_for_each(|_| work.launch());
        let profiled = self.client.profile(enqueue, "window");
        let (enqueued, duration) = profiled.map_err(|error| Failure::from(format!("{error:?}")))?;
        enqueued?;
        Ok(duration)
    }
}

fn read(duration: ProfileDuration) -> u64 {
    future::block_on(duration.resolve()).duration().as_nanos() as u64
}

impl<R: Runtime> Stopwatch for Timestamps<R> {
    fn name(&self) -> &'static str {
        "timestamps"
    }

    fn overhead(&self) -> Overhead {
        Overhead::Excluded
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        let mut waiting = Vec::with_capacity(MAX_PENDING_QUERIES);
        let mut nanos = 0;
        for _ in 0..launches {
            waiting.push(self.profile(work, 1)?);
            if waiting.len() == MAX_PENDING_QUERIES {
                nanos += waiting.drain(..).map(read).sum::<u64>();
            }
        }
        Ok(Reading::Pending(Box::new(move || Ok(nanos + waiting.into_iter().map(read).sum::<u64>()))))
    }

    /// A pass without kernels is never begun and reads zero.
    fn resolution(&mut self, work: &mut dyn Work) -> Result<ClockResolution, Failure> {
        ClockResolution::from_launches(|launches| Ok(read(self.profile(work, launches)?)))
    }

    fn launch_spans(&mut self, work: &mut dyn Work, launches: u32) -> Result<Vec<LaunchSpan>, Failure> {
        let begun = Instant::now();
        let mut profiled_launches = Vec::with_capacity(launches as usize);
        for _ in 0..launches {
            let start = begun.elapsed();
            let profiled = self.profile(work, 1)?;
            let host = (start.as_nanos() as u64, (begun.elapsed() - start).as_nanos() as u64);
            profiled_launches.push((host, future::block_on(profiled.resolve())));
        }
        let Some(first) = profiled_launches.iter().map(|(_, ticks)| ticks.start_duration_since(begun)).min() else {
            return Ok(vec![]);
        };
        let device = |ticks: &ProfileTicks| {
            let start = ticks.start_duration_since(begun).saturating_sub(first);
            Some((start.as_nanos() as u64, ticks.duration().as_nanos() as u64))
        };
        Ok(profiled_launches.iter().map(|(host, ticks)| LaunchSpan { host: *host, device: device(ticks) }).collect())
    }
}
