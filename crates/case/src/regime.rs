//! What a time means: five questions whose answers are never put into one column.

use crate::UnknownName;
use std::{fmt, str::FromStr};

/// The question that a time answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Regime {
    /// How long the device needs when operands come from memory, as in inference.
    #[default]
    DeviceCold,
    /// How long the device needs when operands may still be in its cache.
    DeviceHot,
    /// How long the device needs when launches are replayed from a captured graph, operands coming from memory.
    Graph,
    /// How long a caller waits for one launch and its end.
    HostE2e,
    /// How long a caller is busy with one launch that is not waited for.
    HostEnqueue,
}

impl Regime {
    /// Every regime, the default first.
    pub const ALL: [Self; 5] = [Self::DeviceCold, Self::DeviceHot, Self::Graph, Self::HostE2e, Self::HostEnqueue];

    /// The question, in one line.
    pub fn about(self) -> &'static str {
        match self {
            Self::DeviceCold => "time on the device, operands coming from memory: launches go through many buffer sets",
            Self::DeviceHot => "time on the device, operands possibly in its cache: launches share one buffer set",
            Self::Graph => "time on the device, launches replayed from a captured graph, operands coming from memory",
            Self::HostE2e => "time that a caller waits for one launch and its end",
            Self::HostEnqueue => "time that a caller is busy with one launch that is not waited for",
        }
    }

    /// Whether launches go through many buffer sets, so that no cache holds what the next one reads.
    pub fn rotates(self) -> bool {
        matches!(self, Self::DeviceCold | Self::Graph)
    }
}

impl fmt::Display for Regime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::DeviceCold => "device-cold",
            Self::DeviceHot => "device-hot",
            Self::Graph => "graph",
            Self::HostE2e => "host-e2e",
            Self::HostEnqueue => "host-enqueue",
        })
    }
}

impl FromStr for Regime {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|regime| regime.to_string() == name);
        found.ok_or_else(|| UnknownName::new("regime", name, Self::ALL.map(|known| known.to_string())))
    }
}

crate::written_as_a_name!(
    Regime,
    "Regime",
    "what a time means: device-cold, device-hot, graph, host-e2e or host-enqueue",
    Regime::ALL.iter().map(ToString::to_string).collect()
);

/// More buffer sets than this are never made.
const MOST_SETS: u64 = 512;

/// How many buffer sets launches must go through so that none finds its operands in a cache of this size: together
/// `times` the cache and one more, at least two.
pub fn buffer_sets(cache_bytes: u64, touched_bytes: u64, times: u64) -> u32 {
    ((times * cache_bytes).div_ceil(touched_bytes.max(1)) + 1).clamp(2, MOST_SETS) as u32
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
