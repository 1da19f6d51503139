//! Other users of the devices of a run.

use super::RunError;
use calorimeter_case::Device;

/// Devices with other users, and a description of those.
pub type InUse = Vec<(Device, String)>;

/// Returns the other users of a device, if known. With `require_idle`, it is an error if there are any or if they are
/// unknown.
pub fn who_else(
    device: Device,
    others: Result<Vec<String>, String>,
    require_idle: bool,
) -> Result<Option<(Device, String)>, RunError> {
    let name = device.to_string();
    match others {
        Err(why) if require_idle => Err(RunError::Unwatched { device: name, why }),
        Ok(others) if require_idle && !others.is_empty() => {
            Err(RunError::Busy { device: name, others: others.join("; ") })
        }
        Ok(others) if !others.is_empty() => Ok(Some((device, others.join("; ")))),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_must_be_idle_is_refused_if_that_cannot_be_known() {
        let result = |others, require_idle| match who_else(Device::Vulkan(1), others, require_idle) {
            Ok(used) => used.map(|(_, others)| others).unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        let unseen = || Err("no sensors".to_owned());
        let busy = || Ok(vec!["one".to_owned(), "two".to_owned()]);
        for (others, require_idle, expected) in [
            (Ok(vec![]), true, ""),
            (Ok(vec![]), false, ""),
            (unseen(), false, ""),
            (unseen(), true, "--require-idle: cannot determine other users of vulkan:1: no sensors"),
            (busy(), false, "one; two"),
            (busy(), true, "--require-idle: vulkan:1 is in use: one; two"),
        ] {
            assert_eq!(result(others, require_idle), expected);
        }
    }
}
