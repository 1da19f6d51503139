//! Calibration profile of a device, computed from a journal and the options of the command line.

use super::fusion::{FusionProfile, fusion_profiles};
use super::levels::{MemoryLevel, memory_levels};
use super::operation_profiles::{EfficiencyPoint, OperationProfile, curves, operation_profiles};
use super::operations::{CalibrationOperation, TRANSFER_NOT_MEASURED};
use super::part::CalibrationPart;
use super::peaks::{CalibratedPeak, StatedPeaks, peaks};
use super::precisions::{PrecisionMatrix, precisions};
use super::purpose::{CalibrationRecord, Purpose, with_purpose};
use calorimeter_sinks::journal::JournalContents;
use calorimeter_sinks::{Status, cache};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Labels given on the command line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProfileLabels {
    /// Name of the hardware; by default the name of the device.
    pub hardware: Option<String>,
    /// Peaks that the vendor states.
    pub stated: StatedPeaks,
}

/// Name and version of the schema.
pub(super) const SCHEMA: &str = "calorimeter-calibration";
pub(super) const VERSION: u32 = 1;

/// Calibration profile of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationProfile {
    /// Name of the schema.
    pub schema: String,
    /// Version of the schema.
    pub version: u32,
    /// Device, host and program.
    pub environment: CalibrationEnvironment,
    /// Peaks by key: `memory` or a precision.
    pub peaks: BTreeMap<String, CalibratedPeak>,
    /// Absent without STREAM.
    pub memory_arrays: Option<MemoryArrays>,
    /// Levels of the memory hierarchy.
    pub cache_levels: Vec<MemoryLevel>,
    /// Operations at each size, by key.
    pub operation_profiles: BTreeMap<String, OperationProfile>,
    /// Parts that were not measured, with the reason.
    pub not_measured: BTreeMap<String, String>,
    /// Rates of each operation by size.
    pub efficiency_curves: BTreeMap<String, Vec<EfficiencyPoint>>,
    /// Fusion patterns at each size, by key.
    pub fusion_profiles: BTreeMap<String, FusionProfile>,
    /// Matmul rates by precision.
    pub precision_matrix: PrecisionMatrix,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Environment of a calibration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CalibrationEnvironment {
    pub hardware_name: String,
    pub hardware_id: String,
    /// Name, identity, driver, cache, clocks and power of the device.
    pub device: Value,
    /// Machine, operating system and software versions.
    pub host: Value,
    pub calorimeter: String,
    /// Git revision, if known at build time.
    pub git_revision: Option<String>,
    pub seed: Option<u64>,
    pub run_id: String,
    pub started: String,
    pub finished: Option<String>,
    pub interrupted: bool,
    pub command: Vec<String>,
}

/// Sizes of the STREAM arrays relative to the last-level cache.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryArrays {
    pub bytes_per_array: u64,
    /// Size of the last-level cache according to the system.
    pub cache_bytes: Option<u64>,
    /// Array size divided by cache size; from 4 on, cache effects are negligible.
    pub arrays_over_cache: Option<f64>,
    /// Size of all rotated buffer sets divided by cache size.
    pub footprint_over_cache: Option<f64>,
    pub note: Option<String>,
}

impl CalibrationProfile {
    /// Computes the profile from a journal.
    pub fn from_journal(journal: &JournalContents, labels: &ProfileLabels) -> Self {
        let environment = environment(journal, labels);
        let records = &with_purpose(&journal.records);
        let cache_bytes = environment.device["cache_bytes"].as_u64();
        let peaks = peaks(records, cache_bytes, labels.stated);
        let operation_profiles = operation_profiles(records, cache_bytes, &peaks);
        let memory_arrays = memory_arrays(records, cache_bytes);
        let mut notes: Vec<String> = memory_arrays.iter().filter_map(|arrays| arrays.note.clone()).collect();
        notes.extend(journal.summary.iter().flat_map(|summary| summary.notes.clone()));
        if environment.interrupted {
            notes.push("the calibration was interrupted: this profile is incomplete".into());
        }
        Self {
            schema: SCHEMA.into(),
            version: VERSION,
            precision_matrix: precisions(records, &peaks),
            peaks,
            memory_arrays,
            cache_levels: cache_levels(records, cache_bytes),
            not_measured: not_measured(records),
            efficiency_curves: curves(records, &operation_profiles),
            operation_profiles,
            fusion_profiles: fusion_profiles(&journal.records),
            notes,
            environment,
        }
    }
}

fn environment(journal: &JournalContents, labels: &ProfileLabels) -> CalibrationEnvironment {
    let header = &journal.header;
    let mut host = header.environment.clone();
    let device =
        host.as_object_mut().and_then(|host| host.remove("devices")).and_then(|devices| devices.get(0).cloned());
    let device = device.unwrap_or_default();
    let name = labels.hardware.clone().or_else(|| Some(device["name"].as_str()?.to_owned()));
    let name = name.unwrap_or_else(|| "unknown".into());
    CalibrationEnvironment {
        hardware_id: hardware_id(&name),
        hardware_name: name,
        calorimeter: host["calorimeter"].as_str().unwrap_or_default().into(),
        git_revision: option_env!("CALORIMETER_REVISION").map(str::to_owned),
        seed: header.config["resolved"][0]["seed"].as_u64(),
        run_id: header.run_id.clone(),
        started: header.started.clone(),
        finished: journal.summary.as_ref().map(|summary| summary.finished.clone()),
        interrupted: journal.summary.as_ref().is_none_or(|summary| summary.interrupted),
        command: header.argv.clone(),
        device,
        host,
    }
}

fn memory_arrays(records: &[CalibrationRecord<'_>], cache_bytes: Option<u64>) -> Option<MemoryArrays> {
    let first = records.iter().find(|one| one.purpose.part() == Some(CalibrationPart::Stream))?;
    let arrays = match first.purpose {
        Purpose::Operation(CalibrationOperation::StreamCopy | CalibrationOperation::StreamScale) => 2,
        _ => 3,
    };
    let copy = first.record;
    let bytes_per_array = copy.case.bytes? / arrays;
    let over = |bytes: u64| cache_bytes.filter(|&cache| cache > 0).map(|cache| bytes as f64 / cache as f64);
    let footprint = copy.execution.rotation.map(|rotation| u64::from(rotation.sets) * rotation.bytes);
    let arrays_over_cache = over(bytes_per_array);
    let note = match arrays_over_cache {
        None => {
            Some("the size of the last-level cache is unknown: arrays may be smaller than four times its size".into())
        }
        Some(over) if over < 4.0 => Some(format!(
            "STREAM arrays are only {over:.2} times as large as the last-level cache (4 or more is recommended), limited by \
             memory, buffer size or --quick; launches rotate between several sets of them"
        )),
        Some(_) => None,
    };
    let footprint_over_cache = footprint.and_then(over);
    Some(MemoryArrays { bytes_per_array, cache_bytes, arrays_over_cache, footprint_over_cache, note })
}

/// Levels of the memory hierarchy, from the fastest implementation at each size.
fn cache_levels(records: &[CalibrationRecord<'_>], cache_bytes: Option<u64>) -> Vec<MemoryLevel> {
    let mut best: BTreeMap<u64, f64> = BTreeMap::new();
    let copies = records.iter().filter(|one| one.purpose.part() == Some(CalibrationPart::Cache)).map(|one| one.record);
    for record in copies.filter(|record| record.outcome.status == Status::Ok) {
        if let (Some(bytes), Some(gbps)) = (record.case.bytes, record.rates.gbps) {
            let known = best.entry(bytes).or_insert(gbps);
            *known = known.max(gbps);
        }
    }
    memory_levels(&best.into_iter().collect::<Vec<_>>(), cache_bytes)
}

/// Parts that were not measured on this device, with the reason.
fn not_measured(records: &[CalibrationRecord<'_>]) -> BTreeMap<String, String> {
    let measured = records.iter().any(|one| one.purpose.part() == Some(CalibrationPart::Transfer));
    let missing = (!measured).then(|| (CalibrationPart::Transfer.to_string(), TRANSFER_NOT_MEASURED.to_owned()));
    missing.into_iter().collect()
}

/// Folder name of a hardware in the registry.
pub(super) fn hardware_id(name: &str) -> String {
    cache::file_name(name.trim()).trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::peaks::tests::record;
    use calorimeter_sinks::Record;
    use calorimeter_sinks::journal::Header;
    use serde_json::json;

    fn journal(records: Vec<Record>) -> JournalContents {
        let device = json!({ "name": "Some GPU", "identity": "Some GPU 1", "cache_bytes": 1000 });
        let header = Header {
            run_id: "1".into(),
            started: "2026-03-09T07:05:01+02:00".into(),
            argv: vec![],
            config: json!({ "resolved": [{ "seed": 42 }] }),
            config_fingerprint: "f".into(),
            plan_cases: Some(records.len() as u64),
            environment: json!({ "calorimeter": "0.1.0", "devices": [device] }),
            output_dir: None,
        };
        JournalContents { header, records, resumed: vec![], summary: None, warnings: vec![] }
    }

    #[test]
    fn profiles_round_trip_with_their_environment() {
        let profile = CalibrationProfile::from_journal(
            &journal(vec![record(CalibrationPart::Stream, "stream_add", 1, 9_000)]),
            &ProfileLabels::default(),
        );
        let environment = &profile.environment;
        assert_eq!((environment.hardware_name.as_str(), environment.hardware_id.as_str()), ("Some GPU", "Some_GPU"));
        assert_eq!((environment.seed, environment.interrupted), (Some(42), true));
        let text = serde_json::to_string(&profile).unwrap();
        assert_eq!(serde_json::from_str::<CalibrationProfile>(&text).unwrap(), profile);
    }

    #[test]
    fn arrays_smaller_than_four_caches_are_noted() {
        for (bytes, over, is_noted) in [(9_000, 3.0, true), (12_000, 4.0, false)] {
            let profile = CalibrationProfile::from_journal(
                &journal(vec![record(CalibrationPart::Stream, "stream_add", 1, bytes)]),
                &ProfileLabels::default(),
            );
            let arrays = profile.memory_arrays.unwrap();
            assert_eq!((arrays.arrays_over_cache, arrays.note.is_some()), (Some(over), is_noted));
        }
    }

    #[test]
    fn unmeasured_operations_have_a_reason() {
        let profile = CalibrationProfile::from_journal(&journal(vec![]), &ProfileLabels::default());
        assert_eq!(profile.not_measured["transfer"], TRANSFER_NOT_MEASURED);
        assert!(profile.peaks.is_empty() && profile.cache_levels.is_empty());
    }

    #[test]
    fn hardware_ids_cannot_escape_the_registry() {
        for (name, id) in [("i7-12700K", "i7-12700K"), (" NVIDIA H200 ", "NVIDIA_H200"), ("../../etc", "_.._etc")] {
            assert_eq!(hardware_id(name), id);
        }
    }
}
