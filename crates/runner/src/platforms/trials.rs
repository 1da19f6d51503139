//! What a device is tried with.

use calorimeter_case::{Dtype, Implementation};
use std::time::Duration;

/// What a device is tried with where nobody says how: enough to fill it, and no more than it does in a few seconds. By
/// default that of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trials {
    /// Bytes of the largest buffer.
    pub largest_buffer: u64,
    /// Bytes of the largest array of a quick calibration.
    pub quick_array: u64,
    /// How long a case of a quick calibration is measured.
    pub quick_time: Duration,
    /// Sides of the square products of which the fastest is the peak, the smallest first.
    pub peak_products: &'static [u64],
    /// A product that took longer to measure is not followed by a larger one.
    pub patience: Duration,
    /// The side of the largest product that a case is measured beside.
    pub largest_product: u64,
    /// Sides of the products that `noise` compares with themselves.
    pub noise_products: &'static [u64],
    /// Elements of the arrays whose sums it compares with themselves; the shortest stands for a small launch.
    pub noise_sums: &'static [u64],
    /// Sides of the products of a calibration.
    pub products: &'static [u64],
    /// The same of a quick one.
    pub quick_products: &'static [u64],
    /// The types of numbers of a calibration.
    pub dtypes: &'static [Dtype],
    /// The same of a quick one; in the last of them patterns are compared.
    pub quick_dtypes: &'static [Dtype],
    /// The implementations in which patterns are compared with what is fused, or should be told to be missing.
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
