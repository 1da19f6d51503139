//! Quantization on GPUs through CubeCL.

use super::QuantBackend;
use super::access::cubes;
use super::codes;
use super::kernels::{self, UNITS_PER_ROW, ZeroKind};
use super::product;
use crate::dispatch::{with_rule, with_steps};
use crate::format::{Format, Grouping, HqqIterate, Method, Zero};
use crate::hqq::{LANES, inverse_betas, kept_iterate, stored, stored_zero};
use crate::scalar::hqq::ITERATIONS;
use crate::scalar::rules::{Rule, Terms, TermsLaunch};
use crate::stored::{Reading, Stored};
use crate::{Dtype, Element, FloatType, packing};
use burn::tensor::ops::{FloatTensor, IntTensor};
use burn::tensor::{DType, Shape};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::{empty_device_contiguous_dtype, zeros_client};
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{BoolElement, CubeBackend, CubeRuntime, FloatElement, IntElement};
use cubecl::prelude::*;
use std::ops::Range;

/// Units of a cube in kernels without cooperation between units.
const UNITS: usize = 64;

impl<R: CubeRuntime, F: FloatElement, I: IntElement, BT: BoolElement> QuantBackend for CubeBackend<R, F, I, BT> {
    fn quantize_codes(tensor: FloatTensor<Self>, format: Format) -> Stored<IntTensor<Self>> {
        let tensor = Input::of(tensor);
        match format.method {
            Method::Hqq(iterate) => hqq(&tensor, format, iterate),
            Method::Plain => unreachable!("unquantized formats are not quantized"),
            Method::Qqq => with_steps!(format.steps, S => { qqq::<R, S>(&tensor, format) }),
            _ => with_rule!(format, T => groups::<R, T>(&tensor, format)),
        }
    }

    fn read(stored: &Stored<IntTensor<Self>>, rows: Range<usize>, reading: Reading, dtype: Dtype) -> FloatTensor<Self> {
        read(stored, rows, reading, dtype)
    }

    fn has_product(device: &Self::Device, weight: &Format, input: DType, rows: usize) -> bool {
        product::takes(&R::client(device), weight, input, rows)
    }

    fn has_code_product(input: &Format, weight: &Format) -> bool {
        codes::takes(input, weight)
    }

    fn product(input: FloatTensor<Self>, weight: &Stored<IntTensor<Self>>) -> Option<FloatTensor<Self>> {
        product::product(input, weight)
    }

    fn product_of_codes(
        input: &Stored<IntTensor<Self>>,
        weight: &Stored<IntTensor<Self>>,
        steps: Dtype,
        dtype: Dtype,
    ) -> Option<FloatTensor<Self>> {
        codes::product(input, weight, steps, dtype)
    }
}

/// Matrix with contiguous rows.
struct Input<R: CubeRuntime> {
    tensor: CubeTensor<R>,
    rows: usize,
    cols: usize,
}

impl<R: CubeRuntime> Input<R> {
    fn of(tensor: CubeTensor<R>) -> Self {
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
    fn words(&self, count: usize) -> CubeTensor<R> {
        let (client, device) = (self.tensor.client.clone(), self.tensor.device.clone());
        empty_device_contiguous_dtype(client, device, Shape::new([count.max(1)]), DType::U32)
    }

    /// Allocates `count` zeroed words.
    fn zero_words(&self, count: usize) -> CubeTensor<R> {
        let (client, device) = (self.tensor.client.clone(), self.tensor.device.clone());
        zeros_client(client, device, Shape::new([count.max(1)]), DType::U32)
    }
}

pub(super) fn launch_terms<R: CubeRuntime>(params: Terms) -> TermsLaunch<R> {
    let Terms { divisor, epsilon, least: min, most: max, mask, blank: opaque_zero } = params;
    TermsLaunch::new(divisor, epsilon, min, max, mask, opaque_zero)
}

/// Computes amax of the whole tensor, as one word.
fn largest<R: CubeRuntime>(input: &Input<R>) -> CubeTensor<R> {
    let (row_amax, amax) = (input.words(input.rows), input.words(1));
    let (client, units) = (&input.tensor.client, CubeDim::new_1d(UNITS_PER_ROW as u32));
    // SAFETY: the first kernel checks its row, the second reads `rows` words; both write only their own output.
    unsafe {
        kernels::largest_of_rows::launch_unchecked(
            client,
            cubes(input.rows, 1),
            units,
            input.arg(),
            row_amax.clone().into_array_arg(),
            input.rows,
            input.cols,
            input.dtype(),
        );
        kernels::largest_of_all::launch_unchecked(
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

fn groups<R: CubeRuntime, T: Rule>(input: &Input<R>, format: Format) -> Stored<CubeTensor<R>> {
    let (rows, cols) = (input.rows, input.cols);
    let (per_tensor, blocks) = (format.grouping == Grouping::Tensor, matches!(format.grouping, Grouping::Block(_)));
    let needs_amax = format.looks_at_the_whole_tensor();
    let amax = if needs_amax { largest(input) } else { input.words(1) };
    let words = format.words_per_row(cols);
    // If groups do not end at packing blocks, the last words of a row are never written.
    let writes_all_words = !blocks || cols.next_multiple_of(format.group(cols)).is_multiple_of(packing::BLOCK);
    let codes = if writes_all_words { input.words(rows * words) } else { input.zero_words(rows * words) };
    let groups = rows * cols.div_ceil(format.group(cols));
    let (scales, zeros) = (input.words(format.scales(rows, cols)), input.words(groups));
    let (units, per_cube) = if blocks { (1, UNITS) } else { (UNITS_PER_ROW, 1) };
    let cube_dim = CubeDim::new_1d(if blocks { UNITS } else { UNITS_PER_ROW } as u32);
    // SAFETY: the kernel checks its group against `rows` and `cols`, and writes only words of that group.
    unsafe {
        kernels::quantize_groups::launch_unchecked::<T, R>(
            &input.tensor.client,
            cubes(groups, per_cube),
            cube_dim,
            input.arg(),
            amax.clone().into_array_arg(),
            codes.clone().into_array_arg(),
            scales.clone().into_array_arg(),
            zeros.clone().into_array_arg(),
            launch_terms(format.terms()),
            rows,
            cols,
            format.group(cols),
            words,
            format.bits(),
            units,
            blocks,
            per_tensor,
            needs_amax,
            input.dtype(),
        );
    }
    let zeros = (format.zero != Zero::None).then_some(zeros);
    let outer = (format.method == Method::Nvfp4).then(|| tensor_scale(input, amax));
    Stored { format: format.unpacked(), rows, cols, codes, scales, zeros, outer, kept: None }
}

fn tensor_scale<R: CubeRuntime>(input: &Input<R>, amax: CubeTensor<R>) -> CubeTensor<R> {
    let outer = input.words(1);
    // SAFETY: one unit reads one word and writes one.
    unsafe {
        kernels::nvfp4_outer::launch_unchecked(
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
fn hqq<R: CubeRuntime>(input: &Input<R>, format: Format, iterate: HqqIterate) -> Stored<CubeTensor<R>> {
    let (rows, cols, group) = (input.rows, input.cols, format.group(input.cols));
    let groups = rows * cols.div_ceil(group);
    let (client, device) = (&input.tensor.client, &input.tensor.device);
    let upload = |values: &[f32]| {
        let handle = client.create_from_slice(f32::as_bytes(values));
        CubeTensor::new_contiguous(client.clone(), device.clone(), Shape::new([values.len()]), handle, DType::F32)
    };
    let (inverse_scales, zeros_by_iteration) = (input.words(groups), input.words(groups * (ITERATIONS + 1)));
    let errors = input.words(groups * ITERATIONS);
    // SAFETY: the kernel checks its group, and each group has its own scale, errors and zero points.
    unsafe {
        kernels::hqq_courses::launch_unchecked(
            client,
            cubes(groups, UNITS),
            CubeDim::new_1d(UNITS as u32),
            input.arg(),
            upload(&inverse_betas()).into_array_arg(),
            inverse_scales.clone().into_array_arg(),
            zeros_by_iteration.clone().into_array_arg(),
            errors.clone().into_array_arg(),
            launch_terms(format.terms()),
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
    let iteration = kept_iterate(&row_errors, iterate);
    let words = format.words_per_row(cols);
    let codes = input.zero_words(rows * words);
    // SAFETY: the kernel checks its group, and writes only words of that group.
    unsafe {
        kernels::hqq_codes::launch_unchecked(
            client,
            cubes(groups, UNITS),
            CubeDim::new_1d(UNITS as u32),
            input.arg(),
            inverse_scales.into_array_arg(),
            zeros_by_iteration.into_array_arg(),
            codes.clone().into_array_arg(),
            launch_terms(format.terms()),
            rows,
            cols,
            group,
            words,
            iteration,
            format.bits(),
            input.dtype(),
        );
    }
    let scale =
        |inverse_scale: &f32| if inverse_scale.is_nan() { f32::NAN } else { stored(format.scale, 1.0 / inverse_scale) };
    let scales: Vec<f32> = host_inverse_scales.iter().map(scale).collect();
    let zeros = host_zeros.chunks(ITERATIONS + 1).zip(&host_inverse_scales);
    let zero = |(zeros_of_group, inverse_scale): (&[f32], &f32)| {
        if inverse_scale.is_nan() { 0.0 } else { stored_zero(&format, zeros_of_group[iteration], *inverse_scale) }
    };
    let zeros: Vec<f32> = zeros.map(zero).collect();
    let as_words = |tensor: CubeTensor<R>| CubeTensor { dtype: DType::U32, ..tensor };
    let (scales, zeros) = (as_words(upload(&scales)), Some(as_words(upload(&zeros))));
    Stored { format: format.unpacked(), rows, cols, codes, scales, zeros, outer: None, kept: None }
}

fn qqq<R: CubeRuntime, S: crate::scalar::rounding::Steps>(input: &Input<R>, format: Format) -> Stored<CubeTensor<R>> {
    let (rows, cols, group) = (input.rows, input.cols, format.group(input.cols));
    let words = format.words_per_row(cols);
    let codes = input.zero_words(rows * words);
    let (scales, outer) = (input.words(rows * cols.div_ceil(group)), input.words(rows));
    let single_group = cols == group;
    // SAFETY: the kernel checks its row, and writes only words of that row.
    unsafe {
        kernels::qqq_rows::launch_unchecked::<S, R>(
            &input.tensor.client,
            cubes(rows, UNITS),
            CubeDim::new_1d(UNITS as u32),
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
    Stored { format: format.unpacked(), rows, cols, codes, scales, zeros: None, outer: Some(outer), kept: None }
}

fn read<R: CubeRuntime>(
    stored: &Stored<CubeTensor<R>>,
    rows: Range<usize>,
    reading: Reading,
    dtype: Dtype,
) -> CubeTensor<R> {
    let shape = stored.shape(&rows, reading);
    let (format, client) = (&stored.format, &stored.codes.client);
    let count = shape[0] * shape[1];
    let output =
        empty_device_contiguous_dtype(client.clone(), stored.codes.device.clone(), Shape::new(shape), dtype.burn());
    let (cubes, cube_dim) = (cubes(count, 256), CubeDim::new_1d(256));
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
    match (reading, &stored.outer) {
        (Reading::Scales, _) => {
            let per_tensor = format.grouping == Grouping::Tensor;
            elements(&stored.scales, if per_tensor { 0 } else { rows.start * stored.scales_per_row() }, format.scale);
        }
        (Reading::Outer, Some(outer)) => {
            let first = if format.outer_scales(stored.rows) == 1 { 0 } else { rows.start };
            elements(outer, first, Element::Float(Dtype::F32));
        }
        _ => {
            let zero = match format.zero {
                Zero::None if format.rounds_to_integers() => ZeroKind::RoundedToIntegers,
                Zero::None => ZeroKind::None,
                Zero::InSteps(element) => ZeroKind::InSteps(element),
                Zero::InUnits(element) => ZeroKind::InUnits(element),
            };
            // SAFETY: the kernel checks its index, and the requested rows are rows of the packed tensor.
            unsafe {
                kernels::read_numbers::launch_unchecked(
                    client,
                    cubes,
                    cube_dim,
                    stored.codes.clone().into_array_arg(),
                    stored.scales.clone().into_array_arg(),
                    stored.zeros.as_ref().unwrap_or(&stored.scales).clone().into_array_arg(),
                    stored.kept.as_ref().unwrap_or(&stored.scales).clone().into_array_arg(),
                    output.clone().into_array_arg(),
                    rows.start,
                    rows.len(),
                    stored.cols,
                    format.group(stored.cols),
                    format.words_per_row(stored.cols),
                    format.kept_words_per_row(stored.cols),
                    0,
                    format.element,
                    format.two_of_four,
                    (reading == Reading::Numbers && format.method != Method::Plain).then_some(format.scale),
                    format.grouping == Grouping::Tensor,
                    zero,
                    output.dtype.into(),
                );
            }
        }
    }
    output
}
