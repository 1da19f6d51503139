//! Other users of the devices of a run.

use super::RunError;
use calorimeter_case::Device;

/// Devices with other users, and a description of those.
pub(super) type DeviceUsers = Vec<(Device, String)>;

/// Returns the other users of a device, if known. With `require_idle`, it is an error if there are any or if they are
/// unknown.
pub(super) fn check_other_users(
    device: Device,
    others: Result<Vec<String>, String>,
    require_idle: bool,
) -> Result<Option<(Device, String)>, RunError> {
    let name = device.to_string();
    match others {
        Err(why) if require_idle => Err(RunError::UsersUnknown { device: name, why }),
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
    fn device_with_unknown_users_is_refused() {
        let result = |others, require_idle| match check_other_users(Device::Vulkan(1), others, require_idle) {
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
