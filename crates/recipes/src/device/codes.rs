//! Int8 GEMM, on matrix instructions where the device has them.

use super::access::CUBES;
use super::access::{accesses, widest};
use super::code_kernel::{self as kernel, CodeForm, INSTRUCTION};
use super::kernels::ZeroKind;
use super::matrix_kernel::LANES;
use super::tile_kernel::{self, SIDE, TILE, TileForm};
use crate::format::Format;
use crate::stored::Stored;
use crate::{Dtype, Element, FloatType};
use burn::tensor::Shape;
use burn_cubecl::CubeRuntime;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::features::MmaConfig;
use cubecl::ir::{ElemType, IntKind};
use cubecl::prelude::*;

/// True if kernels exist for these two formats.
pub fn takes(input: &Format, weight: &Format) -> bool {
    let unpacked = input.scale == Element::Float(Dtype::F32);
    unpacked && input.has_code_product() && weight.has_code_product()
}

/// Computes y = x wᵀ with the scales of both operands; `None` for formats without a kernel.
pub fn product<R: CubeRuntime>(
    input: &Stored<CubeTensor<R>>,
    weight: &Stored<CubeTensor<R>>,
    steps: Dtype,
    dtype: Dtype,
) -> Option<CubeTensor<R>> {
    if !takes(&input.format, &weight.format) {
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
        let layers = row_cubes.div_ceil(CUBES);
        CubeCount::Static(row_cubes.div_ceil(layers) as u32, layers as u32, inputs.div_ceil(input_rows) as u32)
    };
    if multiplies(client) {
        let form = form(input, weight);
        // SAFETY: rows are checked against their number, the rows of both operands have equal lengths, and every row
        // has a scale.
        unsafe {
            kernel::code_product::launch_unchecked(
                client,
                grid(form.rows_of_cube(), form.inputs_of_cube()),
                CubeDim::new_3d(LANES as u32, form.planes as u32, (form.beside * form.across) as u32),
                4,
                accesses(&input.codes, 4),
                accesses(&weight.codes, 4),
                input.scales.clone().into_array_arg(),
                weight.scales.clone().into_array_arg(),
                output.clone().into_array_arg(),
                inputs,
                outputs,
                form,
                dtypes,
            );
        }
    } else {
        let form = TileForm {
            cols: weight.cols,
            words_per_row: weight.format.words_per_row(weight.cols),
            group: weight.cols,
            element: weight.format.element,
            scale: weight.format.scale,
            zero: ZeroKind::None,
        };
        // SAFETY: rows are checked against their number, the rows of both operands have equal lengths, and every row
        // has a scale.
        unsafe {
            tile_kernel::tile_code_product::launch_unchecked(
                client,
                grid(TILE, TILE),
                CubeDim::new_2d(SIDE as u32, SIDE as u32),
                input.codes.clone().into_array_arg(),
                weight.codes.clone().into_array_arg(),
                input.scales.clone().into_array_arg(),
                weight.scales.clone().into_array_arg(),
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
fn multiplies<R: CubeRuntime>(client: &ComputeClient<R>) -> bool {
    let (m, n, k) = INSTRUCTION;
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
    let lanes = [min, max] == [LANES as u32; 2];
    lanes && properties.features.matmul.mma.contains(&config) && widest(client, 4, 4) == 4
}

fn form<R: CubeRuntime>(input: &Stored<CubeTensor<R>>, weight: &Stored<CubeTensor<R>>) -> CodeForm {
    let tiles = input.rows.div_ceil(INSTRUCTION.1);
    // With few input rows many planes split k to load the weight; with many rows cubes are large.
    let (k_planes, n_planes, m_planes, n_tiles, chunks_in_flight) = match tiles {
        1 => (8, 1, 1, 1, 4),
        2..=4 => (8, 2, 1, 1, 2),
        5..=8 => (8, 2, 1, 1, 2),
        // Few output tiles per multiprocessor: more planes per cube with fewer tiles each.
        9..=128 => (1, 2, 4, 4, 1),
        _ => (1, 2, 2, 4, 1),
    };
    let mut form = CodeForm {
        words_per_row: weight.format.words_per_row(weight.cols),
        scale: weight.format.scale,
        planes: k_planes,
        beside: n_planes,
        across: m_planes,
        rows: n_tiles,
        inputs: if (9..=128).contains(&tiles) { 4 } else { tiles.min(8) },
        flight: chunks_in_flight,
    };
    while form.planes > 1 && form.chunks() < 2 * form.planes {
        form.planes /= 2;
    }
    form.flight = form.flight.min(form.chunks().div_ceil(form.planes));
    form
}
