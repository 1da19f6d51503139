//! A backend of burn.

use crate::{Device, Value, ZooError};
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;

/// burn without fusion on a runtime of CubeCL.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub type CubeOf<R> = burn_cubecl::CubeBackend<R, f32, i32, u8>;

/// A backend of burn, as it is opened here.
pub trait BurnBackend: QuantBackend + Float8Backend {
    /// Whether its f32 products may run on tensor cores.
    const TF32: bool = false;

    /// burn's handle of a device.
    fn handle(device: Device) -> Result<Self::Device, ZooError>;

    /// Makes a lazy backend enqueue what a pass has registered.
    fn drain(_: &Value<Self>) {}
}
