//! Throttle reasons.

use std::fmt;

/// Throttle reason. Idling and clocks set by a user do not count as throttling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Throttle {
    /// The power limit was reached.
    PowerCap,
    /// The hardware at least halved the clock to protect itself.
    HardwareSlowdown,
    /// The temperature limit was reached.
    Thermal,
    /// The power supply requested a reduction.
    PowerBrake,
}

impl Throttle {
    /// True if a round with this reason is repeated. Large matmuls permanently reach the power cap of data-center GPUs,
    /// so that reason cannot require a repeat.
    pub fn requires_repeat(self) -> bool {
        self != Self::PowerCap
    }

    /// Reasons in NVML's bits, in order, without duplicates.
    #[cfg(feature = "nvml")]
    pub(super) fn from_bits(bits: u64) -> Vec<Self> {
        const BITS: [(u64, Throttle); 4] = [
            (0x4, Throttle::PowerCap),
            (0x8, Throttle::HardwareSlowdown),
            (0x20 | 0x40, Throttle::Thermal),
            (0x80, Throttle::PowerBrake),
        ];
        BITS.into_iter().filter(|(mask, _)| bits & mask != 0).map(|(_, reason)| reason).collect()
    }
}

impl fmt::Display for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PowerCap => "power-cap",
            Self::HardwareSlowdown => "hardware-slowdown",
            Self::Thermal => "thermal",
            Self::PowerBrake => "power-brake",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Throttle::*;

    #[test]
    fn only_power_cap_keeps_a_round() {
        let spoils = [PowerCap, HardwareSlowdown, Thermal, PowerBrake].map(|reason| reason.requires_repeat());
        assert_eq!(spoils, [false, true, true, true]);
    }

    #[cfg(feature = "nvml")]
    #[test]
    fn bits_match_nvml() {
        use nvml_wrapper::bitmasks::device::ThrottleReasons as Bits;
        for (bits, expected) in [
            (Bits::NONE, vec![]),
            (Bits::GPU_IDLE, vec![]),
            (Bits::APPLICATIONS_CLOCKS_SETTING, vec![]),
            (Bits::SYNC_BOOST, vec![]),
            (Bits::DISPLAY_CLOCK_SETTING, vec![]),
            (Bits::SW_POWER_CAP, vec![PowerCap]),
            (Bits::HW_SLOWDOWN, vec![HardwareSlowdown]),
            (Bits::SW_THERMAL_SLOWDOWN, vec![Thermal]),
            (Bits::HW_THERMAL_SLOWDOWN, vec![Thermal]),
            (Bits::HW_POWER_BRAKE_SLOWDOWN, vec![PowerBrake]),
            (Bits::SW_THERMAL_SLOWDOWN | Bits::HW_THERMAL_SLOWDOWN | Bits::SW_POWER_CAP, vec![PowerCap, Thermal]),
            (Bits::all(), vec![PowerCap, HardwareSlowdown, Thermal, PowerBrake]),
        ] {
            assert_eq!(super::Throttle::from_bits(bits.bits()), expected, "{bits:?}");
        }
    }
}
