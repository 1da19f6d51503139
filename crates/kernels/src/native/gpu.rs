//! What a GPU is, as far as it can be asked without using it.

use std::fmt;

/// A GPU as the driver describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuInfo {
    /// Its number among the visible ones.
    pub ordinal: usize,
    /// Marketing name.
    pub name: String,
    /// `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, the form that NVML and `CUDA_VISIBLE_DEVICES` use.
    pub uuid: String,
    /// Memory in bytes.
    pub total_memory: u64,
    /// What its memory moves at most in bytes per second: two transfers in each cycle over the whole bus. Absent where
    /// the driver does not tell.
    pub memory_bytes_per_second: Option<u64>,
    /// Size of the L2 cache in bytes.
    pub l2_bytes: u64,
    /// Instruction-set generation.
    pub compute_capability: ComputeCapability,
    /// The newest CUDA that the installed driver supports.
    pub driver_version: DriverVersion,
}

/// The instruction-set generation of a GPU, such as 9.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComputeCapability {
    /// The generation.
    pub major: u32,
    /// The variant.
    pub minor: u32,
}

impl ComputeCapability {
    /// The first that converts to e4m3 and multiplies it.
    pub(super) const E4M3: Self = Self { major: 8, minor: 9 };
    /// The first whose warps find a maximum in one step.
    pub(super) const WARP_MAXIMA: Self = Self { major: 8, minor: 0 };
    /// The first whose blocks can form clusters.
    pub(super) const CLUSTERS: Self = Self { major: 9, minor: 0 };
    /// The only one whose warp groups multiply together (`wgmma`).
    pub(super) const WARP_GROUPS: Self = Self { major: 9, minor: 0 };

    /// The first that multiplies codes under scales of blocks.
    pub(super) const MICROSCALING: Self = Self { major: 10, minor: 0 };

    /// The name of the matching target of a CUDA compiler: `sm_90` for 9.0.
    pub fn target(self) -> String {
        format!("sm_{}{}", self.major, self.minor)
    }
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The version of CUDA that a driver supports, such as 13.0. It is not the version of the driver package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DriverVersion {
    /// Before the point.
    pub major: u32,
    /// After the point.
    pub minor: u32,
}

impl DriverVersion {
    /// From the driver's encoding: 13000 is 13.0 and 12080 is 12.8.
    pub(super) fn from_code(code: u32) -> Self {
        Self { major: code / 1000, minor: code % 1000 / 10 }
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Sixteen bytes as NVIDIA's tools write them.
pub(super) fn uuid_text(bytes: [u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_targets_are_written_as_nvidia_writes_them() {
        assert_eq!(DriverVersion::from_code(13000).to_string(), "13.0");
        assert_eq!(DriverVersion::from_code(12080).to_string(), "12.8");
        assert!(DriverVersion::from_code(12090) < DriverVersion::from_code(13000));
        assert_eq!(ComputeCapability { major: 9, minor: 0 }.target(), "sm_90");
        assert_eq!(ComputeCapability { major: 12, minor: 1 }.target(), "sm_121");
    }

    #[test]
    fn a_uuid_has_the_dashes_of_nvidia_smi() {
        let bytes = std::array::from_fn(|i| 0x11 * i as u8);
        assert_eq!(uuid_text(bytes), "GPU-00112233-4455-6677-8899-aabbccddeeff");
    }
}
