//! A backend of burn.

use crate::{Device, Value, ZooError};
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use burn_cubecl::{CubeRuntime, kernel::into_contiguous, tensor::CubeTensor};
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use calorimeter_kernels::cube;
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;

/// burn without fusion on a runtime of CubeCL.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub type CubeOf<R> = burn_cubecl::CubeBackend<R, f32, i32, u8>;

/// A backend of burn, as it is opened here.
pub trait BurnBackend: QuantBackend + Float8Backend {
    /// Whether its f32 products may run on tensor cores.
    const TF32: bool = false;

    /// Whether the device can compare what two passes left, by [`Self::is_moved_on`].
    const COMPARES: bool = false;

    /// burn's handle of a device.
    fn handle(device: Device) -> Result<Self::Device, ZooError>;

    /// Makes a lazy backend enqueue what a pass has registered.
    fn drain(_: &Value<Self>) {}

    /// Whether a value has the bits of another, lines of so many numbers of which were moved on by some. `None` where the
    /// device cannot tell.
    fn is_moved_on(_: &Value<Self>, _first: &Value<Self>, _line: usize, _by: usize) -> Result<Option<bool>, ZooError> {
        Ok(None)
    }
}

/// What [`BurnBackend::is_moved_on`] answers for values of CubeCL's runtimes.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub(super) fn is_moved_on<R: CubeRuntime>(
    [value, first]: [Value<CubeOf<R>>; 2],
    line: usize,
    by: usize,
) -> Result<Option<bool>, ZooError> {
    let [value, first]: [CubeTensor<R>; 2] = [value, first].map(|value| match value {
        Value::Float(tensor) => tensor.into_primitive().tensor(),
        Value::Codes(tensor) => tensor.into_primitive(),
    });
    if value.dtype != first.dtype || value.meta.shape() != first.meta.shape() {
        return Ok(Some(false));
    }
    let width = value.dtype.size();
    let bytes = value.meta.shape().num_elements() * width;
    let [value, first] = [value, first].map(into_contiguous);
    Ok(cube::is_moved_on(&value.client, &first.handle, &value.handle, bytes, line * width, by * width)?)
}
