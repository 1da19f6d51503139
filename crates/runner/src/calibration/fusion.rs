//! Fusion patterns: each implementation at each size beside the same computation kernel by kernel.

use super::patterns::Pattern;
use super::peaks::kind;
use super::verdict::Verdict;
use calorimeter_sinks::record::Axes;
use calorimeter_sinks::{Record, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What fusing a pattern does at one size. The names of the first fields are those of branes-ai/graphs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FusionProfile {
    pub fusion_pattern: String,
    /// One name for each separate kernel.
    pub operators: Vec<String>,
    pub num_operators: usize,
    pub unfused_latency_ms: Option<f64>,
    pub unfused_gflops: Option<f64>,
    /// Modelled, not measured: what separate kernels must move.
    pub unfused_memory_bytes: Option<u64>,
    pub fused_latency_ms: Option<f64>,
    pub fused_gflops: Option<f64>,
    /// Modelled, not measured: what one kernel must move.
    pub fused_memory_bytes: Option<u64>,
    pub speedup_factor: Option<f64>,
    /// Modelled, not measured: the share of the bytes that one kernel need not move.
    pub memory_reduction: Option<f64>,
    pub gflops_improvement: Option<f64>,
    pub input_shape: Vec<u64>,
    /// The names of the sizes.
    pub extra_params: Axes,
    pub num_trials: u64,
    /// The fields above that come from a model of the traffic.
    pub modelled: Vec<String>,
    /// The operator as configuration files name it.
    pub operator: String,
    pub implementation: String,
    pub precision: String,
    pub speedup_lo: Option<f64>,
    pub speedup_hi: Option<f64>,
    pub verdict: Verdict,
    /// The share of the speed-up that the model of the traffic promises.
    pub predicted_saving_reached: Option<f64>,
    pub unfused_launches: Option<f64>,
    pub fused_launches: Option<f64>,
    /// Measured: what went to and from the memory, where the device's counters can be read.
    pub unfused_counted_bytes: Option<f64>,
    pub fused_counted_bytes: Option<f64>,
    /// Measured peaks of memory in use, where they were followed.
    pub unfused_peak_bytes: Option<u64>,
    pub fused_peak_bytes: Option<u64>,
    pub fused_kernel: Option<String>,
    pub status: String,
    pub reason: Option<String>,
}

/// Every pattern by operator, implementation, type, size and regime.
pub fn fusions(records: &[Record]) -> BTreeMap<String, FusionProfile> {
    let of_patterns: Vec<&Record> =
        records.iter().filter(|record| Pattern::of(&record.case.workload).is_some()).collect();
    let mut found = BTreeMap::new();
    for &fused in &of_patterns {
        let Some(pattern) = Pattern::of(&fused.case.workload) else { continue };
        let is_unfused = |record: &&&Record| {
            let (one, other) = (&record.case, &fused.case);
            one.workload == other.workload
                && one.implementation == "eager"
                && (&one.dtype, &one.shape, &one.regime) == (&other.dtype, &other.shape, &other.regime)
        };
        let Some(&unfused) = of_patterns.iter().find(is_unfused) else { continue };
        if unfused.case.id != fused.case.id {
            let case = &fused.case;
            // As in the names of cases, the usual regime is not written.
            let regime = if case.regime == "device-cold" { String::new() } else { format!("/{}", case.regime) };
            let key = format!("{}/{}/{}/{}{regime}", case.workload, case.implementation, case.dtype, case.shape);
            found.insert(key, fusion(pattern, unfused, fused));
        }
    }
    found
}

fn fusion(pattern: Pattern, unfused: &Record, fused: &Record) -> FusionProfile {
    let model = fused.case.fusion.as_ref();
    let ratio = compare(unfused, fused);
    let launches = unfused.kernel_launches.zip(fused.kernel_launches);
    let factor = ratio.as_ref().map(|ratio| ratio.middle);
    let traffic = model.filter(|model| model.fused_bytes > 0).map(|m| m.unfused_bytes as f64 / m.fused_bytes as f64);
    let (verdict, reason) = judge(unfused, fused, ratio.as_ref(), launches);
    let gflops = |record: &Record| record.tflops.map(|rate| 1e3 * rate);
    let millis = |record: &Record| record.time_ns.map(|time| time.median / 1e6);
    let improvement = |(unfused, fused): (f64, f64)| (unfused > 0.0).then(|| (fused - unfused) / unfused);
    FusionProfile {
        fusion_pattern: pattern.name.into(),
        operators: model.map(|model| model.operators.clone()).unwrap_or_default(),
        num_operators: model.map_or(0, |model| model.operators.len()),
        unfused_latency_ms: millis(unfused),
        unfused_gflops: gflops(unfused),
        unfused_memory_bytes: model.map(|model| model.unfused_bytes),
        fused_latency_ms: millis(fused),
        fused_gflops: gflops(fused),
        fused_memory_bytes: model.map(|model| model.fused_bytes),
        speedup_factor: factor,
        memory_reduction: traffic.map(|traffic| 1.0 - 1.0 / traffic),
        gflops_improvement: gflops(unfused).zip(gflops(fused)).and_then(improvement),
        input_shape: fused.case.shape.iter().map(|(_, size)| size).collect(),
        extra_params: fused.case.shape.clone(),
        num_trials: fused.windows.len() as u64,
        modelled: ["unfused_memory_bytes", "fused_memory_bytes", "memory_reduction"].map(str::to_owned).into(),
        operator: fused.case.workload.clone(),
        implementation: fused.case.implementation.clone(),
        precision: kind(fused).into(),
        speedup_lo: ratio.as_ref().and_then(|ratio| Some(ratio.interval?.0)),
        speedup_hi: ratio.as_ref().and_then(|ratio| Some(ratio.interval?.1)),
        verdict,
        predicted_saving_reached: factor
            .zip(traffic)
            .filter(|(_, traffic)| *traffic > 1.0)
            .map(|(f, t)| (f - 1.0) / (t - 1.0)),
        unfused_launches: unfused.kernel_launches,
        fused_launches: fused.kernel_launches,
        unfused_counted_bytes: unfused.traffic.map(|traffic| traffic.bytes()),
        fused_counted_bytes: fused.traffic.map(|traffic| traffic.bytes()),
        unfused_peak_bytes: unfused.peak_bytes,
        fused_peak_bytes: fused.peak_bytes,
        fused_kernel: fused.kernel.clone(),
        status: fused.status.as_str().into(),
        reason,
    }
}

/// The verdict, and what must be said beside it.
fn judge(
    unfused: &Record,
    fused: &Record,
    ratio: Option<&Ratio>,
    launches: Option<(f64, f64)>,
) -> (Verdict, Option<String>) {
    match (fused.status, unfused.status) {
        (Status::Ok, Status::Ok) if kind(unfused) != kind(fused) => {
            let reason = format!("{} against {}: not the same numbers", kind(fused), kind(unfused));
            (Verdict::Inconclusive, Some(reason))
        }
        (Status::Ok, Status::Ok) => {
            let verdict = Verdict::of(ratio.and_then(|ratio| ratio.interval), launches);
            let unseen = "the clock does not see kernels: whether fewer ran is not known";
            (verdict, launches.is_none().then(|| unseen.into()))
        }
        (Status::Ok, _) => {
            let why = unfused.reason.clone().unwrap_or_else(|| unfused.status.to_string());
            (Verdict::Inconclusive, Some(format!("the unfused side has no time: {why}")))
        }
        (Status::Unsupported | Status::Skipped, _) => (Verdict::Unsupported, fused.reason.clone()),
        _ => (Verdict::Failed, fused.reason.clone()),
    }
}

struct Ratio {
    middle: f64,
    interval: Option<(f64, f64)>,
}

/// How many times faster, where the two sides took turns.
fn compare(unfused: &Record, fused: &Record) -> Option<Ratio> {
    let speedup = fused.speedup.as_ref().filter(|speedup| speedup.vs == unfused.case.id)?;
    Some(Ratio { middle: speedup.ratio, interval: speedup.lo.zip(speedup.hi) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::peaks::tests::record;
    use calorimeter_sinks::record::{FusionModel, Speedup};

    fn arm(operator: &str, implementation: &str, bytes: u64, launches: Option<f64>) -> Record {
        let mut arm = record("fusion", operator, 2_000, bytes);
        arm.case.id = format!("{operator}/{implementation}/{bytes}");
        arm.case.implementation = implementation.into();
        let operators = vec!["matmul".into(), "add".into()];
        arm.case.fusion = Some(FusionModel { operators, unfused_bytes: 300, fused_bytes: 100 });
        arm.kernel_launches = launches;
        arm
    }

    fn against(mut fused: Record, unfused: &Record, (lo, ratio, hi): (f64, f64, f64)) -> Record {
        let (vs, verdict) = (unfused.case.id.clone(), "FASTER".into());
        fused.speedup = Some(Speedup { vs, ratio, lo: Some(lo), hi: Some(hi), verdict, ..Speedup::default() });
        fused
    }

    #[test]
    fn a_pattern_has_an_entry_for_each_size_and_implementation() {
        let (small, large) = (arm("linear_bias", "eager", 64, None), arm("linear_bias", "eager", 128, None));
        let fused = against(arm("linear_bias", "fused", 64, None), &small, (1.9, 2.0, 2.1));
        let mut native = Record::new(arm("linear_bias", "native", 128, None).case, Status::Unsupported);
        native.reason = Some("no kernel".into());
        let found = fusions(&[small, large, fused, native]);
        let keys: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(keys, ["linear_bias/fused/f32/n64", "linear_bias/native/f32/n128"]);
        let (fused, native) = (&found[keys[0]], &found[keys[1]]);
        assert_eq!((fused.verdict, fused.speedup_lo, fused.num_operators), (Verdict::Strong, Some(1.9), 2));
        // Twice as fast where a third of the traffic is left.
        assert_eq!(fused.predicted_saving_reached, Some(0.5));
        assert!((fused.memory_reduction.unwrap() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!((native.verdict, native.reason.as_deref()), (Verdict::Unsupported, Some("no kernel")));
    }

    #[test]
    fn another_regime_is_another_entry() {
        let (cold, mut hot) = (arm("linear_bias", "eager", 64, None), arm("linear_bias", "eager", 64, None));
        let (fused, mut fused_hot) = (arm("linear_bias", "fused", 64, None), arm("linear_bias", "fused", 64, None));
        for record in [&mut hot, &mut fused_hot] {
            record.case.id += "/device-hot";
            record.case.regime = "device-hot".into();
        }
        let found = fusions(&[cold, hot, fused, fused_hot]);
        let keys: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(keys, ["linear_bias/fused/f32/n64", "linear_bias/fused/f32/n64/device-hot"]);
    }

    #[test]
    fn fewer_kernels_must_have_run() {
        let unfused = arm("linear_bias", "eager", 64, Some(2.0));
        let fused = |launches| against(arm("linear_bias", "fused", 64, Some(launches)), &unfused, (1.9, 2.0, 2.1));
        for (launches, verdict) in [(2.0, Verdict::NotFused), (1.0, Verdict::Strong)] {
            let found = fusions(&[unfused.clone(), fused(launches)]);
            assert_eq!(found["linear_bias/fused/f32/n64"].verdict, verdict);
        }
    }
}
