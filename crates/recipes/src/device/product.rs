//! Dequantizing GEMM on GPUs through CubeCL: selects a kernel and launches it.

use super::access::{Sizes, WIDEST, accesses, widest, zero_kind};
use super::matrix;
use super::product_kernel::{self as kernel, ProductForm, UNITS};
use super::tile_kernel::{self, SIDE, TILE, TileForm};
use crate::Treatment;
use crate::format::Format;
use crate::packing::BLOCK;
use crate::stored::Stored;
use burn::tensor::{DType, Shape};
use burn_cubecl::CubeRuntime;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::features::Plane;
use cubecl::prelude::*;

/// Maximum input rows per cube, limited by registers.
const MOST_INPUTS: usize = 8;

/// Maximum cubes in one dimension of a launch.
const CUBES: usize = 65_535;

/// True if a kernel exists for this format, input dtype and number of rows.
pub fn takes<R: CubeRuntime>(client: &ComputeClient<R>, weight: &Format, input: DType, rows: usize) -> bool {
    let has_mma = || matrix::multiplied(client, input).is_some();
    weight.has_product() && (rows <= Treatment::MOST_PRODUCT_ROWS || has_mma())
}

/// Computes y = x wᵀ; `None` without a kernel.
pub fn product<R: CubeRuntime>(input: CubeTensor<R>, weight: &Stored<CubeTensor<R>>) -> Option<CubeTensor<R>> {
    if !takes(&input.client, &weight.format, input.dtype, input.meta.shape()[0]) {
        return None;
    }
    let input = into_contiguous(input);
    let (inputs, outputs, cols) = (input.meta.shape()[0], weight.rows, weight.cols);
    assert_eq!(input.meta.shape()[1], cols, "input and weight need an equal number of columns");
    if let Some(dtype) = matrix::multiplied(&input.client, input.dtype) {
        return Some(matrix::product(&input, weight, dtype, Sizes { inputs, outputs, cols }));
    }
    let client = input.client.clone();
    let output =
        empty_device_contiguous_dtype(client.clone(), input.device.clone(), Shape::new([inputs, outputs]), input.dtype);
    if inputs > MOST_INPUTS {
        let form = TileForm {
            cols,
            words_per_row: weight.format.words_per_row(cols),
            group: weight.format.group(cols),
            element: weight.format.element,
            scale: weight.format.scale,
            zero: zero_kind(&weight.format),
        };
        let row_cubes = outputs.div_ceil(TILE);
        let layers = row_cubes.div_ceil(CUBES);
        // SAFETY: rows, inputs and columns are checked against their number, and the format determines the number of
        // quantized values, scales and zero points.
        unsafe {
            tile_kernel::tile_product::launch_unchecked(
                &client,
                CubeCount::Static(row_cubes.div_ceil(layers) as u32, layers as u32, inputs.div_ceil(TILE) as u32),
                CubeDim::new_2d(SIDE as u32, SIDE as u32),
                input.clone().into_array_arg(),
                weight.codes.clone().into_array_arg(),
                weight.scales.clone().into_array_arg(),
                weight.zeros.as_ref().unwrap_or(&weight.scales).clone().into_array_arg(),
                output.clone().into_array_arg(),
                inputs,
                outputs,
                form,
                output.dtype.into(),
            );
        }
        return Some(output);
    }
    let form = form(&input, &weight.format, cols);
    let (row_cubes, input_cubes) = (outputs.div_ceil(form.rows), inputs.div_ceil(form.inputs));
    let layers = row_cubes.div_ceil(CUBES);
    // SAFETY: rows and inputs are checked against their number, both operands have `cols` columns, and the format
    // determines the number of quantized values, scales and zero points.
    unsafe {
        kernel::product::launch_unchecked(
            &client,
            CubeCount::Static(row_cubes.div_ceil(layers) as u32, layers as u32, input_cubes as u32),
            CubeDim::new_1d(UNITS as u32),
            form.input_width,
            form.word_width,
            accesses(&input, form.input_width),
            accesses(&weight.codes, form.word_width),
            weight.scales.clone().into_array_arg(),
            weight.zeros.as_ref().unwrap_or(&weight.scales).clone().into_array_arg(),
            output.clone().into_array_arg(),
            inputs,
            outputs,
            form,
            output.dtype.into(),
        );
    }
    Some(output)
}

fn form<R: CubeRuntime>(input: &CubeTensor<R>, format: &Format, cols: usize) -> ProductForm {
    let client = &input.client;
    let properties = client.properties();
    let (hardware, planes) = (&properties.hardware, &properties.features.plane);
    let has_plane_ops = hardware.plane_size_min == hardware.plane_size_max && planes.contains(Plane::Ops);
    // Rows that are not whole blocks, and unaligned views, are read value by value.
    let whole = cols.is_multiple_of(BLOCK) && input.handle.offset_start.unwrap_or(0).is_multiple_of(WIDEST);
    ProductForm {
        cols,
        words_per_row: format.words_per_row(cols),
        group: format.group(cols),
        element: format.element,
        scale: format.scale,
        zero: zero_kind(format),
        // Number of loads in flight; with many inputs a unit has no registers for more.
        rows: if format.bits() > 4 { 2 } else { 4 },
        inputs: input.meta.shape()[0].min(MOST_INPUTS),
        plane: if has_plane_ops { (hardware.plane_size_max as usize).min(UNITS) } else { 1 },
        input_width: if whole { widest(client, input.dtype.size(), BLOCK) } else { 1 },
        word_width: widest(client, 4, format.bits() as usize),
    }
}
