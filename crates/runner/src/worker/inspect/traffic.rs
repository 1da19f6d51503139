//! Bytes that cases actually transfer, from hardware counters of the device's memory.

use super::finding::Facet;
use super::inspection::{InspectedCase, Inspection};
use crate::worker::group_context::GroupContext;
use crate::worker::protocol::Assignment;
use calorimeter_case::{Case, DeviceKind, Warning};
use calorimeter_timing::Failure;

/// Inspection of memory traffic for fusion patterns, whose bytes are otherwise modeled, and for profiled cases. Only
/// CUDA devices have counters that a program may read.
#[derive(Default)]
pub(super) struct TrafficInspection {
    #[cfg(feature = "native")]
    meter: Option<Result<calorimeter_timing::cuda::TrafficMeter, String>>,
}

impl Inspection for TrafficInspection {
    fn applies_to(&self, case: &Case, _: &Assignment) -> bool {
        case.device.kind() == DeviceKind::Cuda && (case.fusion.is_some() || case.profiler)
    }

    fn observes_this_process(&self) -> bool {
        true
    }

    #[cfg(feature = "native")]
    fn inspect(&mut self, subject: &mut InspectedCase<'_>, _: &mut GroupContext<'_>) -> Result<Option<Facet>, Failure> {
        use calorimeter_case::Device;
        use calorimeter_timing::cuda::TrafficMeter;
        let Device::Cuda(index) = subject.record.case.device else { return Ok(None) };
        match self.meter.get_or_insert_with(|| TrafficMeter::open(index.into())) {
            Ok(meter) => Ok(Some(Facet::Traffic(traffic_per_launch(subject, meter)?))),
            Err(why) => Err(why.clone().into()),
        }
    }

    #[cfg(not(feature = "native"))]
    fn inspect(&mut self, _: &mut InspectedCase<'_>, _: &mut GroupContext<'_>) -> Result<Option<Facet>, Failure> {
        Err("this build has no CUDA".into())
    }

    /// The counters are not active while other cases are timed.
    #[cfg(feature = "native")]
    fn release(&mut self) {
        self.meter = None;
    }

    fn failure_warning(&self, error: &Failure) -> Warning {
        Warning::missing_traffic(error)
    }
}

/// Counts whole rotations through the buffer sets, after an uncounted one. In steady state each launch writes back what
/// an earlier launch left in the cache, and leaves an equal amount there.
#[cfg(feature = "native")]
fn traffic_per_launch(
    subject: &mut InspectedCase<'_>,
    meter: &mut calorimeter_timing::cuda::TrafficMeter,
) -> Result<calorimeter_case::record::Traffic, Failure> {
    use calorimeter_timing::Work;
    const MIN_LAUNCHES: u32 = 8;
    let sets = subject.record.execution.rotation.map_or(1, |rotation| rotation.sets.max(1));
    let launches = sets * MIN_LAUNCHES.div_ceil(sets);
    let job = &mut *subject.job;
    let mut turns = || {
        (0..launches).try_for_each(|_| job.launch())?;
        job.synchronize()
    };
    turns()?;
    let counted = meter.measure(turns)?;
    let per_run = |bytes: u64| bytes as f64 / f64::from(launches);
    Ok(calorimeter_case::record::Traffic { read_bytes: per_run(counted.read), written_bytes: per_run(counted.written) })
}
