//! Results of operators as a flat JSON list: the ten fields of a known operator benchmark, followed by our fields.

use crate::{SinkError, atomic};
use calorimeter_case::record::{Record, Status};
use serde_json::{Value, json};
use std::path::Path;

/// Writes the list. It holds every record; unmeasured values are null, never zero.
pub fn write(path: &Path, records: &[Record]) -> Result<(), SinkError> {
    let list: Vec<Value> = records.iter().map(entry).collect();
    let bytes = serde_json::to_vec_pretty(&list).map_err(|error| SinkError::write(path, error.into()))?;
    atomic::write_named(path, &bytes)
}

/// Entry of a record.
///
/// `inference_speed` is calls per second, `gpu_efficiency` the percentage of the measured peak that bounds the operator
/// and is named by `roof`. `throughput_gbps` is the minimum traffic divided by the time, `memory_mb` the peak above the
/// inputs in MiB.
fn entry(record: &Record) -> Value {
    let case = &record.case;
    let ok = record.outcome.status == Status::Ok;
    let time = record.time.time_ns.filter(|_| ok);
    let roof = record.rates.roofline.as_ref().filter(|_| ok);
    let above = record.footprint.memory.as_ref().and_then(|memory| memory.peak_above_inputs);
    json!({
        "operation": case.workload,
        "implementation": case.implementation,
        "batch_size": case.shape.get("batch"),
        "sequence_length": case.shape.get("sequence"),
        "tensor_dimension": case.shape.get("dimension"),
        "time_ms": time.map(|time| time.median / 1e6),
        "memory_mb": above.map(|bytes| bytes as f64 / f64::from(1 << 20)),
        "inference_speed": time.map(|time| 1e9 / time.median),
        "gpu_efficiency": roof.map(|roof| roof.percent),
        "throughput_gbps": record.rates.gbps.filter(|_| ok),
        "id": case.id,
        "status": record.outcome.status,
        "reason": record.outcome.reason,
        "shape": case.shape,
        "dtype": case.element,
        "output_dtype": case.output,
        "device": case.device,
        "regime": case.regime,
        "stopwatch": record.execution.stopwatch,
        "memory_bound": record.footprint.memory.as_ref().map(|memory| memory.bound),
        "time_ms_lo": time.and_then(|time| time.lo).map(|lo| lo / 1e6),
        "time_ms_hi": time.and_then(|time| time.hi).map(|hi| hi / 1e6),
        "converged": record.time.converged,
        "tflops": record.rates.tflops.filter(|_| ok),
        "flops": case.flops,
        "bytes": case.bytes,
        "counted_bytes": record.traffic.map(|traffic| traffic.bytes()),
        "roof": roof.map(|roof| &roof.bound),
        "roof_gbps": roof.and_then(|roof| roof.peak_gbps),
        "roof_tflops": roof.and_then(|roof| roof.peak_tflops),
        "speedup": record.speedup.as_ref().map(|speedup| json!({
            "vs": speedup.vs, "ratio": speedup.ratio, "lo": speedup.lo, "hi": speedup.hi, "verdict": speedup.verdict,
        })),
        "kernel_launches": record.execution.kernel_launches,
        "fusion_state": record.execution.fusion_state,
        "warnings": record.warnings.texts(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::Case;
    use calorimeter_case::record::{Estimate, PeakMemory, Roofline, RooflineBound};
    use calorimeter_case::record::{Footprint, Rates, Time};

    #[test]
    fn known_fields_come_first_and_may_be_null() {
        let shape = [("batch", 16), ("sequence", 256), ("dimension", 64)].into();
        let case =
            Case { workload: "softmax".into(), implementation: "cube".parse().unwrap(), shape, ..Case::default() };
        let failed = Record::new(case.clone(), Status::Failed);
        let measured = Record {
            time: Time { time_ns: Some(Estimate { median: 2e6, lo: None, hi: None }), ..Time::default() },
            rates: Rates {
                gbps: Some(400.0),
                roofline: Some(Roofline { percent: 80.0, bound: RooflineBound::Memory, ..Roofline::default() }.into()),
                ..Rates::default()
            },
            footprint: Footprint {
                memory: Some(PeakMemory { peak_above_inputs: Some(1 << 20), ..PeakMemory::default() }.into()),
                ..Footprint::default()
            },
            ..Record::new(case, Status::Ok)
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ops.json");
        write(&path, &[measured, failed]).unwrap();
        let list: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let ten = |entry: &Value| {
            let names = [
                "operation",
                "implementation",
                "batch_size",
                "sequence_length",
                "tensor_dimension",
                "time_ms",
                "memory_mb",
                "inference_speed",
                "gpu_efficiency",
                "throughput_gbps",
            ];
            names.map(|name| entry[name].clone())
        };
        let shape = [json!("softmax"), json!("cube"), json!(16), json!(256), json!(64)];
        let figures = [json!(2.0), json!(1.0), json!(500.0), json!(80.0), json!(400.0)];
        assert_eq!(ten(&list[0]).to_vec(), [shape.to_vec(), figures.to_vec()].concat());
        assert_eq!(ten(&list[1])[5..], [Value::Null, Value::Null, Value::Null, Value::Null, Value::Null]);
    }
}
