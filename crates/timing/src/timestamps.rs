//! The device's own timestamps around a window, through CubeCL.

use crate::{Failure, Overhead, Reading, Stopwatch, Work};
use cubecl::profile::TimingMethod;
use cubecl::{Runtime, client::ComputeClient, future};

/// Timestamp queries at the edges of a window.
pub struct Timestamps<R: Runtime> {
    client: ComputeClient<R>,
}

impl<R: Runtime> Timestamps<R> {
    /// The device's clock, or `None` where the runtime would answer with wall time.
    pub fn new(client: ComputeClient<R>) -> Option<Self> {
        let (_, probe) = client.profile(|| (), "probe").ok()?;
        (probe.timing_method() == TimingMethod::Device).then_some(Self { client })
    }
}

impl<R: Runtime> Stopwatch for Timestamps<R> {
    fn name(&self) -> &'static str {
        "timestamps"
    }

    fn overhead(&self) -> Overhead {
        Overhead::Outside
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        let enqueue = || -> Result<(), Failure> {
            for _ in 0..launches {
                work.launch()?;
            }
            Ok(())
        };
        let (enqueued, profile) =
            self.client.profile(enqueue, "window").map_err(|error| Failure::from(format!("{error:?}")))?;
        enqueued?;
        Ok(Reading::Later(Box::new(move || Ok(future::block_on(profile.resolve()).duration().as_nanos() as u64))))
    }
}
