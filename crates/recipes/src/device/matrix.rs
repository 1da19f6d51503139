//! Dequantizing GEMM on matrix instructions: device support and tile configuration.

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

/// Input values per access of 16 bytes.
const INPUT_WIDTH: usize = 8;

/// Returns the dtype of the input if the device has matrix instructions for it with f32 accumulators.
pub fn multiplied<R: CubeRuntime>(client: &ComputeClient<R>, dtype: DType) -> Option<Dtype> {
    let (input_dtype, kind) = match dtype {
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
    (lanes && properties.features.matmul.mma.contains(&config)).then_some(input_dtype)
}

/// Computes y = x wᵀ for an input dtype with matrix instructions.
pub fn product<R: CubeRuntime>(
    input: &CubeTensor<R>,
    weight: &Stored<CubeTensor<R>>,
    dtype: Dtype,
    sizes: Sizes,
) -> CubeTensor<R> {
    let Sizes { inputs, outputs, .. } = sizes;
    let client = &input.client;
    let allocate = |shape: Vec<usize>, dtype| {
        empty_device_contiguous_dtype(client.clone(), input.device.clone(), Shape::from(shape), dtype)
    };
    let (form, staged) = form(input, &weight.format, dtype, sizes);
    let output = allocate(vec![inputs, outputs], input.dtype);
    let parts = (form.splits > 1).then(|| allocate(vec![form.splits, inputs, outputs], DType::F32));
    let target = parts.as_ref().unwrap_or(&output);
    let (row_cubes, input_cubes) = (outputs.div_ceil(form.rows_of_cube()), inputs.div_ceil(form.inputs_of_cube()));
    let (count, dim) = (
        CubeCount::Static((row_cubes * form.splits) as u32, 1, input_cubes as u32),
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
                target.clone().into_array_arg(),
                inputs,
                outputs,
                form.power(),
                form,
                [input.dtype.into(), target.dtype.into()],
            )
        };
    }
    // SAFETY: rows and inputs are checked against their number, both operands have `cols` columns, and the format
    // determines the number of quantized values, scales and zero points.
    unsafe {
        if staged {
            launch!(staged_kernel::staged_product::launch_unchecked, 4);
        } else {
            launch!(kernel::matrix_product::launch_unchecked, form.input_width);
        }
    }
    if let Some(parts) = parts {
        let (count, units) = (inputs * outputs, 256);
        // SAFETY: the kernel checks its index against `count`, and there are `k_splits` partial sums for each index.
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

/// Selects the tile configuration; the flag is true if the input is staged in shared memory.
fn form<R: CubeRuntime>(input: &CubeTensor<R>, format: &Format, dtype: Dtype, sizes: Sizes) -> (MatrixForm, bool) {
    let Sizes { inputs, outputs, cols } = sizes;
    let tiles = inputs.div_ceil(INSTRUCTION.1);
    // Unaligned rows and unaligned views are read value by value.
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
    // All sizes below were tuned on an H200.
    if tiles > 4 && whole && form.can_be_staged() {
        let smem_limit = hardware.max_shared_memory_size;
        match (tiles, form.in_pairs()) {
            (5..=8, _) => form.rows = 1,
            // Formats without group scales need fewer registers, which allows more accumulators; other formats
            // dequantize more weight rows at once.
            (9.., true) => {
                (form.inputs, form.flight) = (tiles.min(16), 1);
                form.parts = if form.element == Element::E4m3 { 1 } else { form.steps() };
            }
            (128.., false) => {
                form.inputs = 16;
                if form.staged_bytes() > smem_limit {
                    form.flight = 1;
                }
            }
            _ => form.parts = form.steps(),
        }
        if form.staged_bytes() <= smem_limit {
            // Few accumulators leave registers for two cubes per multiprocessor.
            let cubes_per_processor = if tiles <= 6 && form.in_pairs() { 2 } else { 1 };
            form.splits = splits(&form, cubes_per_processor * processors);
            return (form, true);
        }
    }
    // With few input rows many planes split k to load the weight. With more rows every cube reads the whole input, so
    // cubes must be larger.
    let max_in_flight;
    (form.planes, form.beside, form.across, form.rows, max_in_flight) = match tiles {
        1 => (16, 1, 1, 1, 2),
        2..=4 => (8, 1, 1, 1, 4),
        5..=8 => (8, 2, 1, 1, 2),
        _ => (1, 4, 2, 2, 1),
    };
    (form.inputs, form.flight) = (tiles.min(8), 1);
    if !whole {
        // Each value is a branch; with many of them CubeCL's compiler overflows its stack.
        (form.rows, form.inputs) = (1, tiles.min(2));
    }
    let chunks = form.chunks();
    // At least two chunks per plane, or the reduction costs more than it saves.
    while form.planes > 1 && chunks < 2 * form.planes {
        form.planes /= 2;
    }
    form.splits = splits(&form, processors);
    form.flight = chunks.div_ceil(form.planes * form.splits).min(if whole { max_in_flight } else { 1 });
    (form, false)
}
