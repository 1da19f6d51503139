//! Quantization on GPUs through CubeCL.

use super::QuantBackend;
use super::gemm;
use super::kernels::{self, UNITS_PER_ROW};
use super::launch::{cube_count, optional_arg};
use crate::dispatch::{with_rule, with_steps};
use crate::format::{Format, Grouping, HqqIterate, QuantMethod, ZeroPoint};
use crate::hqq::{LANES, inverse_betas, round_to_element, round_zero_point, select_iteration};
use crate::packed_tensor::{TensorPart, part_shape};
use crate::scalar::hqq::ITERATIONS;
use crate::scalar::rules::{QuantParams, QuantParamsLaunch, QuantRule};
use crate::{Dtype, Element, FloatType, LayerSpec, PackedTensor, ggml, packing};
use burn::tensor::ops::{FloatTensor, IntTensor};
use burn::tensor::{DType, Shape};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::{empty_device_contiguous_dtype, zeros_client};
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{BoolElement, CubeBackend, CubeRuntime, FloatElement, IntElement};
use calorimeter_kernels::LinearShape;
use calorimeter_kernels::cube::decode::DequantMode;
use cubecl::prelude::*;
use std::ops::Range;

/// Units of a cube in kernels without cooperation between units.
const UNITS_PER_CUBE: usize = 64;

impl<R: CubeRuntime, F: FloatElement, I: IntElement, BT: BoolElement> QuantBackend for CubeBackend<R, F, I, BT> {
    fn quantize_tensor(tensor: FloatTensor<Self>, format: Format) -> PackedTensor<IntTensor<Self>> {
        let tensor = ContiguousRows::new(tensor);
        match format.method {
            QuantMethod::Hqq(iterate) => quantize_hqq(&tensor, format, iterate),
            QuantMethod::Unquantized => unreachable!("unquantized formats are not quantized"),
            QuantMethod::Qqq => with_steps!(format.compute_dtype, S => { quantize_qqq::<R, S>(&tensor, format) }),
            QuantMethod::Ggml => quantize_ggml(&tensor, format),
            _ => with_rule!(format, T => quantize_groups::<R, T>(&tensor, format)),
        }
    }

    fn read_rows(
        stored: &PackedTensor<IntTensor<Self>>,
        rows: Range<usize>,
        reading: TensorPart,
        dtype: Dtype,
    ) -> FloatTensor<Self> {
        read_rows(stored, rows, reading, dtype)
    }

    fn has_layer_kernel(device: &Self::Device, spec: &LayerSpec, shape: LinearShape) -> bool {
        gemm::is_supported(&R::client(device), spec, shape)
    }

    fn dequant_gemm(input: FloatTensor<Self>, weight: &PackedTensor<IntTensor<Self>>) -> Option<FloatTensor<Self>> {
        gemm::dequant_gemm(input, weight)
    }

    fn int8_gemm(
        input: &PackedTensor<IntTensor<Self>>,
        weight: &PackedTensor<IntTensor<Self>>,
        steps: Dtype,
        dtype: Dtype,
    ) -> Option<FloatTensor<Self>> {
        gemm::int8_gemm(input, weight, steps, dtype)
    }
}

/// Matrix with contiguous rows.
struct ContiguousRows<R: CubeRuntime> {
    tensor: CubeTensor<R>,
    rows: usize,
    cols: usize,
}

impl<R: CubeRuntime> ContiguousRows<R> {
    fn new(tensor: CubeTensor<R>) -> Self {
        let strides = tensor.meta.strides();
        // Rows may be padded, as in pitched CUDA tensors.
        let tensor = if strides[1] == 1 { tensor } else { into_contiguous(tensor) };
        let shape = tensor.meta.shape();
        let (rows, cols) = (shape[0], shape[1]);
        Self { tensor, rows, cols }
    }

    fn arg(&self) -> TensorArg<R> {
        self.tensor.clone().into_tensor_arg()
    }

    fn dtype(&self) -> cubecl::ir::StorageType {
        self.tensor.dtype.into()
    }

    /// Allocates `count` uninitialized words.
    fn empty_words(&self, count: usize) -> CubeTensor<R> {
        let (client, device) = (self.tensor.client.clone(), self.tensor.device.clone());
        empty_device_contiguous_dtype(client, device, Shape::new([count.max(1)]), DType::U32)
    }

    /// Allocates `count` zeroed words.
    fn zero_words(&self, count: usize) -> CubeTensor<R> {
        let (client, device) = (self.tensor.client.clone(), self.tensor.device.clone());
        zeros_client(client, device, Shape::new([count.max(1)]), DType::U32)
    }
}

pub(super) fn launch_params<R: CubeRuntime>(params: QuantParams) -> QuantParamsLaunch<R> {
    let QuantParams { divisor, epsilon, min, max, mask, opaque_zero } = params;
    QuantParamsLaunch::new(divisor, epsilon, min, max, mask, opaque_zero)
}

/// Computes amax of the whole tensor, as one word.
fn tensor_amax<R: CubeRuntime>(input: &ContiguousRows<R>) -> CubeTensor<R> {
    let (row_amax, amax) = (input.empty_words(input.rows), input.empty_words(1));
    let (client, units) = (&input.tensor.client, CubeDim::new_1d(UNITS_PER_ROW as u32));
    // SAFETY: the first kernel checks its row, the second reads `rows` words; both write only their own output.
    unsafe {
        kernels::rows_amax::launch_unchecked(
            client,
            cube_count(input.rows, 1),
            units,
            input.arg(),
            row_amax.clone().into_array_arg(),
            input.rows,
            input.cols,
            input.dtype(),
        );
        kernels::tensor_amax::launch_unchecked(
            client,
            CubeCount::Static(1, 1, 1),
            units,
            row_amax.into_array_arg(),
            amax.clone().into_array_arg(),
            input.rows,
        );
    }
    amax
}

fn quantize_groups<R: CubeRuntime, T: QuantRule>(
    input: &ContiguousRows<R>,
    format: Format,
) -> PackedTensor<CubeTensor<R>> {
    let (rows, cols) = (input.rows, input.cols);
    let (per_tensor, blocks) = (format.grouping == Grouping::Tensor, matches!(format.grouping, Grouping::Block(_)));
    let needs_amax = format.needs_tensor_amax();
    let amax = if needs_amax { tensor_amax(input) } else { input.empty_words(1) };
    let words = format.words_per_row(cols);
    // If groups do not end at packing blocks, the last words of a row are never written.
    let writes_all_words = !blocks || cols.next_multiple_of(format.group_size(cols)).is_multiple_of(packing::BLOCK);
    let codes = if writes_all_words { input.empty_words(rows * words) } else { input.zero_words(rows * words) };
    let groups = rows * cols.div_ceil(format.group_size(cols));
    let (scales, zeros) = (input.empty_words(format.scale_count(rows, cols)), input.empty_words(groups));
    let (units, per_cube) = if blocks { (1, UNITS_PER_CUBE) } else { (UNITS_PER_ROW, 1) };
    let cube_dim = CubeDim::new_1d(if blocks { UNITS_PER_CUBE } else { UNITS_PER_ROW } as u32);
    // SAFETY: the kernel checks its group against `rows` and `cols`, and writes only words of that group.
    unsafe {
        kernels::quantize_groups::launch_unchecked::<T, R>(
            &input.tensor.client,
            cube_count(groups, per_cube),
            cube_dim,
            input.arg(),
            amax.clone().into_array_arg(),
            codes.clone().into_array_arg(),
            scales.clone().into_array_arg(),
            zeros.clone().into_array_arg(),
            launch_params(QuantParams::of_format(&format)),
            rows,
            cols,
            format.group_size(cols),
            words,
            format.bits(),
            units,
            blocks,
            per_tensor,
            needs_amax,
            input.dtype(),
        );
    }
    let zeros = (format.zero != ZeroPoint::None).then_some(zeros);
    let outer = (format.method == QuantMethod::Nvfp4).then(|| nvfp4_outer_scale(input, amax));
    PackedTensor {
        format: format.with_f32_scales(),
        rows,
        cols,
        codes,
        scales: Some(scales),
        zeros,
        outer_scales: outer,
        positions: None,
    }
}

fn nvfp4_outer_scale<R: CubeRuntime>(input: &ContiguousRows<R>, amax: CubeTensor<R>) -> CubeTensor<R> {
    let outer = input.empty_words(1);
    // SAFETY: one unit reads one word and writes one.
    unsafe {
        kernels::nvfp4_outer_scale::launch_unchecked(
            &input.tensor.client,
            CubeCount::Static(1, 1, 1),
            CubeDim::new_1d(1),
            amax.into_array_arg(),
            outer.clone().into_array_arg(),
        );
    }
    outer
}

/// The stopping iteration is selected on the host, for the whole tensor; a weight is quantized only once.
fn quantize_hqq<R: CubeRuntime>(
    input: &ContiguousRows<R>,
    format: Format,
    iterate: HqqIterate,
) -> PackedTensor<CubeTensor<R>> {
    let (rows, cols, group) = (input.rows, input.cols, format.group_size(input.cols));
    let groups = rows * cols.div_ceil(group);
    let (client, device) = (&input.tensor.client, &input.tensor.device);
    let upload = |values: &[f32]| {
        let handle = client.create_from_slice(f32::as_bytes(values));
        CubeTensor::new_contiguous(client.clone(), device.clone(), Shape::new([values.len()]), handle, DType::F32)
    };
    let (inverse_scales, zeros_by_iteration) =
        (input.empty_words(groups), input.empty_words(groups * (ITERATIONS + 1)));
    let errors = input.empty_words(groups * ITERATIONS);
    // SAFETY: the kernel checks its group, and each group has its own scale, errors and zero points.
    unsafe {
        kernels::hqq_iterations::launch_unchecked(
            client,
            cube_count(groups, UNITS_PER_CUBE),
            CubeDim::new_1d(UNITS_PER_CUBE as u32),
            input.arg(),
            upload(&inverse_betas()).into_array_arg(),
            inverse_scales.clone().into_array_arg(),
            zeros_by_iteration.clone().into_array_arg(),
            errors.clone().into_array_arg(),
            launch_params(QuantParams::of_format(&format)),
            rows,
            cols,
            group,
            LANES,
            input.dtype(),
        );
    }
    let download = |tensor: &CubeTensor<R>, count: usize| {
        let bytes = client.read_one_unchecked(tensor.handle.clone());
        f32::from_bytes(&bytes)[..count].to_vec()
    };
    let (host_inverse_scales, host_zeros) =
        (download(&inverse_scales, groups), download(&zeros_by_iteration, groups * (ITERATIONS + 1)));
    let host_errors = download(&errors, groups * ITERATIONS);
    let row_errors: Vec<[f64; ITERATIONS]> = host_errors
        .chunks(ITERATIONS * cols.div_ceil(group))
        .zip(host_inverse_scales.chunks(cols.div_ceil(group)))
        .map(|(errors, inverse_scales)| {
            let finite =
                errors.chunks(ITERATIONS).zip(inverse_scales).filter(|(_, inverse_scale)| inverse_scale.is_finite());
            finite.fold([0.0; ITERATIONS], |sum, (errors, _)| std::array::from_fn(|i| sum[i] + f64::from(errors[i])))
        })
        .collect();
    let iteration = select_iteration(&row_errors, iterate);
    let words = format.words_per_row(cols);
    let codes = input.zero_words(rows * words);
    // SAFETY: the kernel checks its group, and writes only words of that group.
    unsafe {
        kernels::hqq_quantize::launch_unchecked(
            client,
            cube_count(groups, UNITS_PER_CUBE),
            CubeDim::new_1d(UNITS_PER_CUBE as u32),
            input.arg(),
            inverse_scales.into_array_arg(),
            zeros_by_iteration.into_array_arg(),
            codes.clone().into_array_arg(),
            launch_params(QuantParams::of_format(&format)),
            rows,
            cols,
            group,
            words,
            iteration,
            format.bits(),
            input.dtype(),
        );
    }
    let scale = |inverse_scale: &f32| {
        if inverse_scale.is_nan() { f32::NAN } else { round_to_element(format.scale, 1.0 / inverse_scale) }
    };
    let scales: Vec<f32> = host_inverse_scales.iter().map(scale).collect();
    let zeros = host_zeros.chunks(ITERATIONS + 1).zip(&host_inverse_scales);
    let zero = |(zeros_of_group, inverse_scale): (&[f32], &f32)| {
        if inverse_scale.is_nan() { 0.0 } else { round_zero_point(&format, zeros_of_group[iteration], *inverse_scale) }
    };
    let zeros: Vec<f32> = zeros.map(zero).collect();
    let as_words = |tensor: CubeTensor<R>| CubeTensor { dtype: DType::U32, ..tensor };
    let (scales, zeros) = (as_words(upload(&scales)), Some(as_words(upload(&zeros))));
    PackedTensor {
        format: format.with_f32_scales(),
        rows,
        cols,
        codes,
        scales: Some(scales),
        zeros,
        outer_scales: None,
        positions: None,
    }
}

fn quantize_qqq<R: CubeRuntime, S: crate::scalar::rounding::StepRounding>(
    input: &ContiguousRows<R>,
    format: Format,
) -> PackedTensor<CubeTensor<R>> {
    let (rows, cols, group) = (input.rows, input.cols, format.group_size(input.cols));
    let words = format.words_per_row(cols);
    let codes = input.zero_words(rows * words);
    let (scales, outer) = (input.empty_words(rows * cols.div_ceil(group)), input.empty_words(rows));
    let single_group = cols == group;
    // SAFETY: the kernel checks its row, and writes only words of that row.
    unsafe {
        kernels::qqq_quantize::launch_unchecked::<S, R>(
            &input.tensor.client,
            cube_count(rows, UNITS_PER_CUBE),
            CubeDim::new_1d(UNITS_PER_CUBE as u32),
            input.arg(),
            codes.clone().into_array_arg(),
            scales.clone().into_array_arg(),
            outer.clone().into_array_arg(),
            rows,
            cols,
            group,
            words,
            if single_group { -7 } else { -8 },
            0,
            single_group,
            input.dtype(),
        );
    }
    PackedTensor {
        format: format.with_f32_scales(),
        rows,
        cols,
        codes,
        scales: Some(scales),
        zeros: None,
        outer_scales: Some(outer),
        positions: None,
    }
}

fn quantize_ggml<R: CubeRuntime>(input: &ContiguousRows<R>, format: Format) -> PackedTensor<CubeTensor<R>> {
    let (rows, cols, words) = (input.rows, input.cols, format.words_per_row(input.cols));
    let groups = format.scale_count(rows, cols);
    let (codes, scales) = (input.empty_words(rows * words), input.empty_words(groups));
    // SAFETY: the kernel checks its block, and writes only words of that block; blocks fill whole words.
    unsafe {
        kernels::ggml_quantize::launch_unchecked(
            &input.tensor.client,
            cube_count(groups, UNITS_PER_CUBE),
            CubeDim::new_1d(UNITS_PER_CUBE as u32),
            input.arg(),
            codes.clone().into_array_arg(),
            scales.clone().into_array_arg(),
            rows,
            cols,
            ggml::divisor(format.bits()),
            0,
            format.bits(),
            input.dtype(),
        );
    }
    PackedTensor {
        format: format.with_f32_scales(),
        rows,
        cols,
        codes,
        scales: Some(scales),
        zeros: None,
        outer_scales: None,
        positions: None,
    }
}

fn read_rows<R: CubeRuntime>(
    stored: &PackedTensor<CubeTensor<R>>,
    rows: Range<usize>,
    reading: TensorPart,
    dtype: Dtype,
) -> CubeTensor<R> {
    let shape = part_shape(stored, &rows, reading);
    let (format, client) = (&stored.format, &stored.codes.client);
    let count = shape[0] * shape[1];
    let output =
        empty_device_contiguous_dtype(client.clone(), stored.codes.device.clone(), Shape::new(shape), dtype.burn());
    let (cubes, cube_dim) = (cube_count(count, 256), CubeDim::new_1d(256));
    let elements = |words: &CubeTensor<R>, first: usize, element: Element| {
        // SAFETY: the kernel checks its index against `count`, and `count` elements are stored from `first` on.
        unsafe {
            kernels::read_elements::launch_unchecked(
                client,
                cubes.clone(),
                cube_dim,
                words.clone().into_array_arg(),
                output.clone().into_array_arg(),
                first,
                count,
                element,
                output.dtype.into(),
            );
        }
    };
    match (reading, &stored.scales, &stored.outer_scales) {
        (TensorPart::Scales, Some(scales), _) => {
            let per_tensor = format.grouping == Grouping::Tensor;
            elements(scales, if per_tensor { 0 } else { rows.start * stored.scales_per_row() }, format.scale);
        }
        (TensorPart::OuterScales, _, Some(outer)) => {
            let first = if format.outer_scale_count(stored.rows) == 1 { 0 } else { rows.start };
            elements(outer, first, Element::Float(Dtype::F32));
        }
        _ => {
            // SAFETY: the kernel checks its index, and the requested rows are rows of the packed tensor.
            unsafe {
                kernels::dequantize::launch_unchecked(
                    client,
                    cubes,
                    cube_dim,
                    stored.codes.clone().into_array_arg(),
                    optional_arg(&stored.scales, stored),
                    optional_arg(&stored.zeros, stored),
                    optional_arg(&stored.positions, stored),
                    output.clone().into_array_arg(),
                    rows.start,
                    rows.len(),
                    stored.cols,
                    format.group_size(stored.cols),
                    format.words_per_row(stored.cols),
                    format.position_words_per_row(stored.cols),
                    0,
                    format.element,
                    format.sparse_2to4,
                    (reading == TensorPart::Values && format.method != QuantMethod::Unquantized)
                        .then_some(format.scale),
                    format.grouping == Grouping::Tensor,
                    DequantMode::of_format(format),
                    output.dtype.into(),
                );
            }
        }
    }
    output
}
