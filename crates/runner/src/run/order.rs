//! The order of the plan, for records that were read back: a journal has them as they ended.

use super::Request;
use crate::devices::{Devices, DiscoveredDevice};
use calorimeter_case::{CaseId, Record};
use calorimeter_sinks::journal::Header;
use std::collections::HashMap;

/// Sorts records as the plan of their run has them, on the machine of then. Where that cannot be told any more, because a file
/// of shapes is gone for example, they stay as they are.
pub fn sort_as_planned(records: &mut [Record], header: &Header) {
    let Some(ids) = planned(header) else { return };
    sort(records, ids.iter());
}

/// Sorts records as these ids are; others come last.
pub(super) fn sort<'a>(records: &mut [Record], ids: impl Iterator<Item = &'a CaseId>) {
    let order: HashMap<&CaseId, usize> = ids.enumerate().map(|(index, id)| (id, index)).collect();
    // In place: a copy of all records is as large as they are.
    records.sort_by_cached_key(|record| order.get(&record.case.id).copied().unwrap_or(usize::MAX));
}

fn planned(header: &Header) -> Option<Vec<CaseId>> {
    let mut request: Request = serde_json::from_value(header.config.clone()).ok()?;
    // Of a part and of the whole alike.
    request.overrides.shard = None;
    let devices = header.environment["devices"].as_array().into_iter().flatten();
    let devices = devices.filter_map(|device| {
        Some(DiscoveredDevice::named(device["device"].as_str()?.parse().ok()?, device["name"].as_str()?))
    });
    let prepared = request.prepare_for(&Devices::invented(devices)).ok()?;
    Some(prepared.plan().ids().cloned().collect())
}
