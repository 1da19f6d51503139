//! Launch sizes and arguments of kernels.

use crate::PackedTensor;
use burn_cubecl::CubeRuntime;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

/// Kernel argument for a part of a packed tensor. Kernels do not read the values that replace a missing part.
pub(super) fn optional_arg<R: CubeRuntime>(
    part: &Option<CubeTensor<R>>,
    packed: &PackedTensor<CubeTensor<R>>,
) -> ArrayArg<R> {
    part.as_ref().unwrap_or(&packed.codes).clone().into_array_arg()
}

/// Maximum cubes in one dimension of a launch.
const MAX_CUBES_PER_DIM: usize = 65_535;

/// Number of cubes for at least `units` units, in a shape that every device supports.
pub(super) fn cube_count(units: usize, per_cube: usize) -> CubeCount {
    let cubes = units.div_ceil(per_cube).max(1);
    CubeCount::Static(cubes.min(MAX_CUBES_PER_DIM) as u32, cubes.div_ceil(MAX_CUBES_PER_DIM) as u32, 1)
}
