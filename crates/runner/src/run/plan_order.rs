//! Sorting of records by plan order; a journal has them in order of completion.

use super::Request;
use calorimeter_case::{CaseId, Record};
use calorimeter_probe::devices::{Devices, DiscoveredDevice};
use calorimeter_sinks::CaseExcerpt;
use calorimeter_sinks::journal::Header;
use std::collections::HashMap;

/// Sorts records in the order of their plan, which is rebuilt for the devices in the header. If that fails, e.g.
/// because a file of shapes is gone, the order is unchanged.
pub fn sort_as_planned(records: &mut [Record], header: &Header) {
    let Some(ids) = planned_ids(header) else { return };
    sort_records(records, ids.iter());
}

/// Sorts summaries of records in the order of their plan.
pub fn sort_briefs_as_planned(cases: &mut [CaseExcerpt], header: &Header) {
    let Some(ids) = planned_ids(header) else { return };
    sort_by_id(cases, ids.iter(), |case| &case.id);
}

/// Sorts records by the position of their ids; others come last.
pub(super) fn sort_records<'a>(records: &mut [Record], ids: impl Iterator<Item = &'a CaseId>) {
    sort_by_id(records, ids, |record| &record.case.id);
}

fn sort_by_id<'a, T>(items: &mut [T], ids: impl Iterator<Item = &'a CaseId>, id: impl Fn(&T) -> &CaseId) {
    let order: HashMap<&CaseId, usize> = ids.enumerate().map(|(index, id)| (id, index)).collect();
    // In place: a copy of all records would double their memory.
    items.sort_by_cached_key(|item| order.get(id(item)).copied().unwrap_or(usize::MAX));
}

fn planned_ids(header: &Header) -> Option<Vec<CaseId>> {
    let mut request: Request = serde_json::from_value(header.config.clone()).ok()?;
    // Without the shard, so that the order is that of the complete plan.
    request.overrides.shard = None;
    let devices = header.environment["devices"].as_array().into_iter().flatten();
    let devices = devices.filter_map(|device| {
        Some(DiscoveredDevice::with_name(device["device"].as_str()?.parse().ok()?, device["name"].as_str()?))
    });
    let prepared = request.prepare_for(&Devices::simulated(devices)).ok()?;
    Some(prepared.plan().ids().cloned().collect())
}
