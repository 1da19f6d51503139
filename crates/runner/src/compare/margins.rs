//! Margins below which differences count as none, by device.

use super::source::ComparedRun;
use crate::devices::DiscoveredDevice;
use crate::noise_floor::NoiseFloor;
use calorimeter_case::Device;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the margin of each device, and notes about it. If each side is a single process, intervals exclude the
/// variation between processes; the stored noise floor of the device then sets the margin.
pub fn margins(
    run: &ComparedRun,
    devices: &BTreeSet<Device>,
    asked: f64,
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
        let floor = if repeated { Some(NoiseFloor::default()) } else { stored_noise_floor(run, device) };
        let margin = floor.as_ref().map_or(asked, |floor| floor.margin(asked));
        if !repeated && margin > asked {
            notes.push(format!("the margin of {device} is {:.1} %: twice its measured noise floor", 100.0 * margin));
        } else if !repeated && floor.is_none_or(|floor| floor == NoiseFloor::default()) {
            notes.push(format!(
                "the noise floor of {device} is unknown; measure it with `calorimeter noise --device {device}`"
            ));
        }
        margins.insert(device, margin);
    }
    (margins, notes)
}

/// Stored noise floor of a device, for the driver and clock policy of this run.
fn stored_noise_floor(run: &ComparedRun, device: Device) -> Option<NoiseFloor> {
    let environment = &run.read.header.as_ref()?.environment;
    let name = device.to_string();
    let facts = environment["devices"].as_array()?.iter().find(|facts| facts["device"] == name)?;
    let fact = |key: &str| facts[key].as_str().unwrap_or_default().to_owned();
    let found = DiscoveredDevice {
        driver: fact("driver"),
        identity: fact("identity"),
        ..DiscoveredDevice::with_name(device, fact("name"))
    };
    Some(NoiseFloor::with_policy(&found, &fact("clock_policy")))
}
