//! Launch of the dequantizing GEMMs on matrix instructions, with split-K: cubes that split k write partial sums, which
//! another kernel reduces in a fixed order.
//!
//! Traffic of the reduction: `form.k_splits` partial sums in f32 per output. Roofline: memory bandwidth, mostly of the
//! cache.

use super::mma_config::MmaGemmConfig;
use super::spec::grid;
use crate::Dtype;
use crate::cube::LayerOperands;
use crate::cube::capability::PLANE_SIZE;
use crate::cube::decode::decode_packed;
use crate::cube::layer::buffer_arg;
use crate::cube::matrix::storage;
use crate::layer::LinearShape;
use cubecl::prelude::*;

/// Units of a cube that reduces partial sums.
const UNITS_PER_REDUCTION: usize = 256;

/// Launches a GEMM and, with split-K, the reduction of its partial sums. `gemm` receives the sizes of the launch, the
/// output, and the dtypes of input and output.
pub(super) fn launch<R: Runtime>(
    client: &ComputeClient<R>,
    operands: &LayerOperands,
    LinearShape { m, n, .. }: LinearShape,
    form: MmaGemmConfig,
    gemm: impl FnOnce(CubeCount, CubeDim, ArrayArg<R>, [StorageType; 2]),
) {
    let parts = (form.k_splits > 1).then(|| client.empty(4 * form.k_splits * m * n));
    let (target, dtype) = parts.as_ref().map_or((operands.y, form.dtype), |parts| (parts, Dtype::F32));
    let (row_cubes, input_cubes) = (n.div_ceil(form.n_per_cube()), m.div_ceil(form.m_per_cube()));
    let count = CubeCount::Static((row_cubes * form.k_splits) as u32, 1, input_cubes as u32);
    let dim = CubeDim::new_3d(PLANE_SIZE as u32, form.k_planes as u32, (form.n_planes * form.m_planes) as u32);
    gemm(count, dim, buffer_arg(target, dtype.width()), [storage(form.dtype), storage(dtype)]);
    if let Some(parts) = parts {
        // SAFETY: the kernel checks its index against `m * n`, and there are `k_splits` partial sums for each index.
        unsafe {
            reduce_splits::launch_unchecked::<R>(
                client,
                grid((m * n).div_ceil(UNITS_PER_REDUCTION), 1),
                CubeDim::new_1d(UNITS_PER_REDUCTION as u32),
                buffer_arg(&parts, 4),
                operands.scales(),
                buffer_arg(operands.y, form.dtype.width()),
                m * n,
                n,
                form,
                storage(form.dtype),
            );
        }
    }
}

/// Reduces the partial sums of split-K, with the scales of the epilogue.
#[cube(launch_unchecked)]
fn reduce_splits<F: Float>(
    parts: &Array<f32>,
    scales: &Array<u32>,
    y: &mut Array<F>,
    count: usize,
    outputs: usize,
    #[comptime] form: MmaGemmConfig,
    #[define(F)] _dtype: StorageType,
) {
    if ABSOLUTE_POS < count {
        let mut sum = 0.0f32.runtime();
        #[unroll]
        for split in 0..comptime!(form.k_splits) {
            sum += parts[split * count + ABSOLUTE_POS];
        }
        if comptime!(form.weight.scales_in_epilogue()) {
            let row = ABSOLUTE_POS % outputs;
            sum *= decode_packed(scales, row, form.weight.scale);
        }
        y[ABSOLUTE_POS] = F::cast_from(sum);
    }
}
