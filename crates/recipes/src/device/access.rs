//! How kernels of products reach memory, and what they are launched with.

use super::kernels::ZeroKind;
use crate::format::{Format, Zero};
use burn_cubecl::CubeRuntime;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

/// Rows of an input and of a weight, and numbers in each.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub inputs: usize,
    pub outputs: usize,
    pub cols: usize,
}

/// How the zeros of a format are used.
pub fn zero_kind(format: &Format) -> ZeroKind {
    match format.zero {
        Zero::None => ZeroKind::None,
        Zero::InSteps(element) => ZeroKind::InSteps(element),
        Zero::InUnits(element) => ZeroKind::InUnits(element),
    }
}

/// Bytes of the widest access, to which memory must then be aligned.
pub const WIDEST: u64 = 16;

/// Elements in the widest access that divides a run of them.
pub fn widest<R: CubeRuntime>(client: &ComputeClient<R>, bytes: usize, run: usize) -> usize {
    client.io_optimized_vector_sizes(bytes).find(|&width| run.is_multiple_of(width)).unwrap_or(1)
}

/// A tensor as whole accesses.
pub fn accesses<R: CubeRuntime>(tensor: &CubeTensor<R>, width: usize) -> ArrayArg<R> {
    let elements: usize = tensor.meta.shape().iter().product();
    // SAFETY: the tensor is contiguous and holds so many elements.
    unsafe { ArrayArg::from_raw_parts(tensor.handle.clone(), elements / width) }
}

/// Cubes in one dimension of a launch, at most.
pub const CUBES: usize = 65_535;

/// Cubes that give at least so many units, in a shape that every device takes.
pub fn cubes(units: usize, per_cube: usize) -> CubeCount {
    let cubes = units.div_ceil(per_cube).max(1);
    CubeCount::Static(cubes.min(CUBES) as u32, cubes.div_ceil(CUBES) as u32, 1)
}
