//! Dequantizing GEMM on matrix instructions: device support and tile configuration.

use super::launch::{GemmSizes, MAX_ACCESS_BYTES, dequant_mode, max_vector_width, optional_arg, vector_arg};
use super::mma_gemm_kernel::{self as kernel, MMA_SHAPE, MmaGemmConfig, PLANE_SIZE};
use super::staged_gemm_kernel;
use crate::PackedTensor;
use crate::format::Format;
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
pub fn mma_dtype<R: CubeRuntime>(client: &ComputeClient<R>, dtype: DType) -> Option<Dtype> {
    let (input_dtype, kind) = match dtype {
        DType::F16 => (Dtype::F16, FloatKind::F16),
        DType::BF16 => (Dtype::Bf16, FloatKind::BF16),
        _ => return None,
    };
    let (m, n, k) = MMA_SHAPE;
    let config = MmaConfig {
        a_type: ElemType::Float(kind).into(),
        b_type: ElemType::Float(kind).into(),
        cd_type: ElemType::Float(FloatKind::F32).into(),
        m: m as u32,
        n: n as u32,
        k: k as u32,
    };
    let properties = client.properties();
    let lanes = properties.hardware.plane_size_min == PLANE_SIZE as u32
        && properties.hardware.plane_size_max == PLANE_SIZE as u32;
    (lanes && properties.features.matmul.mma.contains(&config)).then_some(input_dtype)
}

/// Computes y = x wᵀ for an input dtype with matrix instructions.
pub fn mma_gemm<R: CubeRuntime>(
    input: &CubeTensor<R>,
    weight: &PackedTensor<CubeTensor<R>>,
    dtype: Dtype,
    sizes: GemmSizes,
) -> CubeTensor<R> {
    let GemmSizes { inputs, outputs, .. } = sizes;
    let client = &input.client;
    let allocate = |shape: Vec<usize>, dtype| {
        empty_device_contiguous_dtype(client.clone(), input.device.clone(), Shape::from(shape), dtype)
    };
    let (form, staged) = gemm_config(input, &weight.format, dtype, sizes);
    let output = allocate(vec![inputs, outputs], input.dtype);
    let parts = (form.k_splits > 1).then(|| allocate(vec![form.k_splits, inputs, outputs], DType::F32));
    let target = parts.as_ref().unwrap_or(&output);
    let (row_cubes, input_cubes) = (outputs.div_ceil(form.n_per_cube()), inputs.div_ceil(form.m_per_cube()));
    let (count, dim) = (
        CubeCount::Static((row_cubes * form.k_splits) as u32, 1, input_cubes as u32),
        CubeDim::new_3d(PLANE_SIZE as u32, form.k_planes as u32, (form.n_planes * form.m_planes) as u32),
    );
    macro_rules! launch {
        ($kernel:path, $width:expr) => {
            $kernel(
                client,
                count,
                dim,
                $width,
                form.word_width,
                vector_arg(input, form.input_width),
                vector_arg(&weight.codes, form.word_width),
                optional_arg(&weight.scales, weight),
                optional_arg(&weight.zeros, weight),
                target.clone().into_array_arg(),
                inputs,
                outputs,
                form.magic_bits(),
                form,
                [input.dtype.into(), target.dtype.into()],
            )
        };
    }
    // SAFETY: rows and inputs are checked against their number, both operands have `cols` columns, and the format
    // determines the number of quantized values, scales and zero points.
    unsafe {
        if staged {
            launch!(staged_gemm_kernel::staged_mma_gemm::launch_unchecked, 4);
        } else {
            launch!(kernel::mma_gemm::launch_unchecked, form.input_width);
        }
    }
    if let Some(parts) = parts {
        let (count, units) = (inputs * outputs, 256);
        // SAFETY: the kernel checks its index against `count`, and there are `k_splits` partial sums for each index.
        unsafe {
            kernel::reduce_splits::launch_unchecked(
                client,
                super::launch::cube_count(count, units),
                CubeDim::new_1d(units as u32),
                parts.into_array_arg(),
                optional_arg(&weight.scales, weight),
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
fn gemm_config<R: CubeRuntime>(
    input: &CubeTensor<R>,
    format: &Format,
    dtype: Dtype,
    sizes: GemmSizes,
) -> (MmaGemmConfig, bool) {
    let GemmSizes { inputs, outputs, cols } = sizes;
    let tiles = inputs.div_ceil(MMA_SHAPE.1);
    // Unaligned rows and unaligned views are read value by value.
    let whole =
        cols.is_multiple_of(INPUT_WIDTH) && input.handle.offset_start.unwrap_or(0).is_multiple_of(MAX_ACCESS_BYTES);
    let hardware = &input.client.properties().hardware;
    let processors = hardware.num_streaming_multiprocessors.unwrap_or(1) as usize;
    let mut form = MmaGemmConfig {
        cols,
        words_per_row: format.words_per_row(cols),
        group: format.group_size(cols),
        element: format.element,
        dtype,
        scale: format.scale,
        zero: dequant_mode(format),
        k_planes: 1,
        n_planes: 8,
        m_planes: 1,
        n_tiles: 2,
        m_tiles: tiles.min(8),
        k_splits: 1,
        chunks_in_flight: 2,
        stage_parts: 1,
        input_width: if whole { INPUT_WIDTH } else { 1 },
        word_width: 1,
    };
    form.word_width = max_vector_width(&input.client, 4, form.piece_len() * format.bits() as usize / 32);
    let splits = |form: &MmaGemmConfig, cubes: usize| {
        let blocks = outputs.div_ceil(form.n_per_cube()) * inputs.div_ceil(form.m_per_cube());
        (cubes / blocks).clamp(1, (form.chunks() / (4 * form.k_planes * form.chunks_in_flight)).max(1))
    };
    // All sizes below were tuned on an H200.
    if tiles > 4 && whole && form.supports_staging() {
        let smem_limit = hardware.max_shared_memory_size;
        match (tiles, form.converts_exact_pairs()) {
            (5..=8, _) => form.n_tiles = 1,
            // Formats without group scales need fewer registers, which allows more accumulators; other formats
            // dequantize more weight rows at once.
            (9.., true) => {
                (form.m_tiles, form.chunks_in_flight) = (tiles.min(16), 1);
                form.stage_parts = if form.element == Element::E4m3 { 1 } else { form.steps_per_stage() };
            }
            (128.., false) => {
                form.m_tiles = 16;
                if form.smem_bytes() > smem_limit {
                    form.chunks_in_flight = 1;
                }
            }
            _ => form.stage_parts = form.steps_per_stage(),
        }
        if form.smem_bytes() <= smem_limit {
            // Few accumulators leave registers for two cubes per multiprocessor.
            let cubes_per_processor = if tiles <= 6 && form.converts_exact_pairs() { 2 } else { 1 };
            form.k_splits = splits(&form, cubes_per_processor * processors);
            return (form, true);
        }
    }
    // With few input rows many planes split k to load the weight. With more rows every cube reads the whole input, so
    // cubes must be larger.
    let max_in_flight;
    (form.k_planes, form.n_planes, form.m_planes, form.n_tiles, max_in_flight) = match tiles {
        1 => (16, 1, 1, 1, 2),
        2..=4 => (8, 1, 1, 1, 4),
        5..=8 => (8, 2, 1, 1, 2),
        _ => (1, 4, 2, 2, 1),
    };
    (form.m_tiles, form.chunks_in_flight) = (tiles.min(8), 1);
    if !whole {
        // Each value is a branch; with many of them CubeCL's compiler overflows its stack.
        (form.n_tiles, form.m_tiles) = (1, tiles.min(2));
    }
    let chunks = form.chunks();
    // At least two chunks per plane, or the reduction costs more than it saves.
    while form.k_planes > 1 && chunks < 2 * form.k_planes {
        form.k_planes /= 2;
    }
    form.k_splits = splits(&form, processors);
    form.chunks_in_flight = chunks.div_ceil(form.k_planes * form.k_splits).min(if whole { max_in_flight } else { 1 });
    (form, false)
}
