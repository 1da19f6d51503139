//! GPU properties that are available without a context.

use std::fmt;

/// Properties of a GPU, as reported by the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuInfo {
    /// Ordinal among the visible GPUs.
    pub ordinal: usize,
    /// Marketing name.
    pub name: String,
    /// UUID `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, as used by NVML and `CUDA_VISIBLE_DEVICES`.
    pub uuid: String,
    /// Memory in bytes.
    pub total_memory: u64,
    /// Theoretical memory bandwidth in bytes per second: two transfers per cycle over the whole bus. `None` if the
    /// driver does not report the clock.
    pub memory_bytes_per_second: Option<u64>,
    /// Size of the L2 cache in bytes.
    pub l2_bytes: u64,
    /// Compute capability.
    pub compute_capability: ComputeCapability,
    /// Newest CUDA version that the installed driver supports.
    pub driver_version: DriverVersion,
}

/// Compute capability of a GPU, such as 9.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComputeCapability {
    /// Generation.
    pub major: u32,
    /// Variant.
    pub minor: u32,
}

impl ComputeCapability {
    /// Every GPU.
    pub(super) const ANY: Self = Self { major: 0, minor: 0 };
    /// H100 and H200.
    pub const HOPPER: Self = Self { major: 9, minor: 0 };
    /// First with e4m3 conversion and multiplication.
    pub(super) const E4M3: Self = Self { major: 8, minor: 9 };
    /// First with warp-wide reductions in one instruction (`redux.sync`).
    pub(super) const AMPERE: Self = Self { major: 8, minor: 0 };
    /// First with thread-block clusters.
    pub(super) const CLUSTERS: Self = Self { major: 9, minor: 0 };
    /// Only one with warp-group matrix multiplication (`wgmma`).
    pub(super) const WGMMA: Self = Self { major: 9, minor: 0 };

    /// First with block-scaled matrix multiplication.
    pub(super) const BLOCK_SCALED_MMA: Self = Self { major: 10, minor: 0 };

    /// Target name for a CUDA compiler: `sm_90` for 9.0.
    pub fn target(self) -> String {
        format!("sm_{}{}", self.major, self.minor)
    }
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// CUDA version that a driver supports, such as 13.0. Differs from the version of the driver package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DriverVersion {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
}

impl DriverVersion {
    /// Decodes the driver's representation: 13000 is 13.0 and 12080 is 12.8.
    pub(super) fn from_encoded(code: u32) -> Self {
        Self { major: code / 1000, minor: code % 1000 / 10 }
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Formats 16 bytes like NVIDIA's tools.
pub(super) fn uuid_text(bytes: [u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_targets_use_nvidia_notation() {
        assert_eq!(DriverVersion::from_encoded(13000).to_string(), "13.0");
        assert_eq!(DriverVersion::from_encoded(12080).to_string(), "12.8");
        assert!(DriverVersion::from_encoded(12090) < DriverVersion::from_encoded(13000));
        assert_eq!(ComputeCapability { major: 9, minor: 0 }.target(), "sm_90");
        assert_eq!(ComputeCapability { major: 12, minor: 1 }.target(), "sm_121");
    }

    #[test]
    fn uuid_has_nvidia_smi_dashes() {
        let bytes = std::array::from_fn(|i| 0x11 * i as u8);
        assert_eq!(uuid_text(bytes), "GPU-00112233-4455-6677-8899-aabbccddeeff");
    }
}
