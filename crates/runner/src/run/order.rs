//! The order of the plan, for records that were read back: a journal has them as they ended.

use super::Request;
use crate::devices::{Devices, DiscoveredDevice};
use calorimeter_case::{CaseId, Record};
use calorimeter_sinks::Brief;
use calorimeter_sinks::journal::Header;
use std::collections::HashMap;

/// Sorts records as the plan of their run has them, on the machine of then. Where that cannot be told any more, because a file
/// of shapes is gone for example, they stay as they are.
pub fn sort_as_planned(records: &mut [Record], header: &Header) {
    let Some(ids) = planned(header) else { return };
    sort(records, ids.iter());
}

/// The same of what summaries need of them.
pub fn sort_briefs_as_planned(cases: &mut [Brief], header: &Header) {
    let Some(ids) = planned(header) else { return };
    sort_by_id(cases, ids.iter(), |case| &case.id);
}

/// Sorts records as these ids are; others come last.
pub(super) fn sort<'a>(records: &mut [Record], ids: impl Iterator<Item = &'a CaseId>) {
    sort_by_id(records, ids, |record| &record.case.id);
}

fn sort_by_id<'a, T>(items: &mut [T], ids: impl Iterator<Item = &'a CaseId>, id: impl Fn(&T) -> &CaseId) {
    let order: HashMap<&CaseId, usize> = ids.enumerate().map(|(index, id)| (id, index)).collect();
    // In place: a copy of all records is as large as they are.
    items.sort_by_cached_key(|item| order.get(id(item)).copied().unwrap_or(usize::MAX));
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
