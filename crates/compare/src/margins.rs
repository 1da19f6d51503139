//! Margins below which differences count as none, by device.

use super::options::CompareOptions;
use calorimeter_case::Device;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the margin of each device, and notes about it. If each side is a single process, intervals exclude the
/// variation between processes; the noise floor of the device then sets the margin.
pub(crate) fn margins(
    options: &CompareOptions,
    devices: &BTreeSet<Device>,
    repeated: bool,
) -> (BTreeMap<Device, f64>, Vec<String>) {
    let (mut margins, mut notes) = (BTreeMap::new(), Vec::new());
    if !repeated {
        notes.push(
            "each side is a single process, so the intervals exclude the variation between processes; to include it, \
             measure both sides with --launches 3, or pass several runs joined by commas"
                .to_owned(),
        );
    }
    for &device in devices {
        let floor = if repeated { Some(0.0) } else { options.noise_floors.get(&device).copied() };
        let margin = options.margin.max(2.0 * floor.unwrap_or_default());
        if margin > options.margin {
            notes.push(format!("the margin of {device} is {:.1} %: twice its measured noise floor", 100.0 * margin));
        } else if floor.is_none() {
            notes.push(format!(
                "the noise floor of {device} is unknown; measure it with `calorimeter noise --device {device}`"
            ));
        }
        margins.insert(device, margin);
    }
    (margins, notes)
}
