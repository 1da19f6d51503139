//! Int8 GEMM, on matrix instructions where the device has them.

use super::int8_mma_kernel::{self as kernel, Int8GemmConfig, MMA_SHAPE};
use super::launch::MAX_CUBES_PER_DIM;
use super::launch::{max_vector_width, optional_arg, vector_arg};
use super::mma_gemm_kernel::PLANE_SIZE;
use super::tiled_gemm_kernel::{self, TILE, TiledGemmConfig, UNITS_PER_SIDE};
use crate::PackedTensor;
use crate::format::Format;
use crate::gemm_support::has_int8_gemm;
use crate::{Dtype, Element, FloatType};
use burn::tensor::Shape;
use burn_cubecl::CubeRuntime;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use calorimeter_kernels::cube::decode::DequantMode;
use cubecl::ir::features::MmaConfig;
use cubecl::ir::{ElemType, IntKind};
use cubecl::prelude::*;

/// True if kernels exist for these two formats.
pub fn is_supported(input: &Format, weight: &Format) -> bool {
    let unpacked = input.scale == Element::Float(Dtype::F32);
    unpacked && has_int8_gemm(input) && has_int8_gemm(weight)
}

/// Computes y = x wᵀ with the scales of both operands; `None` for formats without a kernel.
pub fn int8_gemm<R: CubeRuntime>(
    input: &PackedTensor<CubeTensor<R>>,
    weight: &PackedTensor<CubeTensor<R>>,
    steps: Dtype,
    dtype: Dtype,
) -> Option<CubeTensor<R>> {
    if !is_supported(&input.format, &weight.format) {
        return None;
    }
    assert_eq!(input.cols, weight.cols, "input and weight need an equal number of columns");
    let (inputs, outputs) = (input.rows, weight.rows);
    let (client, device) = (&weight.codes.client, &weight.codes.device);
    let output =
        empty_device_contiguous_dtype(client.clone(), device.clone(), Shape::new([inputs, outputs]), dtype.burn());
    let dtypes = [steps.burn().into(), dtype.burn().into()];
    let grid = |rows: usize, input_rows: usize| {
        let row_cubes = outputs.div_ceil(rows);
        let layers = row_cubes.div_ceil(MAX_CUBES_PER_DIM);
        CubeCount::Static(row_cubes.div_ceil(layers) as u32, layers as u32, inputs.div_ceil(input_rows) as u32)
    };
    if has_int8_mma(client) {
        let form = gemm_config(input, weight);
        // SAFETY: rows are checked against their number, the rows of both operands have equal lengths, and every row
        // has a scale.
        unsafe {
            kernel::int8_mma_gemm::launch_unchecked(
                client,
                grid(form.n_per_cube(), form.m_per_cube()),
                CubeDim::new_3d(PLANE_SIZE as u32, form.k_planes as u32, (form.n_planes * form.m_planes) as u32),
                4,
                vector_arg(&input.codes, 4),
                vector_arg(&weight.codes, 4),
                optional_arg(&input.scales, input),
                optional_arg(&weight.scales, weight),
                output.clone().into_array_arg(),
                inputs,
                outputs,
                form,
                dtypes,
            );
        }
    } else {
        let form = TiledGemmConfig {
            cols: weight.cols,
            words_per_row: weight.format.words_per_row(weight.cols),
            group: weight.cols,
            element: weight.format.element,
            scale: weight.format.scale,
            zero: DequantMode::ScaleOnly,
        };
        // SAFETY: rows are checked against their number, the rows of both operands have equal lengths, and every row
        // has a scale.
        unsafe {
            tiled_gemm_kernel::tiled_int8_gemm::launch_unchecked(
                client,
                grid(TILE, TILE),
                CubeDim::new_2d(UNITS_PER_SIDE as u32, UNITS_PER_SIDE as u32),
                input.codes.clone().into_array_arg(),
                weight.codes.clone().into_array_arg(),
                optional_arg(&input.scales, input),
                optional_arg(&weight.scales, weight),
                output.clone().into_array_arg(),
                inputs,
                outputs,
                form,
                dtypes,
            );
        }
    }
    Some(output)
}

/// True if the device has int8 matrix instructions and accesses of four words.
fn has_int8_mma<R: CubeRuntime>(client: &ComputeClient<R>) -> bool {
    let (m, n, k) = MMA_SHAPE;
    let int8 = ElemType::Int(IntKind::I8);
    let config = MmaConfig {
        a_type: int8.into(),
        b_type: int8.into(),
        cd_type: ElemType::Int(IntKind::I32).into(),
        m: m as u32,
        n: n as u32,
        k: k as u32,
    };
    let properties = client.properties();
    let (min, max) = (properties.hardware.plane_size_min, properties.hardware.plane_size_max);
    let lanes = [min, max] == [PLANE_SIZE as u32; 2];
    lanes && properties.features.matmul.mma.contains(&config) && max_vector_width(client, 4, 4) == 4
}

fn gemm_config<R: CubeRuntime>(
    input: &PackedTensor<CubeTensor<R>>,
    weight: &PackedTensor<CubeTensor<R>>,
) -> Int8GemmConfig {
    let tiles = input.rows.div_ceil(MMA_SHAPE.1);
    // With few input rows many planes split k to load the weight; with many rows cubes are large.
    let (k_planes, n_planes, m_planes, n_tiles, chunks_in_flight) = match tiles {
        1 => (8, 1, 1, 1, 4),
        2..=4 => (8, 2, 1, 1, 2),
        5..=8 => (8, 2, 1, 1, 2),
        // Few output tiles per multiprocessor: more planes per cube with fewer tiles each.
        9..=128 => (1, 2, 4, 4, 1),
        _ => (1, 2, 2, 4, 1),
    };
    let mut form = Int8GemmConfig {
        words_per_row: weight.format.words_per_row(weight.cols),
        scale: weight.format.scale,
        k_planes,
        n_planes,
        m_planes,
        n_tiles,
        m_tiles: if (9..=128).contains(&tiles) { 4 } else { tiles.min(8) },
        chunks_in_flight,
    };
    while form.k_planes > 1 && form.chunks() < 2 * form.k_planes {
        form.k_planes /= 2;
    }
    form.chunks_in_flight = form.chunks_in_flight.min(form.chunks().div_ceil(form.k_planes));
    form
}
