//! Timing modes. Times of different regimes are never shown in one column.

use crate::UnknownName;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// Defines the regimes of a table; the first is the default.
macro_rules! regimes {
    ($($variant:ident = $name:literal: $about:literal, clock: $clock:ident, rotates: $rotates:literal;)*) => {
        /// Timing mode: state of caches and launches during a measurement.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Regime {
            $(#[doc = $about] $variant,)*
        }

        impl Regime {
            /// All regimes, the default first.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Name of the regime.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Description in one line.
            pub const fn description(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }

            /// Clock that the times are read from.
            pub const fn clock(self) -> Clock {
                match self { $(Self::$variant => Clock::$clock,)* }
            }

            /// True if launches rotate through many buffer sets, so that no cache holds the next operands.
            pub const fn rotates(self) -> bool {
                match self { $(Self::$variant => $rotates,)* }
            }
        }
    };
}

// ANCHOR: table
regimes! {
    DeviceCold = "device-cold": "time on the device, operands in memory: launches rotate through many buffer sets",
        clock: Device, rotates: true;
    DeviceHot = "device-hot": "time on the device, operands possibly cached: launches share one buffer set",
        clock: Device, rotates: false;
    Graph = "graph": "time on the device, launches replayed from a captured graph, operands in memory",
        clock: Graph, rotates: true;
    HostE2e = "host-e2e": "host time of one launch and the wait for its end, operands in memory",
        clock: Waiting, rotates: true;
    HostEnqueue = "host-enqueue": "host time of one asynchronous launch",
        clock: Enqueuing, rotates: false;
}
// ANCHOR_END: table

/// Clock of a regime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Device clock, around back-to-back launches.
    Device,
    /// Device clock, around replays of a graph.
    Graph,
    /// Host clock, around a launch and the wait for its end.
    Waiting,
    /// Host clock, around an asynchronous launch.
    Enqueuing,
}

impl Clock {
    /// True if the clock measures the time on the device.
    pub const fn is_on_device(self) -> bool {
        matches!(self, Self::Device | Self::Graph)
    }
}

impl Default for Regime {
    fn default() -> Self {
        Self::ALL[0]
    }
}

impl fmt::Display for Regime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Regime {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|regime| regime.name() == name);
        found.ok_or_else(|| UnknownName::new("regime", name, Self::ALL.map(Self::name)))
    }
}

crate::written_as_a_name!(Regime, "Regime", &expected(), Regime::ALL.iter().map(ToString::to_string).collect());

/// Lists the regimes: `timing mode: device-cold, device-hot or graph`.
fn expected() -> String {
    let names = Regime::ALL.map(Regime::name);
    let (last, rest) = names.split_last().expect("at least one regime");
    format!("timing mode: {} or {last}", rest.join(", "))
}

/// Maximum number of buffer sets.
const MAX_BUFFER_SETS: u64 = 512;

/// Number of buffer sets after which no launch finds its operands in a cache of this size: enough for `times` the cache
/// size, plus one, and at least two.
pub fn required_buffer_sets(cache_bytes: u64, touched_bytes: u64, times: u64) -> u64 {
    ((times * cache_bytes).div_ceil(touched_bytes.max(1)) + 1).max(2)
}

/// Required number of buffer sets, capped at the maximum.
pub fn buffer_sets(cache_bytes: u64, touched_bytes: u64, times: u64) -> u32 {
    required_buffer_sets(cache_bytes, touched_bytes, times).min(MAX_BUFFER_SETS) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regime_names_round_trip() {
        for regime in Regime::ALL {
            assert_eq!(regime.to_string().parse(), Ok(regime));
            assert_eq!(serde_json::to_value(regime).unwrap(), regime.to_string());
        }
        assert_eq!("device-cald".parse::<Regime>().unwrap_err().nearest.as_deref(), Some("device-cold"));
    }

    #[test]
    fn buffer_sets_exceed_the_cache() {
        // A 4096 x 4096 weight of 4 bits with scales, 50 MB of cache: 17 sets hold 160 MB.
        assert_eq!(buffer_sets(50 << 20, 9_437_184, 3), 18);
        assert_eq!(buffer_sets(50 << 20, 400 << 20, 3), 2);
        assert_eq!(buffer_sets(50 << 20, 16, 3), 512);
        assert_eq!(buffer_sets(0, 0, 3), 2);
    }
}
