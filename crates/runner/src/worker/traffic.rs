//! The bytes that cases really move, by the hardware counters of their device's memory, after everything was timed.

use super::bench::{Hear, Poisoned};
use super::ready::Ready;

/// Counts for the patterns of fusion, whose bytes are otherwise a model's, and for what is profiled. Where a GPU has
/// counters that cannot be read the record says why; other devices have none that a program may read.
#[cfg(feature = "cuda")]
pub fn count(ready: &mut [Ready], hear: &mut dyn Hear) -> Result<(), Poisoned> {
    use super::bench::guarded;
    use super::protocol::Stage;
    use calorimeter_sinks::Status;
    use calorimeter_timing::cuda::TrafficMeter;
    use calorimeter_zoo::Device;
    let mut meter = None;
    for one in ready {
        let case = &one.record.case;
        let (Device::Cuda(index), Status::Ok) = (case.device, one.record.outcome.status) else { continue };
        if case.fusion.is_none() && !case.profiler {
            continue;
        }
        hear.touch(one.case, Stage::Profile);
        let meter = meter.get_or_insert_with(|| TrafficMeter::open(index.into()));
        let counted = match meter {
            Ok(meter) => guarded(one.case, || of_one_run(one, meter))?.map_err(|error| error.to_string()),
            Err(why) => Err(why.clone()),
        };
        match counted {
            Ok(traffic) => one.record.traffic = Some(traffic),
            Err(why) => one.record.outcome.warnings.push(format!("what its memory moves was not counted: {why}")),
        }
    }
    Ok(())
}

#[cfg(not(feature = "cuda"))]
pub fn count(_: &mut [Ready], _: &mut dyn Hear) -> Result<(), Poisoned> {
    Ok(())
}

/// Whole turns through the buffer sets, the first of them uncounted: from then on each launch writes back what an earlier
/// one left in the cache, and leaves as much there.
#[cfg(feature = "cuda")]
fn of_one_run(
    one: &mut Ready,
    meter: &mut calorimeter_timing::cuda::TrafficMeter,
) -> Result<calorimeter_sinks::record::Traffic, calorimeter_timing::Failure> {
    use calorimeter_timing::Work;
    const LEAST: u32 = 8;
    let sets = one.record.execution.rotation.map_or(1, |rotation| rotation.sets.max(1));
    let launches = sets * LEAST.div_ceil(sets);
    let job = &mut one.job;
    let mut turns = || {
        (0..launches).try_for_each(|_| job.launch())?;
        job.settle()
    };
    turns()?;
    let counted = meter.measure(turns)?;
    let per_run = |bytes: u64| bytes as f64 / f64::from(launches);
    Ok(calorimeter_sinks::record::Traffic {
        read_bytes: per_run(counted.read),
        written_bytes: per_run(counted.written),
    })
}
