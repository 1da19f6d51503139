//! What a time means: questions whose answers are never put into one column.

use crate::UnknownName;
use std::{fmt, str::FromStr};

/// Makes the regimes of a table, whose first is the default.
macro_rules! regimes {
    ($($variant:ident = $name:literal: $about:literal, clock: $clock:ident, rotates: $rotates:literal;)*) => {
        /// The question that a time answers.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Regime {
            $(#[doc = $about] $variant,)*
        }

        impl Regime {
            /// Every regime, the default first.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The question, in one line.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }

            /// What its times are read from.
            pub const fn clock(self) -> Clock {
                match self { $(Self::$variant => Clock::$clock,)* }
            }

            /// Whether launches go through many buffer sets, so that no cache holds what the next one reads.
            pub const fn rotates(self) -> bool {
                match self { $(Self::$variant => $rotates,)* }
            }
        }
    };
}

// ANCHOR: table
regimes! {
    DeviceCold = "device-cold": "time on the device, operands coming from memory: launches go through many buffer sets",
        clock: Device, rotates: true;
    DeviceHot = "device-hot": "time on the device, operands possibly in its cache: launches share one buffer set",
        clock: Device, rotates: false;
    Graph = "graph": "time on the device, launches replayed from a captured graph, operands coming from memory",
        clock: Graph, rotates: true;
    HostE2e = "host-e2e": "time that a caller waits for one launch and its end, operands coming from memory",
        clock: Waiting, rotates: true;
    HostEnqueue = "host-enqueue": "time that a caller is busy with one launch that is not waited for",
        clock: Enqueuing, rotates: false;
}
// ANCHOR_END: table

/// What the times of a regime are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The device's clock, around launches that follow one another.
    Device,
    /// The device's clock, around a graph of launches that is replayed.
    Graph,
    /// The host's clock, around a launch and its end.
    Waiting,
    /// The host's clock, around a launch that is not waited for.
    Enqueuing,
}

impl Clock {
    /// Whether it tells how long the device computes.
    pub const fn is_the_devices(self) -> bool {
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

/// `what a time means: device-cold, device-hot or graph`
fn expected() -> String {
    let names = Regime::ALL.map(Regime::name);
    let (last, others) = names.split_last().expect("there are regimes");
    format!("what a time means: {} or {last}", others.join(", "))
}

/// More buffer sets than this are never made.
const MOST_SETS: u64 = 512;

/// How many buffer sets launches must go through so that none finds its operands in a cache of this size: together
/// `times` the cache and one more, at least two.
pub fn sets_needed(cache_bytes: u64, touched_bytes: u64, times: u64) -> u64 {
    ((times * cache_bytes).div_ceil(touched_bytes.max(1)) + 1).max(2)
}

/// As many buffer sets as are needed, or the most that are ever made.
pub fn buffer_sets(cache_bytes: u64, touched_bytes: u64, times: u64) -> u32 {
    sets_needed(cache_bytes, touched_bytes, times).min(MOST_SETS) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for regime in Regime::ALL {
            assert_eq!(regime.to_string().parse(), Ok(regime));
            assert_eq!(serde_json::to_value(regime).unwrap(), regime.to_string());
        }
        assert!("cold".parse::<Regime>().unwrap_err().to_string().contains("device-cold"));
    }

    #[test]
    fn sets_exceed_the_cache_and_stay_within_bounds() {
        // A 4096 x 4096 weight of 4 bits with scales, 50 MB of cache: 17 sets hold 160 MB.
        assert_eq!(buffer_sets(50 << 20, 9_437_184, 3), 18);
        assert_eq!(buffer_sets(50 << 20, 400 << 20, 3), 2);
        assert_eq!(buffer_sets(50 << 20, 16, 3), 512);
        assert_eq!(buffer_sets(0, 0, 3), 2);
    }
}
