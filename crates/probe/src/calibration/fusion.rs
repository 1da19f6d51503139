//! Fusion patterns: fused implementations compared with separate kernels, by size.

use super::compute_precision::ComputePrecision;
use super::fusion_verdict::FusionVerdict;
use super::patterns::Pattern;
use calorimeter_case::Axes;
use calorimeter_case::{Implementation, Regime};
use calorimeter_sinks::{Record, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Effect of fusing a pattern at one size. The names of the first fields are those of branes-ai/graphs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FusionProfile {
    pub fusion_pattern: String,
    /// Names of the separate kernels.
    pub operators: Vec<String>,
    /// Operations, followed by the modeled traffic under short names.
    pub flops: Option<u64>,
    pub unfused_bytes: Option<u64>,
    pub fused_bytes: Option<u64>,
    pub num_operators: usize,
    pub unfused_latency_ms: Option<f64>,
    pub unfused_gflops: Option<f64>,
    /// Modeled traffic of separate kernels.
    pub unfused_memory_bytes: Option<u64>,
    pub fused_latency_ms: Option<f64>,
    pub fused_gflops: Option<f64>,
    /// Modeled traffic of one fused kernel.
    pub fused_memory_bytes: Option<u64>,
    pub speedup_factor: Option<f64>,
    /// Modeled fraction of the traffic that fusing saves.
    pub memory_reduction: Option<f64>,
    pub gflops_improvement: Option<f64>,
    pub input_shape: Vec<u64>,
    /// Sizes by axis name.
    pub extra_params: Axes,
    pub num_trials: u64,
    /// Names of the modeled fields.
    pub modeled: Vec<String>,
    /// Operator name as in configuration files.
    pub operator: String,
    pub implementation: String,
    pub precision: String,
    pub speedup_lo: Option<f64>,
    pub speedup_hi: Option<f64>,
    pub verdict: FusionVerdict,
    /// Fraction of the modeled speed-up that was reached.
    pub predicted_saving_reached: Option<f64>,
    pub unfused_launches: Option<f64>,
    pub fused_launches: Option<f64>,
    /// Measured traffic to and from memory, if the device's counters are readable.
    pub unfused_counted_bytes: Option<f64>,
    pub fused_counted_bytes: Option<f64>,
    /// Measured peak memory in use, if it was profiled.
    pub unfused_peak_bytes: Option<u64>,
    pub fused_peak_bytes: Option<u64>,
    pub fused_kernel: Option<String>,
    pub status: String,
    pub reason: Option<String>,
}

const MODELED: [&str; 5] =
    ["unfused_bytes", "fused_bytes", "unfused_memory_bytes", "fused_memory_bytes", "memory_reduction"];

/// Builds all fusion profiles, by operator, implementation, dtype, size and regime.
pub fn fusion_profiles(records: &[Record]) -> BTreeMap<String, FusionProfile> {
    let patterns = || records.iter().filter(|record| record.case.fusion.is_some());
    let mut found = BTreeMap::new();
    for fused in patterns().filter(|record| record.case.implementation != UNFUSED) {
        let case = &fused.case;
        let unfused = patterns().find(|record| {
            let other = &record.case;
            other.implementation == UNFUSED
                && (&other.workload, &other.element, &other.shape, &other.regime)
                    == (&case.workload, &case.element, &case.shape, &case.regime)
        });
        // As in case ids, the default regime is omitted.
        let regime = if case.regime == Regime::default() { String::new() } else { format!("/{}", case.regime) };
        let key = format!("{}/{}/{}/{}{regime}", case.workload, case.implementation, case.element, case.shape);
        found.insert(key, fusion_profile(unfused, fused));
    }
    found
}

/// Implementation that runs each step as a separate kernel.
const UNFUSED: Implementation = Implementation::Eager;

fn fusion_profile(unfused: Option<&Record>, fused: &Record) -> FusionProfile {
    let model = fused.case.fusion.as_ref();
    let ratio = unfused.and_then(|unfused| interleaved_speedup(unfused, fused));
    let unfused_launches = unfused.and_then(|unfused| unfused.execution.kernel_launches);
    let factor = ratio.as_ref().map(|ratio| ratio.middle);
    let traffic = model.filter(|model| model.fused_bytes > 0).map(|m| m.unfused_bytes as f64 / m.fused_bytes as f64);
    let (verdict, reason) = judge(unfused, fused, ratio.as_ref());
    let gflops = |record: &Record| record.rates.tflops.map(|rate| 1e3 * rate);
    let millis = |record: &Record| record.time.time_ns.map(|time| time.median / 1e6);
    let counted = |record: &Record| record.traffic.map(|traffic| traffic.bytes());
    let improvement = |(unfused, fused): (f64, f64)| (unfused > 0.0).then(|| (fused - unfused) / unfused);
    FusionProfile {
        fusion_pattern: Pattern::for_operator(fused.case.workload.as_str())
            .map_or(fused.case.workload.as_str(), |it| it.name)
            .into(),
        operators: model.map(|model| model.operators.clone()).unwrap_or_default(),
        flops: fused.case.flops,
        unfused_bytes: model.map(|model| model.unfused_bytes),
        fused_bytes: model.map(|model| model.fused_bytes),
        num_operators: model.map_or(0, |model| model.operators.len()),
        unfused_latency_ms: unfused.and_then(millis),
        unfused_gflops: unfused.and_then(gflops),
        unfused_memory_bytes: model.map(|model| model.unfused_bytes),
        fused_latency_ms: millis(fused),
        fused_gflops: gflops(fused),
        fused_memory_bytes: model.map(|model| model.fused_bytes),
        speedup_factor: factor,
        memory_reduction: traffic.map(|traffic| 1.0 - 1.0 / traffic),
        gflops_improvement: unfused.and_then(gflops).zip(gflops(fused)).and_then(improvement),
        input_shape: fused.case.shape.iter().map(|(_, size)| size).collect(),
        extra_params: fused.case.shape.clone(),
        num_trials: fused.time.windows.len() as u64,
        modeled: MODELED.map(str::to_owned).into(),
        operator: fused.case.workload.to_string(),
        implementation: fused.case.implementation.to_string(),
        precision: ComputePrecision::from(fused).to_string(),
        speedup_lo: ratio.as_ref().and_then(|ratio| Some(ratio.interval?.0)),
        speedup_hi: ratio.as_ref().and_then(|ratio| Some(ratio.interval?.1)),
        verdict,
        predicted_saving_reached: factor
            .zip(traffic)
            .filter(|(_, traffic)| *traffic > 1.0)
            .map(|(f, t)| (f - 1.0) / (t - 1.0)),
        unfused_launches,
        fused_launches: fused.execution.kernel_launches,
        unfused_counted_bytes: unfused.and_then(counted),
        fused_counted_bytes: counted(fused),
        unfused_peak_bytes: unfused.and_then(|unfused| unfused.footprint.peak_bytes),
        fused_peak_bytes: fused.footprint.peak_bytes,
        fused_kernel: fused.execution.kernel.clone(),
        status: fused.outcome.status.as_str().into(),
        reason,
    }
}

/// Returns the verdict and a reason or remark.
fn judge(unfused: Option<&Record>, fused: &Record, ratio: Option<&SpeedupInterval>) -> (FusionVerdict, Option<String>) {
    let inconclusive = |why: String| (FusionVerdict::Inconclusive, Some(why));
    match (fused.outcome.status, unfused) {
        (Status::Unsupported | Status::Skipped, _) => {
            return (FusionVerdict::Unsupported, fused.outcome.reason.clone());
        }
        (Status::Ok, _) => {}
        _ => return (FusionVerdict::Failed, fused.outcome.reason.clone()),
    }
    let Some(unfused) = unfused else {
        return inconclusive(format!("the unfused implementation `{UNFUSED}` was not requested"));
    };
    if unfused.outcome.status != Status::Ok {
        let why = unfused.outcome.reason.clone().unwrap_or_else(|| unfused.outcome.status.to_string());
        return inconclusive(format!("no unfused time: {why}"));
    }
    let (own, theirs) = (ComputePrecision::from(fused), ComputePrecision::from(unfused));
    if own != theirs {
        return inconclusive(format!("different precisions: {own} fused, {theirs} unfused"));
    }
    if let (Some(theirs), Some(own)) = (&unfused.execution.stopwatch, &fused.execution.stopwatch)
        && theirs != own
    {
        return inconclusive(format!("different stopwatches: {own} fused, {theirs} unfused"));
    }
    let launches = unfused.execution.kernel_launches.zip(fused.execution.kernel_launches);
    let verdict = FusionVerdict::from_interval(ratio.and_then(|ratio| ratio.interval), launches);
    let uncounted = "the stopwatch does not count kernels, so it is unknown whether fusion reduced them";
    (verdict, launches.is_none().then(|| uncounted.into()))
}

struct SpeedupInterval {
    middle: f64,
    interval: Option<(f64, f64)>,
}

/// Speed-up from the interleaved measurement of the two cases, if there is one.
fn interleaved_speedup(unfused: &Record, fused: &Record) -> Option<SpeedupInterval> {
    let speedup = fused.speedup.as_ref().filter(|speedup| speedup.vs == unfused.case.id)?;
    Some(SpeedupInterval { middle: speedup.ratio, interval: speedup.lo.zip(speedup.hi) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::part::CalibrationPart;
    use crate::calibration::peaks::tests::record;
    use calorimeter_case::FusionModel;
    use calorimeter_case::record::Speedup;

    fn arm(operator: &str, implementation: &str, bytes: u64, launches: Option<f64>) -> Record {
        let mut arm = record(CalibrationPart::Fusion, operator, 2_000, bytes);
        arm.case.id = format!("{operator}/{implementation}/{bytes}").into();
        arm.case.implementation = implementation.parse().unwrap();
        let operators = vec!["matmul".into(), "add".into()];
        arm.case.fusion = Some(Box::new(FusionModel { operators, unfused_bytes: 300, fused_bytes: 100 }));
        arm.execution.kernel_launches = launches;
        arm
    }

    fn against(mut fused: Record, unfused: &Record, (lo, ratio, hi): (f64, f64, f64)) -> Record {
        let (vs, verdict) = (unfused.case.id.clone(), calorimeter_case::Verdict::Faster);
        fused.speedup = Some(Speedup { vs, ratio, lo: Some(lo), hi: Some(hi), verdict, ..Speedup::default() });
        fused
    }

    #[test]
    fn profiles_per_size_and_implementation() {
        let (small, large) = (arm("linear_bias", "eager", 64, None), arm("linear_bias", "eager", 128, None));
        let fused = against(arm("linear_bias", "fused", 64, None), &small, (1.9, 2.0, 2.1));
        let mut native = Record::new(arm("linear_bias", "native", 128, None).case, Status::Unsupported);
        native.outcome.reason = Some("no kernel".into());
        let found = fusion_profiles(&[small, large, fused, native]);
        let keys: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(keys, ["linear_bias/fused/f32/n64", "linear_bias/native/f32/n128"]);
        let (fused, native) = (&found[keys[0]], &found[keys[1]]);
        assert_eq!((fused.verdict, fused.speedup_lo, fused.num_operators), (FusionVerdict::Strong, Some(1.9), 2));
        // Traffic is reduced to a third, and the time to half.
        assert_eq!(fused.predicted_saving_reached, Some(0.5));
        assert!((fused.memory_reduction.unwrap() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!((native.verdict, native.reason.as_deref()), (FusionVerdict::Unsupported, Some("no kernel")));
    }

    #[test]
    fn different_stopwatches_or_missing_unfused_are_inconclusive() {
        let mut unfused = arm("linear_bias", "eager", 64, None);
        let mut fused = against(arm("linear_bias", "fused", 64, None), &unfused, (1.9, 2.0, 2.1));
        unfused.execution.stopwatch = Some("timestamps".into());
        fused.execution.stopwatch = Some("slope".into());
        let first = |records: &[Record]| fusion_profiles(records).into_values().next().unwrap();
        let found = first(&[unfused, fused.clone()]);
        assert_eq!(found.verdict, FusionVerdict::Inconclusive);
        assert_eq!(found.reason.as_deref(), Some("different stopwatches: slope fused, timestamps unfused"));
        let single = first(&[fused]);
        assert_eq!((single.verdict, single.unfused_latency_ms), (FusionVerdict::Inconclusive, None));
        assert_eq!((single.flops, single.unfused_bytes, single.fused_bytes), (Some(2_000), Some(300), Some(100)));
    }

    #[test]
    fn regimes_have_separate_profiles() {
        let (cold, mut hot) = (arm("linear_bias", "eager", 64, None), arm("linear_bias", "eager", 64, None));
        let (fused, mut fused_hot) = (arm("linear_bias", "fused", 64, None), arm("linear_bias", "fused", 64, None));
        for record in [&mut hot, &mut fused_hot] {
            record.case.id = format!("{}/device-hot", record.case.id).into();
            record.case.regime = Regime::DeviceHot;
        }
        let found = fusion_profiles(&[cold, hot, fused, fused_hot]);
        let keys: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(keys, ["linear_bias/fused/f32/n64", "linear_bias/fused/f32/n64/device-hot"]);
    }

    #[test]
    fn equal_launch_counts_are_not_fused() {
        let unfused = arm("linear_bias", "eager", 64, Some(2.0));
        let fused = |launches| against(arm("linear_bias", "fused", 64, Some(launches)), &unfused, (1.9, 2.0, 2.1));
        for (launches, verdict) in [(2.0, FusionVerdict::NotFused), (1.0, FusionVerdict::Strong)] {
            let found = fusion_profiles(&[unfused.clone(), fused(launches)]);
            assert_eq!(found["linear_bias/fused/f32/n64"].verdict, verdict);
        }
    }
}
