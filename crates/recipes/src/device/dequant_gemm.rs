//! Dequantizing GEMM on GPUs through CubeCL: selects a kernel and launches it.

use super::launch::{GemmSizes, MAX_ACCESS_BYTES, dequant_mode, max_vector_width, optional_arg, vector_arg};
use super::mma_gemm;
use super::skinny_gemm_kernel::{self as kernel, SkinnyGemmConfig, UNITS_PER_CUBE};
use super::tiled_gemm_kernel::{self, TILE, TiledGemmConfig, UNITS_PER_SIDE};
use crate::PackedTensor;
use crate::QuantConfig;
use crate::format::Format;
use crate::gemm_support::has_dequant_gemm;
use crate::packing::BLOCK;
use burn::tensor::{DType, Shape};
use burn_cubecl::CubeRuntime;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::features::Plane;
use cubecl::prelude::*;

/// Maximum input rows per cube, limited by registers.
const MAX_ROWS_PER_CUBE: usize = 8;

/// Maximum cubes in one dimension of a launch.
const MAX_CUBES_PER_DIM: usize = 65_535;

/// True if a kernel exists for this format, input dtype and number of rows.
pub fn is_supported<R: CubeRuntime>(client: &ComputeClient<R>, weight: &Format, input: DType, rows: usize) -> bool {
    let has_mma = || mma_gemm::mma_dtype(client, input).is_some();
    has_dequant_gemm(weight) && (rows <= QuantConfig::MAX_SIMT_GEMM_ROWS || has_mma())
}

/// Computes y = x wᵀ; `None` without a kernel.
pub fn dequant_gemm<R: CubeRuntime>(
    input: CubeTensor<R>,
    weight: &PackedTensor<CubeTensor<R>>,
) -> Option<CubeTensor<R>> {
    if !is_supported(&input.client, &weight.format, input.dtype, input.meta.shape()[0]) {
        return None;
    }
    let input = into_contiguous(input);
    let (inputs, outputs, cols) = (input.meta.shape()[0], weight.rows, weight.cols);
    assert_eq!(input.meta.shape()[1], cols, "input and weight need an equal number of columns");
    if let Some(dtype) = mma_gemm::mma_dtype(&input.client, input.dtype) {
        return Some(mma_gemm::mma_gemm(&input, weight, dtype, GemmSizes { inputs, outputs, cols }));
    }
    let client = input.client.clone();
    let output =
        empty_device_contiguous_dtype(client.clone(), input.device.clone(), Shape::new([inputs, outputs]), input.dtype);
    if inputs > MAX_ROWS_PER_CUBE {
        let form = TiledGemmConfig {
            cols,
            words_per_row: weight.format.words_per_row(cols),
            group: weight.format.group_size(cols),
            element: weight.format.element,
            scale: weight.format.scale,
            zero: dequant_mode(&weight.format),
        };
        let row_cubes = outputs.div_ceil(TILE);
        let layers = row_cubes.div_ceil(MAX_CUBES_PER_DIM);
        // SAFETY: rows, inputs and columns are checked against their number, and the format determines the number of
        // quantized values, scales and zero points.
        unsafe {
            tiled_gemm_kernel::tiled_dequant_gemm::launch_unchecked(
                &client,
                CubeCount::Static(row_cubes.div_ceil(layers) as u32, layers as u32, inputs.div_ceil(TILE) as u32),
                CubeDim::new_2d(UNITS_PER_SIDE as u32, UNITS_PER_SIDE as u32),
                input.clone().into_array_arg(),
                weight.codes.clone().into_array_arg(),
                optional_arg(&weight.scales, weight),
                optional_arg(&weight.zeros, weight),
                output.clone().into_array_arg(),
                inputs,
                outputs,
                form,
                output.dtype.into(),
            );
        }
        return Some(output);
    }
    let form = gemm_config(&input, &weight.format, cols);
    let (row_cubes, input_cubes) = (outputs.div_ceil(form.weight_rows), inputs.div_ceil(form.input_rows));
    let layers = row_cubes.div_ceil(MAX_CUBES_PER_DIM);
    // SAFETY: rows and inputs are checked against their number, both operands have `cols` columns, and the format
    // determines the number of quantized values, scales and zero points.
    unsafe {
        kernel::skinny_gemm::launch_unchecked(
            &client,
            CubeCount::Static(row_cubes.div_ceil(layers) as u32, layers as u32, input_cubes as u32),
            CubeDim::new_1d(UNITS_PER_CUBE as u32),
            form.input_width,
            form.word_width,
            vector_arg(&input, form.input_width),
            vector_arg(&weight.codes, form.word_width),
            optional_arg(&weight.scales, weight),
            optional_arg(&weight.zeros, weight),
            output.clone().into_array_arg(),
            inputs,
            outputs,
            form,
            output.dtype.into(),
        );
    }
    Some(output)
}

fn gemm_config<R: CubeRuntime>(input: &CubeTensor<R>, format: &Format, cols: usize) -> SkinnyGemmConfig {
    let client = &input.client;
    let properties = client.properties();
    let (hardware, planes) = (&properties.hardware, &properties.features.plane);
    let has_plane_ops = hardware.plane_size_min == hardware.plane_size_max && planes.contains(Plane::Ops);
    // Rows that are not whole blocks, and unaligned views, are read value by value.
    let whole = cols.is_multiple_of(BLOCK) && input.handle.offset_start.unwrap_or(0).is_multiple_of(MAX_ACCESS_BYTES);
    SkinnyGemmConfig {
        cols,
        words_per_row: format.words_per_row(cols),
        group: format.group_size(cols),
        element: format.element,
        scale: format.scale,
        zero: dequant_mode(format),
        // Number of loads in flight; with many inputs a unit has no registers for more.
        weight_rows: if format.bits() > 4 { 2 } else { 4 },
        input_rows: input.meta.shape()[0].min(MAX_ROWS_PER_CUBE),
        reduce_units: if has_plane_ops { (hardware.plane_size_max as usize).min(UNITS_PER_CUBE) } else { 1 },
        input_width: if whole { max_vector_width(client, input.dtype.size(), BLOCK) } else { 1 },
        word_width: max_vector_width(client, 4, format.bits() as usize),
    }
}
