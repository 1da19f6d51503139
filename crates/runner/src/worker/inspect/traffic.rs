//! The bytes that cases really move, by the hardware counters of their device's memory.

use super::finding::Facet;
use super::inspection::{Inspection, Subject};
use crate::worker::protocol::Assignment;
use crate::worker::scene::Scene;
use calorimeter_case::{Case, DeviceKind};
use calorimeter_timing::Failure;

/// Counts for the patterns of fusion, whose bytes are otherwise a model's, and for what is profiled. Devices other than
/// CUDA's have no counters that a program may read.
#[derive(Default)]
pub struct Counting {
    #[cfg(feature = "cuda")]
    meter: Option<Result<calorimeter_timing::cuda::TrafficMeter, String>>,
}

impl Inspection for Counting {
    fn wanted(&self, case: &Case, _: &Assignment) -> bool {
        case.device.kind() == DeviceKind::Cuda && (case.fusion.is_some() || case.profiler)
    }

    #[cfg(feature = "cuda")]
    fn look(&mut self, subject: &mut Subject<'_>, _: &mut Scene<'_>) -> Result<Option<Facet>, Failure> {
        use calorimeter_case::Device;
        use calorimeter_timing::cuda::TrafficMeter;
        let Device::Cuda(index) = subject.record.case.device else { return Ok(None) };
        match self.meter.get_or_insert_with(|| TrafficMeter::open(index.into())) {
            Ok(meter) => Ok(Some(Facet::Traffic(of_one_run(subject, meter)?))),
            Err(why) => Err(why.clone().into()),
        }
    }

    #[cfg(not(feature = "cuda"))]
    fn look(&mut self, _: &mut Subject<'_>, _: &mut Scene<'_>) -> Result<Option<Facet>, Failure> {
        Err("this build has no CUDA".into())
    }

    /// What counts is not there while other cases are timed.
    #[cfg(feature = "cuda")]
    fn pause(&mut self) {
        self.meter = None;
    }

    fn lacking(&self) -> &'static str {
        "what its memory moves was not counted"
    }
}

/// Whole turns through the buffer sets, the first of them uncounted: from then on each launch writes back what an earlier
/// one left in the cache, and leaves as much there.
#[cfg(feature = "cuda")]
fn of_one_run(
    subject: &mut Subject<'_>,
    meter: &mut calorimeter_timing::cuda::TrafficMeter,
) -> Result<calorimeter_case::record::Traffic, Failure> {
    use calorimeter_timing::Work;
    const LEAST: u32 = 8;
    let sets = subject.record.execution.rotation.map_or(1, |rotation| rotation.sets.max(1));
    let launches = sets * LEAST.div_ceil(sets);
    let job = &mut *subject.job;
    let mut turns = || {
        (0..launches).try_for_each(|_| job.launch())?;
        job.settle()
    };
    turns()?;
    let counted = meter.measure(turns)?;
    let per_run = |bytes: u64| bytes as f64 / f64::from(launches);
    Ok(calorimeter_case::record::Traffic { read_bytes: per_run(counted.read), written_bytes: per_run(counted.written) })
}
