//! Default sizes for probes, noise measurements and calibration.

use calorimeter_case::{Dtype, Implementation};
use std::time::Duration;

/// Default sizes per platform: large enough to fill the device, small enough to take a few seconds. The `Default`
/// values suit a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trials {
    /// Bytes of the largest buffer.
    pub largest_buffer: u64,
    /// Bytes of the largest array of a quick calibration.
    pub quick_array: u64,
    /// Measurement time per case of a quick calibration.
    pub quick_time: Duration,
    /// Sizes of the square matmuls whose fastest is the peak, in increasing order.
    pub peak_products: &'static [u64],
    /// Time limit of a matmul; after a slower one, larger sizes are skipped.
    pub patience: Duration,
    /// Size of the largest probe matmul that is interleaved with a case.
    pub largest_product: u64,
    /// Sizes of the square matmuls in A/A tests.
    pub noise_products: &'static [u64],
    /// Lengths of the array additions in A/A tests; the shortest is dominated by launch overhead.
    pub noise_sums: &'static [u64],
    /// Sizes of the square matmuls of a calibration.
    pub products: &'static [u64],
    /// Sizes of the square matmuls of a quick calibration.
    pub quick_products: &'static [u64],
    /// Dtypes of a calibration.
    pub dtypes: &'static [Dtype],
    /// Dtypes of a quick calibration; fusion patterns use the last one.
    pub quick_dtypes: &'static [Dtype],
    /// Implementations whose fusion patterns are compared, or reported as missing.
    pub fusion: &'static [Implementation],
}

impl Default for Trials {
    fn default() -> Self {
        Self {
            largest_buffer: 1 << 30,
            quick_array: 1 << 30,
            quick_time: Duration::from_millis(200),
            peak_products: &[1024, 2048, 4096],
            patience: Duration::MAX,
            largest_product: 8192,
            noise_products: &[1024, 2048],
            noise_sums: &[1 << 10, 1 << 18, 1 << 22],
            products: &[256, 512, 1024, 2048, 4096, 8192],
            quick_products: &[256, 1024, 2048],
            dtypes: &[Dtype::F32, Dtype::Bf16, Dtype::F16],
            quick_dtypes: &[Dtype::F32, Dtype::Bf16],
            fusion: &Implementation::ALL,
        }
    }
}
