//! Trait of burn backends, with on-device output checks for CubeCL runtimes.

#[cfg(any(feature = "cuda", feature = "wgpu"))]
use crate::numbers::doubles;
use crate::{Device, Look, Seen, Value, ZooError};
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use burn::tensor::DType;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use burn_cubecl::{CubeRuntime, kernel::into_contiguous, tensor::CubeTensor};
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use calorimeter_kernels::cube;
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use calorimeter_recipes::{Dtype, Element};

/// burn backend without fusion on a CubeCL runtime.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub type CubeOf<R> = burn_cubecl::CubeBackend<R, f32, i32, u8>;

/// burn backend with device handles and output checks.
pub trait BurnBackend: QuantBackend + Float8Backend {
    /// True if f32 matmuls may run on tensor cores.
    const TF32: bool = false;

    /// True if the device can compare outputs by [`Self::is_moved_on`].
    const COMPARES: bool = false;

    /// Returns the burn handle of a device.
    fn handle(device: Device) -> Result<Self::Device, ZooError>;

    /// Makes a lazy backend enqueue the operations of a pass.
    fn drain(_: &Value<Self>) {}

    /// Compares a tensor bit for bit with another, each segment of `_line` elements of which is rotated by `_by`.
    ///
    /// `None` if the device cannot compare.
    fn is_moved_on(_: &Value<Self>, _first: &Value<Self>, _line: usize, _by: usize) -> Result<Option<bool>, ZooError> {
        Ok(None)
    }

    /// Computes the digest of a tensor. `None` if the device cannot, or if the tensor has non-finite elements.
    fn seen(_: &Value<Self>, _: &Look<'_>) -> Result<Option<Seen>, ZooError> {
        Ok(None)
    }
}

/// Implements [`BurnBackend::is_moved_on`] for CubeCL runtimes.
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

/// Implements [`BurnBackend::seen`] for CubeCL runtimes.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub(super) fn seen<R: CubeRuntime>(value: Value<CubeOf<R>>, look: &Look<'_>) -> Result<Option<Seen>, ZooError> {
    let Value::Float(tensor) = value else { return Ok(None) };
    let [rows, cols] = tensor.dims();
    let CubeTensor { client, handle, dtype, .. }: CubeTensor<R> = into_contiguous(tensor.into_primitive().tensor());
    let kind = match dtype {
        DType::F32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::Bf16,
        _ => return Ok(None),
    };
    let (size, Look { sample, sums }) = (cube::Matrix { rows, cols, kind }, *look);
    // CubeCL has no f64 accumulators for the sums of long rows.
    if sums || !sample.is_within([rows, cols]) || cube::is_finite(&client, size, &handle)? != Some(true) {
        return Ok(None);
    }
    let Some(bytes) = cube::sampled(&client, size, &handle, &sample.rows, &sample.cols)? else { return Ok(None) };
    let sampled = doubles(&bytes, Element::Float(kind));
    Ok(Some(Seen { size: [rows, cols], count: rows * cols, spoilt: None, sampled, sums: None }))
}
