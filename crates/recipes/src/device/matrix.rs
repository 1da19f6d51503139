//! Products with stored weights on matrix instructions, where a device has them.

use super::access::{Sizes, WIDEST, accesses, widest, zero_kind};
use super::matrix_kernel::{self as kernel, INSTRUCTION, LANES, MatrixForm};
use super::staged_kernel;
use crate::format::Format;
use crate::stored::Stored;
use crate::{Dtype, Element};
use burn::tensor::{DType, Shape};
use burn_cubecl::CubeRuntime;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::features::MmaConfig;
use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;

/// Numbers of the input in an access: 16 bytes of them.
const INPUT_WIDTH: usize = 8;

/// The input's type, if the device has instructions that multiply it, with sums in f32.
pub fn multiplied<R: CubeRuntime>(client: &ComputeClient<R>, dtype: DType) -> Option<Dtype> {
    let (own, kind) = match dtype {
        DType::F16 => (Dtype::F16, FloatKind::F16),
        DType::BF16 => (Dtype::Bf16, FloatKind::BF16),
        _ => return None,
    };
    let (m, n, k) = INSTRUCTION;
    let config = MmaConfig {
        a_type: ElemType::Float(kind).into(),
        b_type: ElemType::Float(kind).into(),
        cd_type: ElemType::Float(FloatKind::F32).into(),
        m: m as u32,
        n: n as u32,
        k: k as u32,
    };
    let properties = client.properties();
    let lanes =
        properties.hardware.plane_size_min == LANES as u32 && properties.hardware.plane_size_max == LANES as u32;
    (lanes && properties.features.matmul.mma.contains(&config)).then_some(own)
}

/// y = x wᵀ for an input of a type that is multiplied.
pub fn product<R: CubeRuntime>(
    input: &CubeTensor<R>,
    weight: &Stored<CubeTensor<R>>,
    dtype: Dtype,
    sizes: Sizes,
) -> CubeTensor<R> {
    let Sizes { inputs, outputs, .. } = sizes;
    let client = &input.client;
    let empty = |shape: Vec<usize>, dtype| {
        empty_device_contiguous_dtype(client.clone(), input.device.clone(), Shape::from(shape), dtype)
    };
    let (form, staged) = form(input, &weight.format, dtype, sizes);
    let output = empty(vec![inputs, outputs], input.dtype);
    let parts = (form.splits > 1).then(|| empty(vec![form.splits, inputs, outputs], DType::F32));
    let written = parts.as_ref().unwrap_or(&output);
    let (by_rows, by_inputs) = (outputs.div_ceil(form.rows_of_cube()), inputs.div_ceil(form.inputs_of_cube()));
    let (count, dim) = (
        CubeCount::Static((by_rows * form.splits) as u32, 1, by_inputs as u32),
        CubeDim::new_3d(LANES as u32, form.planes as u32, (form.beside * form.across) as u32),
    );
    macro_rules! launch {
        ($kernel:path, $width:expr) => {
            $kernel(
                client,
                count,
                dim,
                $width,
                form.word_width,
                accesses(input, form.input_width),
                accesses(&weight.codes, form.word_width),
                weight.scales.clone().into_array_arg(),
                weight.zeros.as_ref().unwrap_or(&weight.scales).clone().into_array_arg(),
                written.clone().into_array_arg(),
                inputs,
                outputs,
                form.power(),
                form,
                [input.dtype.into(), written.dtype.into()],
            )
        };
    }
    // SAFETY: rows and inputs are checked against their number, columns are those of both operands, and codes, scales
    // and zeros are as many as a format that has a product has for them.
    unsafe {
        if staged {
            launch!(staged_kernel::staged_product::launch_unchecked, 4);
        } else {
            launch!(kernel::matrix_product::launch_unchecked, form.input_width);
        }
    }
    if let Some(parts) = parts {
        let (count, units) = (inputs * outputs, 256);
        // SAFETY: numbers are checked against their count, of which there are as many as there are splits.
        unsafe {
            kernel::add_splits::launch_unchecked(
                client,
                super::access::cubes(count, units),
                CubeDim::new_1d(units as u32),
                parts.into_array_arg(),
                weight.scales.clone().into_array_arg(),
                output.clone().into_array_arg(),
                count,
                outputs,
                form,
                output.dtype.into(),
            );
        }
    }
    output
}

/// How a kernel multiplies, and whether rows of the input come to it through shared memory.
fn form<R: CubeRuntime>(input: &CubeTensor<R>, format: &Format, dtype: Dtype, sizes: Sizes) -> (MatrixForm, bool) {
    let Sizes { inputs, outputs, cols } = sizes;
    let tiles = inputs.div_ceil(INSTRUCTION.1);
    // Rows that do not begin at whole accesses are read number by number, as they are in a view that begins anywhere.
    let whole = cols.is_multiple_of(INPUT_WIDTH) && input.handle.offset_start.unwrap_or(0).is_multiple_of(WIDEST);
    let hardware = &input.client.properties().hardware;
    let processors = hardware.num_streaming_multiprocessors.unwrap_or(1) as usize;
    let mut form = MatrixForm {
        cols,
        words_per_row: format.words_per_row(cols),
        group: format.group(cols),
        element: format.element,
        dtype,
        scale: format.scale,
        zero: zero_kind(format),
        planes: 1,
        beside: 8,
        across: 1,
        rows: 2,
        inputs: tiles.min(8),
        splits: 1,
        flight: 2,
        parts: 1,
        input_width: if whole { INPUT_WIDTH } else { 1 },
        word_width: 1,
    };
    form.word_width = widest(&input.client, 4, form.piece() * format.bits() as usize / 32);
    let splits = |form: &MatrixForm, cubes: usize| {
        let blocks = outputs.div_ceil(form.rows_of_cube()) * inputs.div_ceil(form.inputs_of_cube());
        (cubes / blocks).clamp(1, (form.chunks() / (4 * form.planes * form.flight)).max(1))
    };
    // Found by trying on an H200, as everything below.
    if tiles > 4 && whole && form.can_be_staged() {
        let room = hardware.max_shared_memory_size;
        match (tiles, form.in_pairs()) {
            (5..=8, _) => form.rows = 1,
            // Codes that are decoded without scales leave registers for more sums; others are decoded for more rows at once.
            (9.., true) => {
                (form.inputs, form.flight) = (tiles.min(16), 1);
                form.parts = if form.element == Element::E4m3 { 1 } else { form.steps() };
            }
            (128.., false) => {
                form.inputs = 16;
                if form.staged_bytes() > room {
                    form.flight = 1;
                }
            }
            _ => form.parts = form.steps(),
        }
        if form.staged_bytes() <= room {
            // So few sums leave registers for two cubes.
            let of_each = if tiles <= 6 && form.in_pairs() { 2 } else { 1 };
            form.splits = splits(&form, of_each * processors);
            return (form, true);
        }
    }
    // Few rows of the input need many planes that read the weight; with more each cube reads all of the input, so that cubes
    // must be larger.
    let most_in_flight;
    (form.planes, form.beside, form.across, form.rows, most_in_flight) = match tiles {
        1 => (16, 1, 1, 1, 2),
        2..=4 => (8, 1, 1, 1, 4),
        5..=8 => (8, 2, 1, 1, 2),
        _ => (1, 4, 2, 2, 1),
    };
    (form.inputs, form.flight) = (tiles.min(8), 1);
    if !whole {
        // Each number is a branch: with many of them CubeCL's compiler runs out of stack.
        (form.rows, form.inputs) = (1, tiles.min(2));
    }
    let chunks = form.chunks();
    // Each plane keeps two chunks at least, or adding up costs more than it saves.
    while form.planes > 1 && chunks < 2 * form.planes {
        form.planes /= 2;
    }
    form.splits = splits(&form, processors);
    form.flight = chunks.div_ceil(form.planes * form.splits).min(if whole { most_in_flight } else { 1 });
    (form, false)
}
