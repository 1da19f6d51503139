//! Combination of several records of a case.

use calorimeter_case::record::Estimate;
use calorimeter_case::{Record, Warning};
use calorimeter_timing::{ReplicateMean, Verdict};

/// Combines the records of several processes.
pub(super) fn combine_processes(records: Vec<Record>) -> Option<Record> {
    let (mut record, times) = combine(records)?;
    record.time.of_processes_ns = times;
    Some(record)
}

/// Combines the records of several buffer placements; converged if their interval meets the precision.
pub(super) fn combine_placements(records: Vec<Record>, precision: f64) -> Option<Record> {
    let (mut record, times) = combine(records)?;
    if times.is_empty() {
        return Some(record);
    }
    record.time.of_places_ns = times;
    let narrow = |middle: f64, lo: Option<f64>, hi: Option<f64>| {
        lo.zip(hi).is_some_and(|(lo, hi)| (hi - lo) / 2.0 <= precision * middle)
    };
    let time = record.time.time_ns.is_some_and(|time| narrow(time.median, time.lo, time.hi));
    let ratio = record.speedup.as_ref().is_none_or(|ratio| narrow(ratio.ratio, ratio.lo, ratio.hi));
    record.time.converged = Some(time && ratio);
    Some(record)
}

/// Combines records: returns the first failed one, or the median one with time, rates and speed-up replaced by those
/// over all records. Other fields, such as windows and telemetry, stay those of the median record. Also returns the
/// times of all records, if there are several and each has one.
fn combine(mut records: Vec<Record>) -> Option<(Record, Vec<f64>)> {
    if let Some(at) = records.iter().position(|record| !record.is_ok()) {
        return Some((records.swap_remove(at), Vec::new()));
    }
    let time = |record: &Record| record.time.time_ns.map_or(f64::NAN, |time| time.median);
    let times: Vec<f64> = records.iter().map(time).collect();
    records.sort_by(|a, b| time(a).total_cmp(&time(b)));
    let ratios: Vec<f64> = records.iter().filter_map(|record| Some(record.speedup.as_ref()?.ratio)).collect();
    let converged = records.iter().all(|record| record.time.converged == Some(true));
    let warnings = records.iter().flat_map(|record| record.warnings.iter().cloned()).collect();
    let all = records.len();
    let mut record = records.swap_remove(all / 2);
    (record.warnings, record.time.converged) = (warnings, Some(converged));
    let across = ReplicateMean::from_values(&times);
    if let Some(across) = across {
        let faster = time(&record) / across.mean;
        record.time.time_ns = Some(Estimate { median: across.mean, lo: Some(across.lo), hi: Some(across.hi) });
        for rate in [&mut record.rates.tflops, &mut record.rates.gbps].into_iter().flatten() {
            *rate *= faster;
        }
        if let Some(roof) = &mut record.rates.roofline {
            roof.percent *= faster;
            for percent in [&mut roof.compute_percent, &mut roof.memory_percent].into_iter().flatten() {
                *percent *= faster;
            }
        }
    }
    if ratios.len() == all {
        if let (Some(across), Some(speedup)) = (ReplicateMean::from_values(&ratios), &mut record.speedup) {
            (speedup.ratio, speedup.lo, speedup.hi) = (across.mean, Some(across.lo), Some(across.hi));
            let margin = speedup.margin.unwrap_or_default();
            speedup.verdict = Verdict::from_interval(speedup.lo, speedup.hi, margin);
            speedup.rounds_needed = None;
        }
    } else if !ratios.is_empty() {
        record.speedup = None;
        record.warnings.push(Warning::missing_speedup("some measurements have none"));
    }
    Some((record, if across.is_some() { times } else { Vec::new() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::record::Speedup;
    use calorimeter_case::{Case, Status};

    fn record(nanos: f64, ratio: f64) -> Record {
        let mut record = Record::new(Case::default(), Status::Ok);
        record.time.time_ns = Some(Estimate { median: nanos, lo: Some(nanos * 0.999), hi: Some(nanos * 1.001) });
        record.time.converged = Some(true);
        record.rates.gbps = Some(1e6 / nanos);
        record.speedup = Some(Speedup { ratio, margin: Some(0.02), verdict: Verdict::Faster, ..Speedup::default() });
        record
    }

    #[test]
    fn interval_covers_disagreeing_processes() {
        let record = combine_processes(vec![record(1040.0, 1.00), record(960.0, 1.08), record(1000.0, 1.04)]).unwrap();
        let time = record.time.time_ns.unwrap();
        assert!(
            (time.median - 1000.0).abs() < 2.0 && time.lo.unwrap() < 960.0 && time.hi.unwrap() > 1040.0,
            "{time:?}"
        );
        assert_eq!(record.time.of_processes_ns, [1040.0, 960.0, 1000.0]);
        assert!((record.rates.gbps.unwrap() - 1000.0).abs() < 2.0);
        let speedup = record.speedup.unwrap();
        assert!((speedup.ratio - 1.04).abs() < 0.01, "{speedup:?}");
        assert_eq!(speedup.verdict, Verdict::Unclear);
    }

    #[test]
    fn missing_speedup_of_one_process_drops_it() {
        let mut without = record(1000.0, 1.0);
        without.speedup = None;
        for of in [vec![record(999.0, 1.0), record(1001.0, 1.0), without.clone()], vec![record(999.0, 1.0), without]] {
            let record = combine_processes(of).unwrap();
            assert_eq!((record.speedup, record.warnings.len()), (None, 1));
        }
    }

    #[test]
    fn one_failed_process_fails_the_case() {
        let mut failed = record(1000.0, 1.0);
        (failed.outcome.status, failed.outcome.reason) = (Status::Mismatch, Some("wrong".into()));
        let record = combine_processes(vec![record(1000.0, 1.0), failed]).unwrap();
        assert_eq!(record.outcome.status, Status::Mismatch);
    }

    #[test]
    fn disagreeing_placements_are_not_converged() {
        let scattered =
            combine_placements(vec![record(1000.0, 1.0), record(1050.0, 1.0), record(1020.0, 1.0)], 0.01).unwrap();
        assert_eq!((scattered.time.converged, scattered.time.of_places_ns.len()), (Some(false), 3));
        let alike =
            combine_placements(vec![record(1000.0, 1.0), record(1001.0, 1.0), record(1002.0, 1.0)], 0.01).unwrap();
        assert_eq!((alike.time.converged, alike.speedup.unwrap().verdict), (Some(true), Verdict::Same));
    }
}
