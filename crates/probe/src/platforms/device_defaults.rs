//! Default sizes for probes, noise measurements and calibration.

use calorimeter_case::{Dtype, Implementation};
use std::time::Duration;

/// Default sizes per platform: large enough to fill the device, small enough to take a few seconds. The `Default`
/// values suit a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceDefaults {
    /// Bytes of the largest buffer.
    pub max_buffer_bytes: u64,
    /// Bytes of the largest array of a quick calibration.
    pub quick_array_bytes: u64,
    /// Measurement time per case of a quick calibration.
    pub quick_case_time: Duration,
    /// Sizes of the square matmuls whose fastest is the peak, in increasing order.
    pub peak_matmul_sizes: &'static [u64],
    /// Time limit of a matmul; after a slower one, larger sizes are skipped.
    pub max_matmul_time: Duration,
    /// Size of the largest probe matmul that is interleaved with a case.
    pub max_matmul_size: u64,
    /// Sizes of the square matmuls in A/A tests.
    pub noise_matmul_sizes: &'static [u64],
    /// Lengths of the array additions in A/A tests; the shortest is dominated by launch overhead.
    pub noise_add_lengths: &'static [u64],
    /// Sizes of the square matmuls of a calibration.
    pub matmul_sizes: &'static [u64],
    /// Sizes of the square matmuls of a quick calibration.
    pub quick_matmul_sizes: &'static [u64],
    /// Dtypes of a calibration.
    pub dtypes: &'static [Dtype],
    /// Dtypes of a quick calibration; fusion patterns use the last one.
    pub quick_dtypes: &'static [Dtype],
    /// Implementations whose fusion patterns are compared, or reported as missing.
    pub fusion_implementations: &'static [Implementation],
}

impl Default for DeviceDefaults {
    fn default() -> Self {
        Self {
            max_buffer_bytes: 1 << 30,
            quick_array_bytes: 1 << 30,
            quick_case_time: Duration::from_millis(200),
            peak_matmul_sizes: &[1024, 2048, 4096],
            max_matmul_time: Duration::MAX,
            max_matmul_size: 8192,
            noise_matmul_sizes: &[1024, 2048],
            noise_add_lengths: &[1 << 10, 1 << 18, 1 << 22],
            matmul_sizes: &[256, 512, 1024, 2048, 4096, 8192],
            quick_matmul_sizes: &[256, 1024, 2048],
            dtypes: &[Dtype::F32, Dtype::Bf16, Dtype::F16],
            quick_dtypes: &[Dtype::F32, Dtype::Bf16],
            fusion_implementations: &Implementation::ALL,
        }
    }
}
