//! Memory access and launch sizes of GEMM kernels.

use crate::PackedTensor;
use crate::format::{Format, ZeroPoint};
use burn_cubecl::CubeRuntime;
use burn_cubecl::tensor::CubeTensor;
use calorimeter_kernels::cube::decode::DequantMode;
use cubecl::prelude::*;

/// Input rows (m), weight rows (n) and columns of both (k).
#[derive(Debug, Clone, Copy)]
pub struct GemmSizes {
    pub inputs: usize,
    pub outputs: usize,
    pub cols: usize,
}

/// Returns the dequantization formula of a format.
pub fn dequant_mode(format: &Format) -> DequantMode {
    match format.zero {
        ZeroPoint::None => DequantMode::ScaleOnly,
        ZeroPoint::BeforeScale(element) => DequantMode::ZeroBeforeScale(element),
        ZeroPoint::AfterScale(element) => DequantMode::ZeroAfterScale(element),
    }
}

/// Bytes of the widest memory access, which must be aligned to its size.
pub const MAX_ACCESS_BYTES: u64 = 16;

/// Widest vector, in elements, that divides a run of `run` elements.
pub fn max_vector_width<R: CubeRuntime>(client: &ComputeClient<R>, bytes: usize, run: usize) -> usize {
    client.io_optimized_vector_sizes(bytes).find(|&width| run.is_multiple_of(width)).unwrap_or(1)
}

/// Kernel argument for a tensor that is accessed in vectors of `width` elements.
pub fn vector_arg<R: CubeRuntime>(tensor: &CubeTensor<R>, width: usize) -> ArrayArg<R> {
    let elements: usize = tensor.meta.shape().iter().product();
    // SAFETY: the tensor is contiguous and holds `elements` elements.
    unsafe { ArrayArg::from_raw_parts(tensor.handle.clone(), elements / width) }
}

/// Kernel argument for a part of a packed tensor. Kernels do not read the values that replace a missing part.
pub fn optional_arg<R: CubeRuntime>(part: &Option<CubeTensor<R>>, packed: &PackedTensor<CubeTensor<R>>) -> ArrayArg<R> {
    part.as_ref().unwrap_or(&packed.codes).clone().into_array_arg()
}

/// Maximum cubes in one dimension of a launch.
pub const MAX_CUBES_PER_DIM: usize = 65_535;

/// Number of cubes for at least `units` units, in a shape that every device supports.
pub fn cube_count(units: usize, per_cube: usize) -> CubeCount {
    let cubes = units.div_ceil(per_cube).max(1);
    CubeCount::Static(cubes.min(MAX_CUBES_PER_DIM) as u32, cubes.div_ceil(MAX_CUBES_PER_DIM) as u32, 1)
}
