//! Trait of burn backends, with on-device output checks for CubeCL runtimes.

#[cfg(any(feature = "cuda", feature = "wgpu"))]
use crate::element_bytes::decode_f64;
use crate::{Device, OutputDigest, OutputQuery, TensorValue, ZooError};
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

    /// True if the device can compare outputs by [`Self::is_rotation_of`].
    const CAN_COMPARE: bool = false;

    /// Returns the burn handle of a device.
    fn handle(device: Device) -> Result<Self::Device, ZooError>;

    /// Makes a lazy backend enqueue the operations of a pass.
    fn drain(_: &TensorValue<Self>) {}

    /// Compares a tensor bit for bit with another, each segment of `_line` elements of which is rotated by `_by`.
    ///
    /// `None` if the device cannot compare.
    fn is_rotation_of(
        _: &TensorValue<Self>,
        _first: &TensorValue<Self>,
        _line: usize,
        _by: usize,
    ) -> Result<Option<bool>, ZooError> {
        Ok(None)
    }

    /// Computes the digest of a tensor. `None` if the device cannot, or if the tensor has non-finite elements.
    fn digest(_: &TensorValue<Self>, _: &OutputQuery<'_>) -> Result<Option<OutputDigest>, ZooError> {
        Ok(None)
    }
}

/// Implements [`BurnBackend::is_moved_on`] for CubeCL runtimes.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub(super) fn is_cube_rotation_of<R: CubeRuntime>(
    [value, first]: [TensorValue<CubeOf<R>>; 2],
    line: usize,
    by: usize,
) -> Result<Option<bool>, ZooError> {
    let [value, first]: [CubeTensor<R>; 2] = [value, first].map(|value| match value {
        TensorValue::Float(tensor) => tensor.into_primitive().tensor(),
        TensorValue::Int(tensor) => tensor.into_primitive(),
    });
    if value.dtype != first.dtype || value.meta.shape() != first.meta.shape() {
        return Ok(Some(false));
    }
    let width = value.dtype.size();
    let bytes = value.meta.shape().num_elements() * width;
    let [value, first] = [value, first].map(into_contiguous);
    Ok(cube::is_rotated(&value.client, &first.handle, &value.handle, bytes, line * width, by * width)?)
}

/// Implements [`BurnBackend::seen`] for CubeCL runtimes.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub(super) fn cube_digest<R: CubeRuntime>(
    value: TensorValue<CubeOf<R>>,
    look: &OutputQuery<'_>,
) -> Result<Option<OutputDigest>, ZooError> {
    let TensorValue::Float(tensor) = value else { return Ok(None) };
    let [rows, cols] = tensor.dims();
    let CubeTensor { client, handle, dtype, .. }: CubeTensor<R> = into_contiguous(tensor.into_primitive().tensor());
    let kind = match dtype {
        DType::F32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::Bf16,
        _ => return Ok(None),
    };
    let (size, OutputQuery { sample, sums }) = (cube::MatrixLayout { rows, cols, kind }, *look);
    // CubeCL has no f64 accumulators for the sums of long rows.
    if sums || !sample.is_within([rows, cols]) || cube::is_finite(&client, size, &handle)? != Some(true) {
        return Ok(None);
    }
    let Some(bytes) = cube::sample(&client, size, &handle, &sample.rows, &sample.cols)? else { return Ok(None) };
    let sampled = decode_f64(&bytes, Element::Float(kind));
    Ok(Some(OutputDigest { size: [rows, cols], count: rows * cols, non_finite: None, sampled, sums: None }))
}
