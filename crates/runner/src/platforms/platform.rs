//! What a platform is.

use super::trials::Trials;
use super::{memory, others};
use crate::devices::DiscoveredDevice;
use crate::peaks::ProductKind;
use crate::worker::DeviceFacts;
use calorimeter_case::{Device, Implementation};
use calorimeter_kernels::probes::Probes;
use calorimeter_shapes::Shape;
use calorimeter_timing::memory::Timeline;
use calorimeter_timing::telemetry::{ClockLock, CounterValues, Source};
use calorimeter_timing::{Failure, Stopwatch, WallClock, Work};
use calorimeter_zoo::{DeviceKind, Machines, Setup};
use std::fmt::Debug;
use std::time::Duration;

/// A stopwatch, with a remark where it is not the one that should be.
pub type Choice = (Box<dyn Stopwatch>, Option<String>);

/// What drives devices of some kinds: how they are found, timed and looked at. Most devices agree on the rest.
pub trait Platform: Debug + Send + Sync {
    /// The kinds of its devices.
    fn kinds(&self) -> &'static [DeviceKind];

    /// Its devices on this machine, the best first; none is opened.
    fn find(&self) -> Vec<DiscoveredDevice>;

    /// What `doctor` says besides: which libraries are there, and how to get what is missing if no device was found.
    fn advice(&self, _found: bool) -> String {
        String::new()
    }

    /// The stopwatch for times on the device.
    fn stopwatch(&self, _: Setup, _: &mut Machines, _: &mut dyn Work) -> Result<Choice, Failure> {
        Ok((Box::new(WallClock::slope()), None))
    }

    /// What `doctor` calls it; no device is touched.
    fn clock(&self) -> String {
        "slope".into()
    }

    /// Whether launches of an implementation can be captured in a graph that is replayed.
    fn has_graphs(&self, _: Implementation) -> bool {
        false
    }

    /// The stopwatch for such graphs.
    fn graph_stopwatch(&self, _: Setup, _: &mut Machines) -> Result<Choice, Failure> {
        Err("only cuda has graphs".into())
    }

    /// Another clock on the device for the same work, where there is one: `doctor --deep` compares the two.
    fn other_stopwatch(&self, _: Setup, _: &mut Machines) -> Result<Option<Box<dyn Stopwatch>>, Failure> {
        Ok(None)
    }

    /// Whether work has been done when its launch returns.
    fn is_synchronous(&self) -> bool {
        false
    }

    /// Whether nothing is computed, and times come from a script.
    fn is_scripted(&self) -> bool {
        false
    }

    /// Whether its kernels are seen by no clock, and are looked at in a worker of their own.
    fn hides_kernels(&self) -> bool {
        false
    }

    /// Its sensors, or why there are none.
    fn sensors(&self, device: Device, _: &DeviceFacts) -> Result<Box<dyn Source>, String> {
        Err(format!("no sensors of {device} are known"))
    }

    /// Who else uses a device at this moment, a line for each, or why it cannot be known. Our workers are nobody else.
    fn others(&self, device: Device, facts: &DeviceFacts) -> Result<Vec<String>, String> {
        others::between_two_looks(self.sensors(device, facts)?.as_mut())
    }

    /// The lock on a device's clock, or why it has none. Nothing is locked yet.
    fn clock_lock(&self, device: Device, _: &DeviceFacts) -> Result<Box<dyn ClockLock>, String> {
        Err(format!("this program cannot lock the clock of {device}: set it beforehand, or leave it out"))
    }

    /// What its own counters say of some launches, where they can be read.
    fn counters(&self, _: &mut dyn Work, _launches: u32) -> Option<CounterValues> {
        None
    }

    /// Small computations of known cost, for peaks and `doctor --deep`.
    fn probes(&self, device: Device, _: &mut Machines) -> Result<Box<dyn Probes>, Failure> {
        Err(format!("there are no probes for {device} in this build").into())
    }

    /// Whose kernels they are, which decides on their clock.
    fn probed_by(&self) -> Implementation {
        Implementation::Eager
    }

    /// Whose products are tried, where the fastest is the peak.
    fn multiplied_by(&self) -> Vec<Implementation> {
        vec![self.probed_by()]
    }

    /// A product of a kind of number that no model asks for.
    fn product(
        &self,
        _kind: ProductKind,
        _form: Shape,
        _: Device,
        _: &mut Machines,
    ) -> Option<Result<Box<dyn Work>, Failure>> {
        None
    }

    /// Whether products are tuned when they first run, which takes seconds.
    fn tunes(&self) -> bool {
        false
    }

    /// What a device is tried with; one may be imitated by software.
    fn trials(&self, _software: bool) -> Trials {
        Trials::default()
    }

    /// Bytes of a buffer, and how many of them go in turn, so that a cache of this size holds nothing worth mentioning.
    fn beyond_the_cache(&self, cache_bytes: u64) -> (u64, u32) {
        let largest = self.trials(false).largest_buffer;
        (largest, (4 * cache_bytes / largest + 1).min(16) as u32)
    }

    /// Whether others use its memory, too.
    fn shares_memory(&self, software: bool) -> bool {
        software
    }

    /// Bytes that are free on a device, where it can be asked.
    fn free_memory(&self, device: Device, machines: &mut Machines) -> Option<u64> {
        machines.free_memory(device)
    }

    /// Follows the memory of a case through some passes.
    fn follow(&self, setup: Setup, patience: Duration, run: &mut memory::Passes<'_>) -> Result<Timeline, Failure> {
        memory::from_the_pool(setup.device, memory::until(setup.device, patience, run)?, run)
    }
}
