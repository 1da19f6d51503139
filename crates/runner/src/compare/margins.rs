//! Below which differences nothing is said, device by device.

use super::source::Run;
use crate::devices::DiscoveredDevice;
use crate::noise_floor::Floor;
use calorimeter_case::Device;
use std::collections::{BTreeMap, BTreeSet};

/// The margin of each device, and what a reader should know of it. Where each side is one process, how much processes differ
/// is not in the intervals: the noise that was once found of the device stands in for it.
pub fn margins(
    run: &Run,
    devices: &BTreeSet<Device>,
    asked: f64,
    repeated: bool,
) -> (BTreeMap<Device, f64>, Vec<String>) {
    let (mut margins, mut notes) = (BTreeMap::new(), Vec::new());
    if !repeated {
        notes.push(
            "each side is one process: how much two processes differ is not in the intervals; --launches 3 on both \
             sides, or several runs with commas between them, bring it in"
                .to_owned(),
        );
    }
    for &device in devices {
        let floor = if repeated { Some(Floor::default()) } else { floor(run, device) };
        let margin = floor.as_ref().map_or(asked, |floor| floor.margin(asked));
        if !repeated && margin > asked {
            notes.push(format!(
                "the margin of {device} is {:.1} %: twice the noise that was found of it",
                100.0 * margin
            ));
        } else if !repeated && floor.is_none_or(|floor| floor == Floor::default()) {
            notes.push(format!("no noise is known of {device}: `calorimeter noise --device {device}` finds out"));
        }
        margins.insert(device, margin);
    }
    (margins, notes)
}

/// What is kept of the noise of a device of this run, under the driver and the clocks of then.
fn floor(run: &Run, device: Device) -> Option<Floor> {
    let environment = &run.read.header.as_ref()?.environment;
    let name = device.to_string();
    let facts = environment["devices"].as_array()?.iter().find(|facts| facts["device"] == name)?;
    let told = |key: &str| facts[key].as_str().unwrap_or_default().to_owned();
    let found = DiscoveredDevice {
        driver: told("driver"),
        identity: told("identity"),
        ..DiscoveredDevice::named(device, told("name"))
    };
    Some(Floor::under(&found, &told("clock_policy")))
}
