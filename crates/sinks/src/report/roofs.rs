//! Roofs of the roofline: measured peaks by dtype, and bandwidths of memory and cache.

use calorimeter_case::Name;

use super::derived_columns::item_and_implementation;
use super::report_rows::{distinct, group_by};
use crate::record::{Record, RooflineBound};

/// Measured peak with its label.
#[derive(Debug, PartialEq)]
pub(super) struct Roof {
    pub(super) name: String,
    /// Operations or bytes per second.
    pub(super) peak: f64,
}

impl Roof {
    /// Compute peak of a record, by dtype.
    pub(super) fn of_compute(record: &Record) -> Option<Self> {
        let roofline = record.rates.roofline.as_ref()?;
        let name = roofline.peak_dtype.map_or("compute", Name::as_str).to_owned();
        Some(Self { name, peak: roofline.peak_tflops? * 1e12 })
    }

    /// Bandwidth of a record. A record that is limited by compute does not name the storage.
    pub(super) fn of_memory(record: &Record) -> Option<Self> {
        let roofline = record.rates.roofline.as_ref()?;
        let name = match roofline.bound {
            RooflineBound::Compute => BANDWIDTH,
            storage => storage.as_str(),
        };
        Some(Self { name: name.into(), peak: roofline.peak_gbps? * 1e9 })
    }
}

/// Label of a bandwidth whose storage is not recorded: memory or cache.
const BANDWIDTH: &str = "bandwidth";

/// Highest peak per label, highest first. A peak may rise during a run. If there are several devices, the label holds
/// the device.
pub(super) fn roofs(records: &[&Record], of: fn(&Record) -> Option<Roof>) -> Vec<Roof> {
    let several = distinct(records.iter().map(|record| record.case.device)).len() > 1;
    let found = records.iter().filter_map(|record| Some((record.case.device, of(record)?)));
    let found = found.filter(|(_, roof)| roof.peak > 0.0);
    let grouped = group_by(found, |(device, roof)| (*device, roof.name.clone()));
    let is_known = grouped.iter().any(|((_, name), _)| name != BANDWIDTH);
    let grouped = grouped.into_iter().filter(|((_, name), _)| !is_known || name != BANDWIDTH);
    let mut roofs: Vec<Roof> = grouped
        .map(|((device, name), all)| Roof {
            name: if several { format!("{device} {name}") } else { name },
            peak: all.iter().map(|(_, roof)| roof.peak).fold(0.0, f64::max),
        })
        .collect();
    roofs.sort_by(|one, other| other.peak.total_cmp(&one.peak));
    roofs
}

/// Series with cases below a bandwidth but without a compute peak; no probe measures the dtype of their matmuls.
pub(super) fn without_compute_peak(records: &[&Record]) -> Vec<String> {
    let of = |record: &&&Record| record.rates.roofline.as_ref().is_some_and(|roofline| roofline.peak_tflops.is_none());
    let has_compute = records.iter().any(|record| Roof::of_compute(record).is_some());
    distinct(records.iter().filter(of).filter(|_| has_compute).map(|record| item_and_implementation(record)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Roofline;
    use crate::{Case, Status};

    fn record(dtype: Option<&'static str>, tflops: Option<f64>, bound: RooflineBound, gbps: f64) -> Record {
        let mut record = Record::new(Case::default(), Status::Ok);
        let peak_dtype = dtype.map(Name::new);
        let roofline =
            Roofline { peak_tflops: tflops, peak_dtype, bound, peak_gbps: Some(gbps), ..Roofline::default() };
        record.rates.roofline = Some(Box::new(roofline));
        record
    }

    #[test]
    fn each_dtype_has_one_roof() {
        use RooflineBound::{Cache, Compute, Memory};
        let records = [
            record(Some("f32"), Some(1.0), Memory, 40.0),
            record(Some("f32"), Some(1.5), Cache, 90.0),
            record(Some("bf16"), Some(4.0), Compute, 41.0),
            record(None, None, Memory, 39.0),
        ];
        let records: Vec<&Record> = records.iter().collect();
        let found = |of| roofs(&records, of).into_iter().map(|roof| (roof.name, roof.peak)).collect::<Vec<_>>();
        assert_eq!(found(Roof::of_compute), [("bf16".to_owned(), 4e12), ("f32".into(), 1.5e12)]);
        assert_eq!(found(Roof::of_memory), [("cache".to_owned(), 90e9), ("memory".into(), 40e9)]);
        assert_eq!(without_compute_peak(&records), ["baseline · eager"]);
        // Journals of early versions have no dtype.
        let early = record(None, Some(2.0), Compute, 7.0);
        assert_eq!(roofs(&[&early], Roof::of_compute)[0].name, "compute");
        assert_eq!(roofs(&[&early], Roof::of_memory)[0].name, "bandwidth");
        assert!(without_compute_peak(&[&early]).is_empty());
    }
}
