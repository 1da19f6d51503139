//! Clock locking: fixes a device's clock, independent of heat and power.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// Clock at which a device can be locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum LockedClock {
    /// Base clock, which the device sustains under any load according to its vendor.
    Base,
    /// Clock in MHz.
    Mhz(NonZeroU32),
}

/// Lock of one device's clock; requires administrative permissions.
pub trait ClockLock: Send {
    /// Locks the clock for all users of the device; an error names the missing requirement.
    fn lock(&mut self, clock: LockedClock) -> Result<(), String>;

    /// Unlocks the clock.
    fn unlock(&mut self) -> Result<(), String>;

    /// Command with which a user can unlock the clock.
    fn unlock_command(&self) -> String;
}

impl fmt::Display for LockedClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base => f.pad("base"),
            Self::Mhz(mhz) => write!(f, "{mhz} MHz"),
        }
    }
}

impl FromStr for LockedClock {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "base" {
            return Ok(Self::Base);
        }
        let number = text.strip_suffix("MHz").unwrap_or(text).trim();
        number.parse().map(Self::Mhz).map_err(|_| format!("invalid clock {text:?}: expected MHz, e.g. 1200, or `base`"))
    }
}

impl From<LockedClock> for String {
    fn from(clock: LockedClock) -> Self {
        clock.to_string()
    }
}

impl TryFrom<String> for LockedClock {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locked_clock_round_trips() {
        for text in ["base", "1200 MHz"] {
            let clock: LockedClock = text.parse().unwrap();
            assert_eq!(clock.to_string(), text);
            assert_eq!(serde_json::from_value::<LockedClock>(serde_json::to_value(clock).unwrap()).unwrap(), clock);
        }
        assert_eq!("1200".parse::<LockedClock>(), "1200MHz".parse());
        for wrong in ["", "0", "-3", "fast", "1.2 GHz"] {
            assert!(wrong.parse::<LockedClock>().is_err(), "{wrong}");
        }
    }
}
