//! JSON representation of records.

use crate::samples::{bare, full};
use calorimeter_case::{Axes, Case, Device, Name, Regime, Verdict, Warning};
use calorimeter_sinks::record::{
    Accuracy, Estimate, Footprint, Outcome, Preparation, Rates, Record, Roofline, RooflineBound, Speedup, Status, Time,
    Tuning, Weights, WindowRecord, finite,
};
use proptest::prelude::*;

#[test]
fn unmeasured_fields_are_omitted() {
    let json = serde_json::to_string(&bare("a/b")).unwrap();
    assert_eq!(
        json,
        r#"{"id":"a/b","mode":"inference","workload":"","recipe":"baseline","implementation":"eager","device":"cpu","#
            .to_owned()
            + r#""dtype":"f32","shape_name":"","shape":{"batch":8,"m":2},"regime":"device-cold","status":"crashed"}"#
    );
    assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), bare("a/b"));
}

#[test]
fn non_finite_numbers_are_omitted() {
    let mut record = bare("a");
    let before = serde_json::to_string(&record).unwrap();
    record.rates.tflops = Some(f64::INFINITY);
    record.time.time_ns = Some(Estimate { median: f64::NAN, lo: Some(1.0), hi: None });
    record.rates.roofline =
        Some(Roofline { bound: RooflineBound::Memory, percent: f64::NAN, ..Roofline::default() }.into());
    record.speedup = Some(Speedup {
        vs: "b".into(),
        ratio: f64::INFINITY,
        lo: None,
        hi: None,
        verdict: Verdict::Faster,
        ..Speedup::default()
    });
    assert_eq!(serde_json::to_string(&record).unwrap(), before);
    record.accuracy = Some(Accuracy { sqnr_db: Some(f64::INFINITY), rel_l2: Some(0.0), ..Accuracy::default() }.into());
    let read: Record = serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
    assert_eq!(read.accuracy, Some(Accuracy { rel_l2: Some(0.0), ..Accuracy::default() }.into()));
    assert!(read.accuracy.unwrap().is_exact());
}

#[test]
fn unknown_fields_are_ignored() {
    let json = serde_json::to_string(&full("a")).unwrap();
    let newer = json.replacen('{', "{\"power_watts\":700,", 1).replace("\"lo\":", "\"p99\":[1],\"lo\":");
    assert_eq!(serde_json::from_str::<Record>(&newer).unwrap(), full("a"));
}

#[test]
fn axes_keep_order_and_are_unique() {
    let twice = serde_json::from_str::<Axes>(r#"{"seq":4,"batch":2,"seq":8}"#).unwrap_err().to_string();
    assert!(twice.starts_with("seq "), "{twice}");
    let axes: Axes = serde_json::from_str(r#"{"seq":8,"batch":2}"#).unwrap();
    assert_eq!(axes.to_string(), "seq8-batch2");
    assert_eq!((axes.get("seq"), axes.get("dim")), (Some(8), None));
}

prop_compose! {
    fn estimates()(median in any::<f64>(), lo in any::<Option<f64>>(), hi in any::<Option<f64>>()) -> Option<Estimate> {
        finite(median).map(|median| Estimate { median, lo: lo.and_then(finite), hi: hi.and_then(finite) })
    }
}

prop_compose! {
    fn records()(
        texts in prop::array::uniform4(any::<String>()),
        device in prop::sample::select(vec![Device::Cuda(0), Device::Vulkan(7), Device::Cpu]),
        regime in prop::sample::select(Regime::ALL.to_vec()),
        reason in any::<Option<String>>(),
        axes in prop::collection::vec((any::<String>(), any::<u64>()), 0..5),
        flops in any::<Option<u64>>(),
        flags in any::<(bool, bool, bool, Option<bool>)>(),
        status in prop::sample::select(Status::ALL.to_vec()),
        time_ns in estimates(),
        windows in prop::collection::vec(any::<(u32, u64)>(), 0..5),
        numbers in prop::array::uniform7(any::<Option<f64>>()),
        counts in prop::array::uniform7(any::<Option<u64>>()),
        warnings in prop::collection::vec(any::<String>(), 0..3),
    ) -> Record {
        let [id, name, recipe, shape_name] = texts;
        let [tflops, gbps, percent, sqnr_db, rel_l2, ratio, lo] = numbers.map(|number| number.and_then(finite));
        let [weight_bytes, baseline_weight_bytes, quantise_ns, peak_bytes, prime_ns, tuned, granularity_ns] = counts;
        Record { case: Case {
                id: id.into(),
                recipe: recipe.into(),
                name, device, shape_name, regime, flops,
                sparsity: reason.clone().map(Name::from),
                shape: axes.into_iter().collect(),
                implied: flags.0,
                profiler: flags.1,
                memory_profiler: flags.2,
                ..Case::default()
            }, speedup: ratio.map(|ratio| Speedup { vs: "b".into(), ratio, lo, hi: None, verdict: Verdict::Same, ..Speedup::default() }), accuracy: flags.0.then(|| Accuracy { sqnr_db, rel_l2, ..Accuracy::default() }.into()), time: Time { time_ns, windows: windows.into_iter().map(|(launches, nanos)| WindowRecord { launches, nanos, ..WindowRecord::default() }).collect(), converged: flags.3, ..Time::default() }, rates: Rates { tflops, gbps, roofline: percent.map(|percent| Roofline { bound: RooflineBound::Compute, percent, ..Roofline::default() }.into()) }, weights: Weights { weight_bytes, baseline_weight_bytes, quantise_ns }, footprint: Footprint { peak_bytes, ..Footprint::default() }, preparation: Preparation { prime_ns, granularity_ns, tuning: tuned.map(|nanos| Tuning { nanos, events: 1 }), ..Preparation::default() }, warnings: warnings.into_iter().map(Warning::from).collect(), outcome: Outcome { stderr_tail: reason.clone(), reason, ..status.into() }, ..Record::new(Case::default(), status) }
    }
}

proptest! {
    #[test]
    fn records_round_trip_exactly(record in records()) {
        let json = serde_json::to_string(&record).unwrap();
        prop_assert!(!json.contains('\n'));
        prop_assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record);
    }
}
